// Package jsonschema compiles and applies the JSON Schemas in workflow documents, with the protocol's verdicts (spec:
// definition, 7.3 and 14.2): nothing is fetched from files or network, unknown keywords are ignored, values are
// compared as doubles, and a format is asserted only if Options say so. A schema without $schema is one of draft
// 2020-12.
//
//	s, err := jsonschema.Compile(raw)   // raw is decoded JSON; err is a *CompileError
//	for _, v := range s.Validate(state) {
//		fmt.Println(v.InstancePath, v.Message)
//	}
//
// Patterns are ECMAScript's in Unicode mode. Go's engine runs most of them, package backtrack those with look-around,
// back-references or long repeats, within MaxSteps. Other differences between the library and the protocol are
// removed by rewriting the schema first (prepare.go).
package jsonschema

import (
	"sync"

	lib "github.com/santhosh-tekuri/jsonschema/v5"
)

// Schema is a compiled schema, safe for concurrent use.
type Schema struct {
	root *lib.Schema
	// older is set for a dialect before 2020-12.
	older            bool
	notes, unchecked []Problem
	places           locations
	prices           *prices
	// mu guards budget, which is nil if Go's engine runs every pattern.
	mu     sync.Mutex
	budget *budget
}

// Notes lists the parts of the schema that other engines read differently.
func (s *Schema) Notes() []Problem { return s.notes }

// Unchecked lists the formats that the schema names and that are not asserted.
func (s *Schema) Unchecked() []Problem { return s.unchecked }

// Older reports whether the schema names a dialect before draft 2020-12, which the protocol's engine refuses.
func (s *Schema) Older() bool { return s.older }

// Validate returns the violations of v, nil if it is valid: at most MaxViolations, and the first ones of a large
// array or object. v is plain decoded JSON. The order is fixed: by place in the instance, then by place in the
// schema, failures inside an alternative before the alternative. A check that could exceed MaxCheck or MaxCheckBytes
// is not started: that is a violation too.
func (s *Schema) Validate(v any) (violations []Violation) {
	defer func() {
		// The library panics in several ways on values that are not JSON (NaN, other Go types).
		if r := recover(); r != nil {
			violations = wholeValue("type", "holds a value that is not plain JSON")
		}
	}()
	if over := s.prices.check(s.root, v); over != nil {
		return over.violation()
	}
	if s.budget != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		*s.budget = budget{steps: MaxSteps}
	}
	err := s.root.Validate(v)
	if s.budget != nil && s.budget.spent != nil {
		return wholeValue("pattern", "cannot be checked: the pattern "+quote(s.budget.spent.source)+
			" may take too many steps over this text; write it with fewer repeats inside repeats or side by side")
	}
	switch err := err.(type) {
	case nil:
		return nil
	case *lib.ValidationError:
		return flatten(err, v, s.places)
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
