package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"strings"

	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// standardPrefix begins secrets whose rest is a key in base64.
const standardPrefix = "whsec_"

// keyOf returns the key that a secret stands for: what stands in base64 behind whsec_, or else the bytes of the text.
func keyOf(secret string) ([]byte, error) {
	encoded, ok := strings.CutPrefix(secret, standardPrefix)
	if !ok {
		return []byte(secret), nil
	}
	key, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil || len(key) == 0 {
		return nil, problem.New(problem.UsageError, "what follows %s in the secret is no base64", standardPrefix).
			WithHint("Write the key in base64 with padding, or a secret that does not begin with %s.", standardPrefix)
	}
	return key, nil
}

func sum(key []byte, parts ...string) []byte {
	mac := hmac.New(sha256.New, key)
	for _, p := range parts {
		mac.Write([]byte(p))
	}
	return mac.Sum(nil)
}

// signature is that of this engine's headers; milliseconds is the timestamp.
func signature(key []byte, milliseconds, body string) string {
	return "sha256=" + hex.EncodeToString(sum(key, milliseconds, ".", body))
}

// standardSignature is that of Standard Webhooks, one for each key.
func standardSignature(keys [][]byte, id, seconds, body string) string {
	signatures := make([]string, len(keys))
	for i, key := range keys {
		signatures[i] = "v1," + base64.StdEncoding.EncodeToString(sum(key, id, ".", seconds, ".", body))
	}
	return strings.Join(signatures, " ")
}
