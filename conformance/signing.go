package conformance

import (
	"context"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/jsonobject"
	"github.com/workflows-engine/workflows-engine/internal/signing"
)

// The signing key of the vectors. It is published with the protocol (spec: execution, 13.5) and protects nothing.
const (
	testKeyID      = "test-key-1"
	testPrivateKey = "MC4CAQAwBQYDK2VwBCIEINoeGH3uTJB4vlquXo3VT41lyC_El-h1NOTC-4-Gyk1F"
)

// signingCheck verifies a definition's signature (spec: execution, 13.5).
type signingCheck struct {
	sign, tamper bool
	mode         signing.Mode
	publicKeys   map[string]any
	ok           bool
	// verified is nil if it does not matter.
	verified *bool
}

func readSigning(o *jsonobject.Object) check {
	c := signingCheck{
		sign:       o.Get("signFixture").Bool(),
		tamper:     o.Get("tamperSignatureValue").Bool(),
		publicKeys: o.Get("publicKeys").Map(),
	}
	if c.tamper && !c.sign {
		o.Get("tamperSignatureValue").Fail("profile", "there is no signature to tamper with without signFixture")
	}
	policy := o.Get("signingPolicy").Object()
	c.mode = signing.Mode(policy.Get("mode").Choice(string(signing.Optional), string(signing.Require)))
	policy.Close()
	expect := o.Require("expect").Object()
	c.ok = expect.Require("ok").Bool()
	if verified := expect.Get("verified"); verified.Present() {
		c.verified = new(verified.Bool())
	}
	expect.Close()
	return c
}

func (c signingCheck) run(_ context.Context, s *trial) problems {
	var ps problems
	keys, err := signing.KeysFromValue(c.publicKeys)
	if err != nil {
		ps.add("/publicKeys", "%v", err)
		return ps
	}
	doc := s.definition.Value()
	if c.sign {
		signed, err := signWithTestKey(doc, c.tamper)
		if err != nil {
			ps.add("/signFixture", "cannot be signed: %v", err)
			return ps
		}
		doc = signed
	}
	verdict, err := signing.Policy{Mode: c.mode, Keys: keys}.Verify(doc)
	if ok := err == nil; ok != c.ok {
		message := "the verdict differs"
		if e, refused := problem.As(err); refused {
			message += ": " + e.Message
		}
		ps.differ("/expect/ok", message, c.ok, ok)
		return ps
	}
	if c.verified != nil && (err != nil || verdict.Verified != *c.verified) {
		ps.differ("/expect/verified", "differs", *c.verified, verdict.Verified)
	}
	return ps
}

// signWithTestKey signs a definition; with tamper, it replaces the last character of the signature.
func signWithTestKey(doc any, tamper bool) (any, error) {
	key, err := signing.ParsePrivateKey(testPrivateKey)
	if err != nil {
		return nil, err
	}
	signed, err := signing.Sign(doc, key, testKeyID)
	if err != nil || !tamper {
		return signed, err
	}
	block := signed["document"].(map[string]any)["signature"].(map[string]any)
	value := block["value"].(string)
	block["value"] = value[:len(value)-1] + "X"
	return signed, nil
}
