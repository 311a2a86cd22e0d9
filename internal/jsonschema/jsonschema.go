// Package jsonschema compiles and applies the JSON Schemas that workflow documents hold, with the protocol's verdicts
// (spec: definition, 7.3 and 14.2): draft 2020-12 only, formats never asserted, nothing fetched from files or network,
// unknown keywords ignored, values compared as doubles.
//
//	s, err := jsonschema.Compile(raw)   // raw is decoded JSON; err is a *CompileError
//	for _, v := range s.Validate(state) {
//		fmt.Println(v.InstancePath, v.Message)
//	}
//
// Patterns are RE2, so look-around and back-references are compile errors that say so; \uXXXX, which RE2 does not know,
// is translated. Everything else that the library beneath would do differently from the protocol is put right before
// it sees the schema.
package jsonschema

import (
	"sync"

	lib "github.com/santhosh-tekuri/jsonschema/v5"
)

// Schema is a compiled schema, safe for concurrent use.
type Schema struct {
	root  *lib.Schema
	notes []Problem
	// places is built when the first violation has to be described.
	places func() locations
}

func newSchema(root *lib.Schema, notes []Problem) *Schema {
	return &Schema{root: root, notes: notes, places: sync.OnceValue(func() locations { return locate(root) })}
}

// Notes lists what the schema says in a way that other engines read differently.
func (s *Schema) Notes() []Problem { return s.notes }

// Validate returns every violation of v, nil if there is none. v is plain decoded JSON. The order is fixed: by place in
// the instance, then by place in the schema, what failed inside an alternative before the alternative.
func (s *Schema) Validate(v any) (violations []Violation) {
	defer func() {
		// The library answers impossible values (NaN, Go types that are no JSON) with panics of several kinds.
		if r := recover(); r != nil {
			violations = wholeValue("type", "holds a value that is not plain JSON")
		}
	}()
	err := s.root.Validate(v)
	switch err := err.(type) {
	case nil:
		return nil
	case *lib.ValidationError:
		return flatten(err, v, s.places())
	case lib.InfiniteLoopError:
		return wholeValue("$ref", "cannot be checked: the schema refers to itself without end")
	default:
		return wholeValue("type", "holds a value that is not plain JSON")
	}
}

// wholeValue is the violation of a value that cannot be checked.
func wholeValue(keyword, message string) []Violation {
	return []Violation{{Keyword: keyword, Message: message, Params: map[string]any{}, SchemaPath: "#"}}
}
