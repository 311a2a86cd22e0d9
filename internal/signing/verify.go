package signing

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"strings"

	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// algorithm is the only one supported, in the block and in the JWS header.
const algorithm = "EdDSA"

// segment is strict: without it the last character of a signature could be changed and still decode to the same bytes.
var segment = base64.RawURLEncoding.Strict()

// Verify checks the signature of a definition, given as plain JSON with its signature fields. The error is
// *problem.Error with code VALIDATION_ERROR and details.signing = {"ok":false,"error":…,"reason":…}.
func (p Policy) Verify(doc any) (Verdict, error) {
	return p.VerifyBlock(func() []byte { return jsonvalue.Canonical(Strip(doc)) }, block(doc))
}

// VerifyBlock is Verify for the canonical text without signature fields and the signature block, nil for an unsigned definition.
func (p Policy) VerifyBlock(canonical func() []byte, b map[string]any) (Verdict, error) {
	if b == nil {
		if p.Mode == Require {
			return Verdict{}, refuse(Unsigned, "the definition is not signed, and unsigned definitions are refused here")
		}
		return Verdict{}, nil
	}
	if alg, given := b["alg"]; given && alg != algorithm {
		return Verdict{}, refuse(UnsupportedAlgorithm, "the signature's alg is %v; only %s is supported", alg, algorithm)
	}
	value, _ := b["value"].(string)
	if value = strings.TrimSpace(value); value == "" {
		return Verdict{}, refuse(NoValue, "the signature has no value")
	}
	if len(p.Keys) == 0 {
		return Verdict{}, refuse(NoKeys, "the definition is signed, but no public keys are configured to verify it")
	}
	return p.verifyJWS(canonical, b, value)
}

func (p Policy) verifyJWS(canonical func() []byte, b map[string]any, value string) (Verdict, error) {
	parts := strings.Split(value, ".")
	if len(parts) != 3 {
		return Verdict{}, refuse(NotCompact, "the signature's value is not a compact JWS: it has %d segments, not three", len(parts))
	}
	header, ok := decodeHeader(parts[0])
	if !ok {
		return Verdict{}, refuse(BadHeader, "the JWS header is not a JSON object in base64url")
	}
	kid, _ := header["kid"].(string)
	if kid = strings.TrimSpace(kid); kid == "" {
		return Verdict{}, refuse(NoKeyID, "the JWS header names no key: kid is missing")
	}
	if keyID, given := b["keyId"]; given && !sameKeyID(keyID, kid) {
		return Verdict{}, refuse(KeyIDMismatch, "the signature's keyId is %v, but the JWS header says %q", keyID, kid)
	}
	key, ok := p.Keys[kid]
	if !ok {
		return Verdict{}, refuse(UnknownKey, "no public key with the id %q is configured", kid)
	}
	if header["alg"] != algorithm {
		return Verdict{}, refuse(HeaderAlgorithm, "the JWS header's alg is %v; only %s is supported", header["alg"], algorithm)
	}
	if typ, given := header["typ"]; given && typ != "JWS" {
		return Verdict{}, refuse(HeaderType, "the JWS header's typ is %v, not JWS", typ)
	}
	// RFC 7515, 4.1.11: extensions marked as critical must be understood; no extension is supported.
	if _, given := header["crit"]; given {
		return Verdict{}, refuse(HeaderCritical, "the JWS header has critical extensions, which are not supported")
	}
	payload, err := segment.DecodeString(parts[1])
	if err != nil || !bytes.Equal(payload, canonical()) {
		return Verdict{}, refuse(PayloadDiffers, "the signature belongs to another definition")
	}
	signature, err := segment.DecodeString(parts[2])
	if err != nil || !ed25519.Verify(key, []byte(parts[0]+"."+parts[1]), signature) {
		return Verdict{}, refuse(BadSignature, "the signature is wrong")
	}
	return Verdict{Verified: true, KeyID: kid}, nil
}

func decodeHeader(s string) (map[string]any, bool) {
	text, err := segment.DecodeString(s)
	if err != nil {
		return nil, false
	}
	value, err := jsonvalue.Decode(text)
	if err != nil {
		return nil, false
	}
	header, ok := value.(map[string]any)
	return header, ok
}

// sameKeyID compares the block's keyId, which may be of any type, with the header's kid.
func sameKeyID(keyID any, kid string) bool {
	text, ok := keyID.(string)
	return ok && strings.TrimSpace(text) == kid
}
