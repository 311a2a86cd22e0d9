package signing

import (
	"crypto/ed25519"
	"maps"
	"strings"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// Sign returns a copy of a definition, plain JSON, with a signature block in document.signature; it replaces an
// existing signature. The error is *problem.Error: VALIDATION_ERROR for a definition without a document object,
// USAGE_ERROR for a blank key id or a key of the wrong size.
func Sign(doc any, key ed25519.PrivateKey, keyID string) (map[string]any, error) {
	if keyID = strings.TrimSpace(keyID); keyID == "" {
		return nil, problem.New(problem.UsageError, "a signature needs a key id")
	}
	if len(key) != ed25519.PrivateKeySize {
		return nil, problem.New(problem.UsageError, "an Ed25519 private key has %d bytes, this one %d", ed25519.PrivateKeySize, len(key))
	}
	top, _ := Strip(doc).(map[string]any)
	head, ok := top["document"].(map[string]any)
	if !ok {
		return nil, problem.New(problem.ValidationError, "a definition without a document object cannot be signed").
			WithPlace(problem.Place{Pointer: "/document"})
	}
	// Written by hand because the header's member order is part of the form.
	header := append([]byte(`{"alg":"`+algorithm+`","typ":"JWS","kid":`), jsonvalue.Canonical(keyID)...)
	header = append(header, '}')
	signed := segment.EncodeToString(header) + "." + segment.EncodeToString(jsonvalue.Canonical(top))
	value := signed + "." + segment.EncodeToString(ed25519.Sign(key, []byte(signed)))

	top, head = maps.Clone(top), maps.Clone(head)
	head["signature"] = map[string]any{"alg": algorithm, "value": value, "keyId": keyID}
	top["document"] = head
	return top, nil
}
