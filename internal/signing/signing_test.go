package signing_test

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
	"github.com/workflows-engine/workflows-engine/internal/signing"
)

// The Ed25519 example key of RFC 8037, appendix A, and the block it gives for testdata/rfc8037.json (spec:
// cli-and-config, 15.4).
const (
	rfc8037Private = "nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A"
	rfc8037Raw     = "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"
	rfc8037SPKI    = "MCowBQYDK2VwAyEA11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"
	rfc8037Hash    = "632e5577ab64dfd40b753bb6b14aad1aa1a5785db3c2e2e17768694602fe433d"
	rfc8037JWS     = "eyJhbGciOiJFZERTQSIsInR5cCI6IkpXUyIsImtpZCI6InJmYzgwMzcifQ" +
		".eyJkb2N1bWVudCI6eyJuYW1lIjoic2lnLXZlY3RvciIsInNjaGVtYSI6Imh0dHBzOi8vYWdlbnQtd29ya2Zsb3cuZGV2L3NjaGVtYXMvd29ya2Zsb3ctZGVmaW5pdGlvbi5qc29uIiwidmVyc2lvbiI6IjEuMC4wIn0sImVkZ2VzIjpbeyJzb3VyY2UiOiJfX3N0YXJ0X18iLCJ0YXJnZXQiOiJzdGFydCJ9LHsic291cmNlIjoic3RhcnQiLCJ0YXJnZXQiOiJlbmQifV0sIm5vZGVzIjpbeyJpZCI6InN0YXJ0IiwidHlwZSI6InN0YXJ0In0seyJpZCI6ImVuZCIsInR5cGUiOiJlbmQifV0sInN0YXRlX3NjaGVtYSI6eyJ0eXBlIjoib2JqZWN0In19" +
		".H3f-ixwzAoPMFxIbU_lxuJFUSzP6R9lrjwiddpq9dGXUplgqyt6h4dpUbze9DX4QTasQi2RBVW1SzPsYPaDJAw"
)

func document(t *testing.T) map[string]any {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "rfc8037.json"))
	if err != nil {
		t.Fatal(err)
	}
	value, err := jsonvalue.Decode(text)
	if err != nil {
		t.Fatal(err)
	}
	return value.(map[string]any)
}

func privateKey(t *testing.T) ed25519.PrivateKey {
	t.Helper()
	key, err := signing.ParsePrivateKey(rfc8037Private)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// withBlock puts a signature block into document.signature.
func withBlock(doc map[string]any, block any) map[string]any {
	doc = maps.Clone(doc)
	head := maps.Clone(doc["document"].(map[string]any))
	head["signature"] = block
	doc["document"] = head
	return doc
}

func TestRFC8037Vector(t *testing.T) {
	t.Parallel()
	doc := document(t)
	if hash := jsonvalue.Hash(doc); hash != rfc8037Hash {
		t.Fatalf("canonical text hashes to %s, want %s", hash, rfc8037Hash)
	}
	signed, err := signing.Sign(doc, privateKey(t), "rfc8037")
	if err != nil {
		t.Fatal(err)
	}
	block := signed["document"].(map[string]any)["signature"].(map[string]any)
	if block["value"] != rfc8037JWS || block["alg"] != "EdDSA" || block["keyId"] != "rfc8037" {
		t.Errorf("signed as %v", block)
	}
	onTop := maps.Clone(doc)
	onTop["signature"] = map[string]any{"value": rfc8037JWS}
	for _, material := range []string{
		rfc8037Raw, rfc8037SPKI, rfc8037Raw + "=", strings.NewReplacer("-", "+", "_", "/").Replace(rfc8037Raw) + "=",
		"  " + rfc8037SPKI + "\n",
	} {
		keys, err := signing.ParseKeys([]byte(`{"rfc8037":` + string(jsonvalue.Canonical(material)) + `}`))
		if err != nil {
			t.Fatal(err)
		}
		for _, mode := range []signing.Mode{"", signing.Optional, signing.Require} {
			for name, d := range map[string]any{"in document": signed, "on top": onTop} {
				verdict, err := signing.Policy{Mode: mode, Keys: keys}.Verify(d)
				if err != nil || !verdict.Verified || verdict.KeyID != "rfc8037" {
					t.Errorf("key %q, mode %q, %s: %+v, %v", material, mode, name, verdict, err)
				}
			}
		}
	}
}

func TestUnsigned(t *testing.T) {
	t.Parallel()
	for name, doc := range map[string]any{
		"no block":             document(t),
		"a block that is text": withBlock(document(t), rfc8037JWS),
		"null":                 withBlock(document(t), nil),
		"not an object":        []any{},
	} {
		if verdict, err := (signing.Policy{}).Verify(doc); err != nil || verdict.Verified {
			t.Errorf("%s, optional: %+v, %v", name, verdict, err)
		}
		_, err := signing.Policy{Mode: signing.Require}.Verify(doc)
		if got := signing.ReasonOf(err); got != signing.Unsigned {
			t.Errorf("%s, require: %q (%v)", name, got, err)
		}
		if e, ok := errors.AsType[*problem.Error](err); !ok || !strings.Contains(e.Hint, "WORKFLOW_ENGINE_DEFINITION_SIGNING_MODE") {
			t.Errorf("%s: the hint does not say whose wish that is: %v", name, err)
		}
	}
}

// jws makes a JWS with the test key over a header and payload of the test's choice.
func jws(key ed25519.PrivateKey, header, payload string) string {
	enc := base64.RawURLEncoding
	text := enc.EncodeToString([]byte(header)) + "." + enc.EncodeToString([]byte(payload))
	return text + "." + enc.EncodeToString(ed25519.Sign(key, []byte(text)))
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	doc, key := document(t), privateKey(t)
	payload := string(jsonvalue.Canonical(doc))
	const header = `{"alg":"EdDSA","typ":"JWS","kid":"k"}`
	good := jws(key, header, payload)
	keys, err := signing.KeysFromValue(map[string]any{"k": rfc8037Raw})
	if err != nil {
		t.Fatal(err)
	}
	value := func(jws string) map[string]any { return map[string]any{"value": jws} }
	with := func(header string) map[string]any { return value(jws(key, header, payload)) }
	changed := func(jws string, at int, by byte) string {
		b := []byte(jws)
		if at < 0 {
			at += len(b)
		}
		if b[at] == by {
			by++
		}
		b[at] = by
		return string(b)
	}
	parts := strings.Split(good, ".")

	for _, c := range []struct {
		name  string
		block map[string]any
		keys  signing.Keys
		want  signing.Reason
	}{
		{"good", value(good), keys, ""},
		{"good, everything given", map[string]any{"alg": "EdDSA", "value": " " + good + " ", "keyId": " k ", "note": 1.0}, keys, ""},
		{"good without typ", with(`{"alg":"EdDSA","kid":"k"}`), keys, ""},
		{"good with a padded kid", with(`{"kid":" k ","alg":"EdDSA","x":1}`), keys, ""},

		{"alg before value", map[string]any{"alg": "RS256"}, keys, signing.UnsupportedAlgorithm},
		{"alg null", map[string]any{"alg": nil, "value": good}, keys, signing.UnsupportedAlgorithm},
		{"alg of the wrong kind", map[string]any{"alg": []any{}, "value": good}, keys, signing.UnsupportedAlgorithm},
		{"no value", map[string]any{"alg": "EdDSA"}, nil, signing.NoValue},
		{"blank value", value(" "), nil, signing.NoValue},
		{"value of the wrong kind", map[string]any{"value": 5.0}, keys, signing.NoValue},
		{"no keys", value("x"), nil, signing.NoKeys},
		{"two segments", value("a.b"), keys, signing.NotCompact},
		{"four segments", value(good + ".x"), keys, signing.NotCompact},
		{"header not base64", value("!." + parts[1] + "." + parts[2]), keys, signing.BadHeader},
		{"header not JSON", with(`kid`), keys, signing.BadHeader},
		{"header not an object", with(`["kid"]`), keys, signing.BadHeader},
		{"no kid", with(`{"alg":"none"}`), keys, signing.NoKeyID},
		{"blank kid", with(`{"kid":" "}`), keys, signing.NoKeyID},
		{"kid of the wrong kind", with(`{"kid":1}`), keys, signing.NoKeyID},
		{"another keyId", map[string]any{"value": jws(key, `{"kid":"z"}`, payload), "keyId": "k"}, keys, signing.KeyIDMismatch},
		{"keyId of the wrong kind", map[string]any{"value": good, "keyId": 1.0}, keys, signing.KeyIDMismatch},
		{"unknown key", with(`{"kid":"z"}`), keys, signing.UnknownKey},
		{"no alg in the header", with(`{"kid":"k"}`), keys, signing.HeaderAlgorithm},
		{"alg none in the header", with(`{"kid":"k","alg":"none","typ":"x"}`), keys, signing.HeaderAlgorithm},
		{"another typ", with(`{"kid":"k","alg":"EdDSA","typ":"JWT"}`), keys, signing.HeaderType},
		{"critical extensions", with(`{"kid":"k","alg":"EdDSA","crit":["b64"],"b64":false}`), keys, signing.HeaderCritical},
		{"another payload", value(jws(key, header, `{}`)), keys, signing.PayloadDiffers},
		{"the payload in another form", value(jws(key, header, " "+payload)), keys, signing.PayloadDiffers},
		{"payload not base64", value(parts[0] + ".?." + parts[2]), keys, signing.PayloadDiffers},
		{"signature changed", value(changed(good, -20, 'A')), keys, signing.BadSignature},
		{"last character of the signature changed", value(changed(good, -1, 'X')), keys, signing.BadSignature},
		{"no signature", value(parts[0] + "." + parts[1] + "."), keys, signing.BadSignature},
		{"signature cut", value(good[:len(good)-4]), keys, signing.BadSignature},
		{"by another key", value(jws(ed25519.NewKeyFromSeed(make([]byte, 32)), header, payload)), keys, signing.BadSignature},
	} {
		for _, mode := range []signing.Mode{signing.Optional, signing.Require} {
			verdict, err := signing.Policy{Mode: mode, Keys: c.keys}.Verify(withBlock(doc, c.block))
			if got := signing.ReasonOf(err); got != c.want || (err == nil) != (c.want == "") || verdict.Verified != (c.want == "") {
				t.Errorf("%s, %s: %q, verified %v (%v), want %q", c.name, mode, got, verdict.Verified, err, c.want)
			}
			if err == nil {
				continue
			}
			e, _ := errors.AsType[*problem.Error](err)
			details, _ := e.Details["signing"].(map[string]any)
			if e.Code != problem.ValidationError || details["ok"] != false || details["error"] == "" {
				t.Errorf("%s: refused as %s with %v", c.name, e.Code, e.Details)
			}
		}
	}
}

// A base64 text of 64 bytes ends in a character of which four bits mean nothing; all sixteen spellings of the same
// bytes but one must be refused, or a changed signature would verify.
func TestSignatureHasOneSpelling(t *testing.T) {
	t.Parallel()
	signed, err := signing.Sign(document(t), privateKey(t), "k")
	if err != nil {
		t.Fatal(err)
	}
	keys, _ := signing.KeysFromValue(map[string]any{"k": rfc8037Raw})
	value := signed["document"].(map[string]any)["signature"].(map[string]any)["value"].(string)
	accepted := 0
	for _, c := range "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_" {
		doc := withBlock(document(t), map[string]any{"value": value[:len(value)-1] + string(c)})
		if _, err := (signing.Policy{Keys: keys}).Verify(doc); err == nil {
			accepted++
		}
	}
	if accepted != 1 {
		t.Errorf("%d last characters are accepted, want 1", accepted)
	}
}

// Whatever is changed in a signed definition, the signature notices.
func TestTamper(t *testing.T) {
	t.Parallel()
	signed, err := signing.Sign(document(t), privateKey(t), "k")
	if err != nil {
		t.Fatal(err)
	}
	keys, _ := signing.KeysFromValue(map[string]any{"k": rfc8037Raw})
	for name, change := range map[string]func(map[string]any){
		"a member added":   func(d map[string]any) { d["extra"] = true },
		"a member removed": func(d map[string]any) { delete(d, "edges") },
		"a value changed":  func(d map[string]any) { d["document"].(map[string]any)["version"] = "1.0.1" },
		"an order changed": func(d map[string]any) { n := d["nodes"].([]any); n[0], n[1] = n[1], n[0] },
	} {
		doc := jsonvalue.CloneMap(signed)
		change(doc)
		_, err := signing.Policy{Keys: keys}.Verify(doc)
		if got := signing.ReasonOf(err); got != signing.PayloadDiffers {
			t.Errorf("%s: %q (%v)", name, got, err)
		}
	}
}

func TestStrip(t *testing.T) {
	t.Parallel()
	doc := document(t)
	signed, err := signing.Sign(doc, privateKey(t), "k")
	if err != nil {
		t.Fatal(err)
	}
	both := maps.Clone(signed)
	both["signature"] = map[string]any{"value": "x"}
	if got := signing.Strip(both); !jsonvalue.Equal(got, doc) {
		t.Errorf("stripped to %s", jsonvalue.Canonical(got))
	}
	if _, left := both["signature"]; !left {
		t.Error("Strip changed its argument")
	}
	for _, v := range []any{nil, "text", []any{}, map[string]any{"document": "x"}, map[string]any{}} {
		if got := signing.Strip(v); !jsonvalue.Equal(got, v) {
			t.Errorf("%v became %v", v, got)
		}
	}
}

func TestSignRefusals(t *testing.T) {
	t.Parallel()
	key := privateKey(t)
	for name, err := range map[string]error{
		"blank key id": second(signing.Sign(document(t), key, " ")),
		"short key":    second(signing.Sign(document(t), key[:10], "k")),
		"no document":  second(signing.Sign(map[string]any{}, key, "k")),
		"no object":    second(signing.Sign("text", key, "k")),
	} {
		if _, ok := errors.AsType[*problem.Error](err); !ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func second[T any](_ T, err error) error { return err }

func TestKeyMaterial(t *testing.T) {
	t.Parallel()
	other, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	spki, err := x509.MarshalPKIXPublicKey(&other.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(other)
	if err != nil {
		t.Fatal(err)
	}
	enc := base64.StdEncoding
	for name, text := range map[string]string{
		"not JSON": `{`, "not an object": `[]`, "a number": `{"k":1}`, "empty": `{"k":""}`, "padding only": `{"k":"=="}`,
		"not base64": `{"k":"!!"}`, "too short": `{"k":"AAAA"}`, "blank id": `{" ":"` + rfc8037Raw + `"}`,
		"another kind of key": `{"k":"` + enc.EncodeToString(spki) + `"}`, "given twice": `{"k":"` + rfc8037Raw + `","k":"` + rfc8037Raw + `"}`,
	} {
		if _, err := signing.ParseKeys([]byte(text)); !errors.Is(err, problem.UsageError) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if keys, err := signing.ParseKeys([]byte(`{}`)); err != nil || len(keys) != 0 {
		t.Errorf("an empty map: %v, %v", keys, err)
	}
	for name, material := range map[string]string{
		"empty": "", "not base64": "!!", "too short": "AAAA", "another kind of key": enc.EncodeToString(pkcs8),
	} {
		_, err := signing.ParsePrivateKey(material)
		if !errors.Is(err, problem.UsageError) || len(material) > 10 && strings.Contains(err.Error(), material[:10]) {
			t.Errorf("private key, %s: %v", name, err)
		}
	}
	whole, err := x509.MarshalPKCS8PrivateKey(privateKey(t))
	if err != nil {
		t.Fatal(err)
	}
	if key, err := signing.ParsePrivateKey(enc.EncodeToString(whole)); err != nil || !key.Equal(privateKey(t)) {
		t.Errorf("PKCS#8: %v", err)
	}
}

func TestParseMode(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]signing.Mode{"": signing.Optional, "optional": signing.Optional, "require": signing.Require} {
		if got, err := signing.ParseMode(text); err != nil || got != want {
			t.Errorf("%q: %q, %v", text, got, err)
		}
	}
	for _, text := range []string{"off", "Require", " optional"} {
		if _, err := signing.ParseMode(text); !errors.Is(err, problem.UsageError) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// No signature block makes the verifier panic, and none but the right one verifies.
func FuzzVerify(f *testing.F) {
	f.Add(rfc8037JWS, "rfc8037")
	f.Add("a.b.c", "")
	f.Add("eyJraWQiOiJrIn0.e30.AA", "k")
	text, err := os.ReadFile(filepath.Join("testdata", "rfc8037.json"))
	if err != nil {
		f.Fatal(err)
	}
	value, err := jsonvalue.Decode(text)
	if err != nil {
		f.Fatal(err)
	}
	keys, err := signing.KeysFromValue(map[string]any{"rfc8037": rfc8037Raw})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, jws, keyID string) {
		doc := withBlock(value.(map[string]any), map[string]any{"value": jws, "keyId": keyID})
		verdict, err := signing.Policy{Keys: keys}.Verify(doc)
		if right := strings.TrimSpace(jws) == rfc8037JWS && strings.TrimSpace(keyID) == "rfc8037"; (err == nil) != right || verdict.Verified != right {
			t.Errorf("%q with keyId %q: %+v, %v", jws, keyID, verdict, err)
		}
	})
}
