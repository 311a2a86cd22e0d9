package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strings"

	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// standardPrefix precedes a key in base64.
const standardPrefix = "whsec_"

// keyOf returns the key of a secret: the base64 text after whsec_, or else the bytes of the text.
func keyOf(secret string) ([]byte, error) {
	encoded, ok := strings.CutPrefix(secret, standardPrefix)
	if !ok {
		return []byte(secret), nil
	}
	key, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil || len(key) == 0 {
		return nil, problem.New(problem.UsageError, "the secret after %s must be base64", standardPrefix).
			WithHint("Write the key in base64 with padding, or a secret without the prefix %s.", standardPrefix)
	}
	return key, nil
}

// signature returns the value of the header webhook-signature: one signature for each key.
func signature(keys [][]byte, id, seconds string, body []byte) string {
	signatures := make([]string, len(keys))
	for i, key := range keys {
		mac := hmac.New(sha256.New, key)
		fmt.Fprintf(mac, "%s.%s.%s", id, seconds, body)
		signatures[i] = "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
	}
	return strings.Join(signatures, " ")
}
