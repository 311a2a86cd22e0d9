// Package definition reads workflow definitions: strict parsing with positions, canonical JSON and hash, every check
// with a code and a place, and compiling to an immutable Program that the machine walks (spec: definition).
//
//	doc, err := definition.Parse(src)              // text level: err holds every text problem
//	prog, findings := definition.Compile(doc, definition.Options{})
//
// prog is nil if a finding is an error; warnings come beside a program.
//
// A finding is an error only where no run can complete: a document that some run of the protocol's reference engine
// completes is never rejected. A fault that a run can avoid is a warning, and the Program keeps its problem at its place, so that
// the node fails when it is reached.
package definition

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"sync"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// Bounds of a definition's text. They bind Parse, ParseYAML and FromValue.
const (
	// MaxDepth is the number of nested objects and arrays.
	MaxDepth = jsonvalue.MaxDepth
	// MaxBytes is the size of the text in bytes.
	MaxBytes = 8 << 20
)

// Name returns document.name, or "".
func (d *Document) Name() string {
	root, _ := d.value.(map[string]any)
	about, _ := root["document"].(map[string]any)
	name, _ := about["name"].(string)
	return name
}

// Document is a parsed definition: its value, its canonical text, and the place of each part in the source. It is
// immutable and safe for concurrent use.
//
// Signature blocks (spec: cli-and-config, 15.1) are taken off when a document is made: Value, Canonical and Hash do not
// contain them, so that a signed definition runs as the same definition as the unsigned one.
type Document struct {
	root      *jsonvalue.Node
	value     any
	signature map[string]any
	canonical func() []byte
	hash      func() string
	programs  *programs
}

func newDocument(root *jsonvalue.Node) *Document {
	d := &Document{programs: new(programs)}
	d.root, d.signature = stripSignatures(root)
	d.value = d.root.Value()
	d.canonical = sync.OnceValue(func() []byte { return jsonvalue.Canonical(d.value) })
	d.hash = sync.OnceValue(func() string {
		sum := sha256.Sum256(d.canonical())
		return hex.EncodeToString(sum[:])
	})
	return d
}

// Value is the document as plain JSON, without signature blocks. Shared: do not change it.
func (d *Document) Value() any { return d.value }

// Canonical is the canonical JSON text, without signature members (spec: execution, 9.4). Shared: do not change it.
func (d *Document) Canonical() []byte { return d.canonical() }

// Hash is the definition hash: lower-case hex SHA-256 of Canonical.
func (d *Document) Hash() string { return d.hash() }

// Signature is the document's signature block as written, or nil. A block in document.signature goes
// before one at the root (spec: cli-and-config, 15.1). Nothing has been verified. Shared: do not change it.
func (d *Document) Signature() map[string]any { return d.signature }

// Place returns the place of the value at a JSON pointer; without line and column if the document has no value there, or
// was made of a decoded value.
func (d *Document) Place(pointer string) problem.Place {
	at := problem.Place{Pointer: pointer}
	if n := d.root.Lookup(pointer); n != nil {
		at.Line, at.Column = n.Line, n.Column
	}
	return at
}

// NamePlace returns the place of the name of the field at a JSON pointer, which may be absent as with Place.
func (d *Document) NamePlace(pointer string) problem.Place {
	at := problem.Place{Pointer: pointer}
	slash := strings.LastIndexByte(pointer, '/')
	if slash < 0 {
		return at
	}
	object, name := d.root.Lookup(pointer[:slash]), jsonvalue.UnescapePointer(pointer[slash+1:])
	if object == nil {
		return at
	}
	for _, m := range object.Members {
		if m.Name == name {
			at.Line, at.Column = m.Line, m.Column
		}
	}
	return at
}

// Signed returns the document with a signature block, which is kept beside a stored definition; nil removes it.
func (d *Document) Signed(signature map[string]any) *Document {
	signed := *d
	signed.signature = signature
	return &signed
}
