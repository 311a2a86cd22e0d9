// Package jsonschema compiles and applies the JSON Schemas that workflow documents hold, with the protocol's verdicts
// (spec: definition, 7.3 and 14.2): draft 2020-12 only, formats never asserted, nothing fetched from files or network,
// unknown keywords ignored, values compared as doubles.
package jsonschema

// Schema is a compiled schema, safe for concurrent use.
type Schema struct{ impl any }

// Violation is one failed keyword.
type Violation struct {
	// InstancePath is a JSON pointer to the offending value (to the object, for required and additionalProperties).
	InstancePath string
	Keyword      string
	// Message is one sentence without the pointer.
	Message string
	Params  map[string]any
	// SchemaPath is the keyword's place in the schema, as a fragment such as "#/properties/a/type".
	SchemaPath string
}

// Compile compiles a decoded schema (a map or a bool). The error's text is one sentence for the author.
func Compile(raw any) (*Schema, error) { panic("not written yet") }

// Validate gives every violation of v, nil if there is none. v is plain decoded JSON.
func (s *Schema) Validate(v any) []Violation { panic("not written yet") }

// Text joins violations as "<pointer or /> <message>", separated by "; " (spec: execution, 0.3).
func Text(vs []Violation) string { panic("not written yet") }
