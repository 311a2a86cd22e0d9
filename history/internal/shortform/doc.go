// Package shortform writes and reads payloads of records in a short form: large values are kept once, as blobs, and a large state is written
// as a delta to the previous state. It is pure: a store keeps the rows and the blobs.
//
// [Encoder] writes the payloads of a batch. A small payload is written whole, in the protocol's form. The others are short, and their rows
// must be marked with [Version], so that other engines do not read the text as a whole record. The request in an ActivityRequested, which no
// other engine reads, is written short in any row, without the mark. [Decoder] reads short payloads. history/historysql/FORMAT.md describes
// the form, under "Large values".
//
// A store provides the row of the state before a batch ([Prior]), and access to blobs and to the rows of states ([Shelf]).
package shortform

import (
	"crypto/sha256"
	"encoding/hex"

	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// Version is the record_schema_version of short rows. This engine numbers its own forms from 1000, far from any future version of the
// protocol.
const Version = 1000

// Markers are field names that replace values in a short payload. A workflow's field whose name begins with "$" is written
// with one more "$", so that it cannot be mistaken for a marker.
const (
	markBlob     = "$blob"     // the value is the content of a blob
	markState    = "$state"    // the state of another record
	markPart     = "$part"     // an object of fields of another record's state
	markSnapshot = "$snapshot" // the state is written whole
	markDelta    = "$delta"    // the state is written as changes
)

// Blob is a large value stored separately.
type Blob struct {
	Hash    string // HashOf the content
	Content string // JSON, which may refer to other blobs
}

// Prior finds the row of the state before a batch.
type Prior interface {
	// ShortState returns the payload of the StateUpdated with the given seq in the batch's run. It returns nil if the row is missing, not
	// short, or unreadable; the next state is then written whole.
	ShortState(seq int64) []byte
}

// Shelf provides the blobs and states that the short rows of a run refer to.
type Shelf interface {
	// Blob returns the content of a blob, or "" if it is missing.
	Blob(hash string) (string, error)
	// States calls each with the payloads of the short StateUpdated rows with seq first to last, in order.
	States(executionID string, first, last int64, each func(seq int64, payload []byte) error) error
}

// HashOf returns the SHA-256 of a text in hexadecimal, its name.
func HashOf(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// isScalar reports whether a value contains no other values.
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
