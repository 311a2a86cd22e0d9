package jsonschema

import (
	"strings"

	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// MaxViolations bounds the violations that are listed of one value.
const MaxViolations = 1000

// Violation is one failed keyword.
type Violation struct {
	// InstancePath is a JSON pointer to the offending value (to the object, for required and additionalProperties).
	InstancePath string
	Keyword      string
	// Message is one sentence without the pointer.
	Message string
	// Params are the keyword's parameters in the protocol's form, for instance {"missingProperty":"id"} (spec:
	// definition, 6.1). Never nil.
	Params map[string]any
	// SchemaPath is the keyword's place in the schema, as a fragment such as "#/properties/a/type".
	SchemaPath string
}

// Text joins violations as "<pointer or /> <message>", separated by "; " (spec: execution, 0.3). It is an excerpt of
// problem.MaxText bytes: one wrong array can have thousands.
func Text(vs []Violation) string {
	var b strings.Builder
	for i, v := range vs {
		if i > 0 {
			b.WriteString("; ")
		}
		if v.InstancePath == "" {
			b.WriteByte('/')
		} else {
			b.WriteString(v.InstancePath)
		}
		b.WriteByte(' ')
		b.WriteString(v.Message)
	}
	return problem.Excerpt(b.String(), problem.MaxText)
}
