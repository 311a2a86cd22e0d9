package problem

import (
	"cmp"
	"fmt"
	"slices"
)

// Severity determines whether a Finding rejects the document.
type Severity string

// The two severities: an error rejects the document, a warning does not.
const (
	SeverityError   Severity = "error"
	SeverityWarning Severity = "warning"
)

// Finding is one problem of a document: the fault, its place, and a fix.
type Finding struct {
	Code     Code
	Severity Severity
	At       Place
	// Message is one plain sentence.
	Message string
	// Hint is the fix. It may be empty.
	Hint string
	// Keyword is the JSON Schema keyword that failed ("type", "required", "additionalProperties", "oneOf", …), or "profile" for
	// a rule beyond the schema. The conformance vectors expect it together with At.Pointer.
	Keyword string
	// SchemaPath is the path in the schema, "" without one.
	SchemaPath string
	// Params are the keyword's parameters in the protocol's form, for instance {"missingProperty":"id"}.
	Params map[string]any
}

// Findings is a list of problems of one document.
type Findings []Finding

// HasErrors reports whether the findings reject the document.
func (fs Findings) HasErrors() bool {
	return slices.ContainsFunc(fs, func(f Finding) bool { return f.Severity == SeverityError })
}

// Sort sorts by line, column, pointer and code, so that a document always has the same list.
func (fs Findings) Sort() {
	slices.SortStableFunc(fs, func(a, b Finding) int {
		return cmp.Or(
			cmp.Compare(a.At.Line, b.At.Line),
			cmp.Compare(a.At.Column, b.At.Column),
			cmp.Compare(a.At.Pointer, b.At.Pointer),
			cmp.Compare(a.Code, b.Code),
		)
	})
}

// MoreErrors returns " (and N more errors)", which ends a message that names the first of several errors.
func MoreErrors(n int) string {
	if n == 1 {
		return " (and 1 more error)"
	}
	return fmt.Sprintf(" (and %d more errors)", n)
}
