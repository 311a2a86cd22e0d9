package signing

import (
	"crypto/ed25519"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// Keys are the public keys for verification, by key id.
type Keys map[string]ed25519.PublicKey

// ParseKeys reads the key map: a JSON object from key id to key material, which is base64url or base64, padded or not,
// of 32 raw bytes or of a SubjectPublicKeyInfo. The error is *problem.Error with code USAGE_ERROR and names every key
// that cannot be used.
func ParseKeys(text []byte) (Keys, error) {
	node, bad := jsonvalue.Parse(text, 0, 0)
	if len(bad) > 0 {
		return nil, problem.New(problem.UsageError, "the public keys are not JSON: %s", bad[0].Message).
			WithPlace(problem.Place{Pointer: bad[0].Pointer, Line: bad[0].Line, Column: bad[0].Column})
	}
	raw, ok := node.Value().(map[string]any)
	if !ok {
		return nil, problem.New(problem.UsageError, "the public keys are not a JSON object").WithHint(`write {"key-id":"base64url of the key"}`)
	}
	return KeysFromValue(raw)
}

// KeysFromValue is ParseKeys for a decoded object.
func KeysFromValue(raw map[string]any) (Keys, error) {
	keys := make(Keys, len(raw))
	var bad []string
	for _, id := range slices.Sorted(maps.Keys(raw)) {
		material, _ := raw[id].(string)
		key, err := parsePublicKey(material)
		switch {
		case strings.TrimSpace(id) == "":
			bad = append(bad, "a key has a blank id")
		case err != nil:
			bad = append(bad, fmt.Sprintf("key %q: %v", id, err))
		default:
			keys[strings.TrimSpace(id)] = key
		}
	}
	if len(bad) > 0 {
		return nil, problem.New(problem.UsageError, "the public keys cannot be used: %s", strings.Join(bad, "; ")).
			WithHint("give each key as base64url of its 32 bytes or of its SubjectPublicKeyInfo")
	}
	return keys, nil
}

func parsePublicKey(material string) (ed25519.PublicKey, error) {
	data, err := decodeMaterial(material)
	if err != nil {
		return nil, err
	}
	if len(data) == ed25519.PublicKeySize {
		return data, nil
	}
	parsed, err := x509.ParsePKIXPublicKey(data)
	if err != nil {
		return nil, errors.New("neither 32 raw bytes nor a SubjectPublicKeyInfo")
	}
	key, ok := parsed.(ed25519.PublicKey)
	if !ok {
		return nil, fmt.Errorf("a %T, not an Ed25519 key", parsed)
	}
	return key, nil
}

// ParsePrivateKey reads a private key: base64url or base64, padded or not, of the 32 bytes of an Ed25519 seed or of a
// PKCS#8 structure. The error is *problem.Error with code USAGE_ERROR and never holds key material.
func ParsePrivateKey(material string) (ed25519.PrivateKey, error) {
	data, err := decodeMaterial(material)
	if err != nil {
		return nil, problem.New(problem.UsageError, "the private key cannot be used: %v", err)
	}
	if len(data) == ed25519.SeedSize {
		return ed25519.NewKeyFromSeed(data), nil
	}
	parsed, err := x509.ParsePKCS8PrivateKey(data)
	if err != nil {
		return nil, problem.New(problem.UsageError, "the private key is neither a 32-byte seed nor PKCS#8")
	}
	key, ok := parsed.(ed25519.PrivateKey)
	if !ok {
		return nil, problem.New(problem.UsageError, "the private key is a %T, not an Ed25519 key", parsed)
	}
	return key, nil
}

func decodeMaterial(material string) ([]byte, error) {
	material = strings.TrimRight(strings.TrimSpace(material), "=")
	if material == "" {
		return nil, errors.New("not a string with key material")
	}
	material = strings.NewReplacer("+", "-", "/", "_").Replace(material)
	data, err := base64.RawURLEncoding.DecodeString(material)
	if err != nil {
		return nil, errors.New("not base64")
	}
	return data, nil
}
