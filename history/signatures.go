package history

import (
	"bytes"
	"slices"

	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// MaxSignatures is how many signatures of a definition are kept: one for each key that signs it, those of the past included. One that
// comes later is not, because a process may trust the definition by any that is there.
const MaxSignatures = 16

// AddSignatures returns the signatures of a definition and those of more whose value is not among them, up to MaxSignatures. Stores use it.
func AddSignatures(have, more [][]byte) [][]byte {
	for _, block := range more {
		same := func(other []byte) bool { return bytes.Equal(signatureValue(other), signatureValue(block)) }
		if len(have) < MaxSignatures && !slices.ContainsFunc(have, same) {
			have = append(slices.Clip(have), bytes.Clone(block))
		}
	}
	return have
}

// signatureValue is what makes a signature block the same as another.
func signatureValue(block []byte) []byte {
	return bytes.TrimSpace(jsonvalue.StringText(jsonvalue.MemberText(block, "value")))
}
