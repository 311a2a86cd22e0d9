// Package definition reads workflow definitions: strict parsing with positions, canonical JSON and hash, every check
// with a code and a place, and compiling to an immutable Program that the machine walks (spec: definition).
//
//	doc, err := definition.Parse(src)              // text level: err holds every text problem
//	prog, findings := definition.Compile(doc, definition.Options{})
//
// prog is nil if a finding is an error; warnings come beside a program.
package definition

import (
	"time"

	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// Document is a parsed definition: its value, its canonical text, and where each part stands in the source.
type Document struct {
	impl any
}

// Parse reads a JSON definition strictly: UTF-8, one value, no duplicate members, no __proto__, no lone surrogates,
// numbers within a double, bounded depth and size. The error is *problem.Error with code VALIDATION_ERROR and all
// Findings of the text.
func Parse(src []byte) (*Document, error) { panic("not written yet") }

// ParseYAML reads a definition written in YAML with the same strictness; positions are those of the YAML text.
func ParseYAML(src []byte) (*Document, error) { panic("not written yet") }

// FromValue makes a document of a decoded value, for instance an MCP argument. Its findings have pointers but no
// lines.
func FromValue(v any) (*Document, error) { panic("not written yet") }

// Value is the document as plain JSON. Shared: do not change it.
func (d *Document) Value() any { panic("not written yet") }

// Canonical is the canonical JSON text, without signature members (spec: execution, 9.4).
func (d *Document) Canonical() []byte { panic("not written yet") }

// Hash is the definition hash: lower-case hex SHA-256 of Canonical.
func (d *Document) Hash() string { panic("not written yet") }

// Options change what Compile accepts. The zero value is the protocol's verdict.
type Options struct {
	// AllowInterruptInBranch lifts the rule against interrupts on parallel branches.
	AllowInterruptInBranch bool
}

// Compile checks a document in one pass and compiles it. Findings are sorted; the program is nil if one of them is an
// error.
func Compile(d *Document, o Options) (*Program, problem.Findings) { panic("not written yet") }

// ParseDuration reads the protocol's durations: digits and an optional unit ms, s, m, h (spec: definition, 10.1).
func ParseDuration(s string) (time.Duration, error) { panic("not written yet") }

func retryDelay(r *Retry, next int) time.Duration { panic("not written yet") }

func boundedMilliseconds(ms float64) time.Duration { panic("not written yet") }
