// Package shortform writes and reads payloads of records in a short form: large values are kept once, as blobs, and a large state
// is written as what changed since the state before it. It is pure: a store keeps the rows and the blobs.
//
// [Encoder] writes the payloads of a batch. A payload that is small is written whole, as the protocol has it. The others are
// short, and their rows must be marked with [Version], so that no other engine takes the text for the record. The request in an
// ActivityRequested, which no other engine reads, is written short in any row, without the mark. [Decoder] reads short payloads. history/historysql/FORMAT.md describes the form, under "Large values".
//
// A store provides the two things that the package cannot know: the row of the state before a batch ([Prior]), and where blobs
// and the rows of states are found ([Shelf]).
package shortform

import (
	"crypto/sha256"
	"encoding/hex"

	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// Version is the record_schema_version of rows that are not complete in themselves. This engine counts its own forms from
// 1000, far from any version of the protocol that another engine may write one day.
const Version = 1000

// The members that stand for values in a short payload. A member of the workflow whose name begins with "$" is written with one
// "$" more, so that none can be mistaken for these.
const (
	markBlob     = "$blob"     // the value is the content of a blob
	markState    = "$state"    // the state is that of another record
	markPart     = "$part"     // the object is made of members of another record's state
	markSnapshot = "$snapshot" // the state is written whole
	markDelta    = "$delta"    // the state is written as what has changed
)

// Blob is a large value that is kept by itself.
type Blob struct {
	Hash    string // HashOf the content
	Content string // JSON, which may refer to other blobs
}

// Prior finds the row of the state before a batch.
type Prior interface {
	// ShortState returns the payload of the StateUpdated with the given seq in the batch's run. It returns nil if there is no
	// such row, if it is not short, or if it cannot be read; the next state is then written whole.
	ShortState(seq int64) []byte
}

// Shelf finds what the short rows of a run refer to.
type Shelf interface {
	// Blob returns the content of a blob, "" if there is none.
	Blob(hash string) (string, error)
	// States calls each with the payloads of the short StateUpdated rows from one seq to another, in order.
	States(executionID string, first, last int64, each func(seq int64, payload []byte) error) error
}

// HashOf returns the name of a text: its SHA-256 in hexadecimal.
func HashOf(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// isScalar reports whether a value has no values inside.
func isScalar(v any) bool {
	switch v.(type) {
	case nil, bool, float64, string:
		return true
	}
	return false
}

func unreadable(format string, args ...any) error {
	return problem.New(problem.HistoryCorrupt, format, args...)
}
