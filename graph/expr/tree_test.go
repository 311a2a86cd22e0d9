package expr_test

import (
	"errors"
	"reflect"

	"testing"

	"github.com/itchyny/gojq"

	"github.com/workflows-engine/workflows-engine/graph/expr"
)

// TestPartsAreComplete compares the parts of every term of a program with the queries found by reflection. Unary operators hold a term
// instead of a query and are looked at by their own.
func TestPartsAreComplete(t *testing.T) {
	t.Parallel()
	programs := []string{
		`.a[.b:.c]["x\(.d)"]?.e."f\(.g)"`, `.[.a]`, `."a\(.b)"`, `"x\(.a)y\(.b)"`, `@json "x\(.a)"`, `f(.a; .b)[.c]`, `{a: .b, (.c): .d, "e\(.f)": .g, "h\(.i)", $x}[.j]`,
		`[.a, .b][.c]`, `-(.a)`, `if .a then .b elif .c then .d else .e end`, `try .a catch .b`, `reduce .a as $x (.b; .c)`, `foreach .a as $x (.b; .c; .d)`,
		`label $l | .a, break $l`, `(.a | .b)[.c:]`, `..[.a]?`, `.[]`, `[]`, `{}`, `null`,
	}
	query, term := reflect.TypeFor[*gojq.Query](), reflect.TypeFor[*gojq.Term]()
	var below func(v reflect.Value, top bool) int
	below = func(v reflect.Value, top bool) (n int) {
		switch {
		case v.Kind() == reflect.Pointer && v.IsNil():
		case v.Type() == query, v.Type() == term && !top:
			return 1
		case v.Kind() == reflect.Pointer, v.Kind() == reflect.Interface:
			return below(v.Elem(), top)
		case v.Kind() == reflect.Slice && v.Type().Elem() != reflect.TypeFor[*gojq.Pattern]():
			for i := range v.Len() {
				n += below(v.Index(i), false)
			}
		case v.Kind() == reflect.Struct:
			for i := range v.NumField() {
				n += below(v.Field(i), false)
			}
		}
		return n
	}
	var check func(q *gojq.Query)
	check = func(q *gojq.Query) {
		if q == nil {
			return
		}
		check(q.Left)
		check(q.Right)
		if q.Term == nil {
			return
		}
		parts := expr.Parts(q.Term)
		if want := below(reflect.ValueOf(q.Term), true); len(parts) != want {
			t.Errorf("%s has %d queries; Parts lists %d", q, want, len(parts))
		}
		for _, part := range parts {
			check(part.Query)
		}
	}
	for _, src := range programs {
		q, err := gojq.Parse(src)
		if err != nil {
			t.Fatalf("%s: %v", src, err)
		}
		check(q)
	}
}

// TestTreeIsAsWritten: compiling rewrites the program, and analyses see what the author wrote.
func TestTreeIsAsWritten(t *testing.T) {
	t.Parallel()
	const src = `reduce .items[] as $i ({}; .[$i.id] += 1) | .a // empty`
	p, err := expr.Compile(src)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.EvalAt(map[string]any{"items": []any{}}, expr.Env{}); err != nil {
		t.Fatal(err)
	}
	if got := p.Tree().String(); got != src {
		t.Errorf("the tree is %s", got)
	}
	if tree := expr.Failing(src, errors.New("wrong")).Tree(); tree != nil {
		t.Errorf("a failing program has the tree %s", tree)
	}
}
