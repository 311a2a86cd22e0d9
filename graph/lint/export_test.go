package lint

import (
	"github.com/itchyny/gojq"

	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// Admits reports whether what a program puts out, as a list, fits what the lint infers of it for a state of a schema.
func Admits(q *gojq.Query, schema any, outputs []any) bool {
	w := &walker{budget: new(budget(maxWork)), compared: new(budget), quiet: 1}
	in := schemaShape(schema).limited(object)
	if in.kinds == nothing {
		in = only(object)
	}
	out := w.query(q, in)
	for _, v := range outputs {
		if !out.admits(v) {
			return false
		}
	}
	return true
}

// Fails reports whether the lint warns that a program fails for each state of a schema.
func Fails(q *gojq.Query, schema any) bool {
	fails := false
	w := &walker{budget: new(budget(maxWork)), compared: new(budget), report: func(code problem.Code, _, _ string) {
		fails = fails || code == problem.ExpressionFailed
	}}
	w.query(q, schemaShape(schema).limited(object))
	return fails
}

// AdmitsValue reports whether the shape of a schema admits a value.
func AdmitsValue(schema, v any) bool { return schemaShape(schema).admits(v) }

// Known lints a definition and returns all that the lint knows of it in the end.
func Known(d *definition.Document) any {
	program, _ := definition.Compile(d, definition.Options{})
	if program == nil {
		return nil
	}
	l := newLinter(program, nil)
	l.check()
	return l
}

func (s *shape) admits(v any) bool {
	if s == nil || s.unsure {
		return true
	}
	if s.kinds&kindOf(v) == nothing {
		return false
	}
	switch v := v.(type) {
	case string:
		if s.texts == nil {
			return true
		}
		for _, t := range s.texts {
			if t == v {
				return true
			}
		}
		return false
	case []any:
		for _, e := range v {
			if !s.items.admits(e) {
				return false
			}
		}
	case map[string]any:
		for _, name := range jsonvalue.Keys(v) {
			member := s.members[name]
			if member == nil {
				if member = s.rest; member == nil {
					return false
				}
			}
			if !member.admits(v[name]) {
				return false
			}
		}
	}
	return true
}

// Takes lists for each function with known inputs which kinds these are, in the order of kinds.
func Takes() map[string][]bool {
	out := map[string][]bool{}
	for name, k := range takes {
		for i := range kindNames {
			out[name] = append(out[name], k&(1<<i) != 0)
		}
	}
	return out
}

// Failures are the codes that nodes fail with.
func Failures() []problem.Code { return problem.Failures }

// Parts returns what Compile finds in a document with errors: the findings of definition.Compile, and those about single parts.
func Parts(d *definition.Document) problem.Findings {
	draft, _ := definition.Draft(d, definition.Options{})
	l := newLinter(draft, nil)
	l.checkParts()
	return l.all()
}
