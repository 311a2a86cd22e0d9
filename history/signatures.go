package history

import (
	"bytes"
	"slices"

	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// MaxSignatures is the maximum number of stored signatures of a definition: one for each past or present key. Further signatures are dropped
// instead of replacing others, because a process may trust the definition by any stored signature.
const MaxSignatures = 16

// AddSignatures returns the signatures in have plus those of more with other values, up to MaxSignatures. Stores use it.
func AddSignatures(have, more [][]byte) [][]byte {
	for _, block := range more {
		same := func(other []byte) bool { return bytes.Equal(signatureValue(other), signatureValue(block)) }
		if len(have) < MaxSignatures && !slices.ContainsFunc(have, same) {
			have = append(slices.Clip(have), bytes.Clone(block))
		}
	}
	return have
}

// signatureValue returns the value that identifies a signature block.
func signatureValue(block []byte) []byte {
	return bytes.TrimSpace(jsonvalue.StringText(jsonvalue.MemberText(block, "value")))
}
