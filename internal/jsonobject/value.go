package jsonobject

import (
	"iter"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
	"github.com/workflows-engine/workflows-engine/internal/suggest"
)

// Value is a field or an element with its place. The zero Value is absent. A reading method returns the zero value for
// one that is absent, and for one of another kind, which it reports.
type Value struct {
	// Plain is the decoded value.
	Plain   any
	present bool
	node    *jsonvalue.Node
	at      problem.Place
	nameAt  problem.Place // line and column of the field's name
	report  *Report
}

// Present reports whether the value is there, whatever it is.
func (v Value) Present() bool { return v.present }

// With is another value in the same place.
func (v Value) With(plain any) Value {
	v.Plain, v.node = plain, nil
	return v
}

// AtName returns the same value, reported at the name of the field.
func (v Value) AtName() Value {
	v.at.Line, v.at.Column = v.nameAt.Line, v.nameAt.Column
	return v
}

// Fail reports a mistake of the value. The keyword is a keyword of JSON Schema, as in problem.Finding. The finding
// may be changed until the next one is reported.
func (v Value) Fail(keyword, format string, args ...any) *problem.Finding {
	return v.report.add(problem.Finding{Keyword: keyword, Message: problem.Format(format, args...), At: v.at})
}

// is reports whether the value is there and of the kind.
func (v Value) is(kind jsonvalue.Kind) bool {
	if !v.present {
		return false
	}
	found := jsonvalue.KindOf(v.Plain)
	if found != kind {
		v.Fail("type", "expected %s, found %s", kind, found).Params = map[string]any{"type": kind.String()}
	}
	return found == kind
}

// Text reads a string.
func (v Value) Text() string {
	if !v.is(jsonvalue.String) {
		return ""
	}
	return v.Plain.(string)
}

// NonEmpty reads a string of at least one character.
func (v Value) NonEmpty() string {
	text := v.Text()
	if v.Plain == "" {
		v.Fail("minLength", "must not be empty")
	}
	return text
}

// NonBlank reads a string that is not only white space.
func (v Value) NonBlank() string {
	text, isText := v.Plain.(string)
	if isText && strings.TrimSpace(text) == "" {
		v.Fail("minLength", "must not be blank")
	}
	return v.Text()
}

// Choice reads a string that is one of those allowed.
func (v Value) Choice(allowed ...string) string {
	text := v.Text()
	if _, isText := v.Plain.(string); !isText || slices.Contains(allowed, text) {
		return text
	}
	f := v.Fail("enum", "expected %s, found %q", problem.OrList(allowed), text)
	f.Hint = suggest.DidYouMean(text, allowed)
	return ""
}

// Bool reads true or false.
func (v Value) Bool() bool { return v.is(jsonvalue.Bool) && v.Plain.(bool) }

// Number reads a number within the bounds; ok is false without one.
func (v Value) Number(low, high float64) (n float64, ok bool) {
	return v.number("a number", low, high, false)
}

// Whole is Number for a number without a fraction.
func (v Value) Whole(low, high int64) (n int64, ok bool) {
	f, ok := v.number("a whole number", float64(low), float64(high), true)
	return int64(f), ok
}

func (v Value) number(kind string, low, high float64, whole bool) (n float64, ok bool) {
	if !v.is(jsonvalue.Number) {
		return 0, false
	}
	n, _ = v.Plain.(float64)
	if n < low || n > high || whole && n != math.Trunc(n) {
		v.Fail("range", "expected %s from %s to %s, found %s", kind, decimal(low), decimal(high), decimal(n))
		return 0, false
	}
	return n, true
}

// decimal is a number as JSON has it.
func decimal(n float64) []byte { return jsonvalue.Canonical(n) }

// Elements lists the elements of an array, nil for other values.
func (v Value) Elements() []Value {
	if !v.is(jsonvalue.Array) {
		return nil
	}
	elements := make([]Value, len(v.Plain.([]any)))
	for i, plain := range v.Plain.([]any) {
		elements[i] = v.child(strconv.Itoa(i), plain, true)
		if v.node != nil {
			elements[i].set(v.node.Elements[i])
		}
	}
	return elements
}

// Texts reads an array of strings, nil for other values.
func (v Value) Texts() []string {
	elements := v.Elements()
	if elements == nil {
		return nil
	}
	texts := make([]string, len(elements))
	for i, e := range elements {
		texts[i] = e.Text()
	}
	return texts
}

// Map returns an object as it is, nil for other values.
func (v Value) Map() map[string]any {
	if !v.is(jsonvalue.Object) {
		return nil
	}
	return v.Plain.(map[string]any)
}

// TextMap reads an object whose values are strings.
func (v Value) TextMap() map[string]string {
	if v.Map() == nil {
		return nil
	}
	texts := map[string]string{}
	for name, member := range v.Members() {
		texts[name] = member.Text()
	}
	return texts
}

// Object returns an object to read field by field, nil for other values.
func (v Value) Object() *Object {
	if v.Map() == nil {
		return nil
	}
	return &Object{Value: v}
}

// Members iterates over the fields of an object that is used as a map: in the order of the text, duplicates included, for a
// parsed object, else sorted.
func (v Value) Members() iter.Seq2[string, Value] {
	return func(yield func(string, Value) bool) {
		values := v.Map()
		if v.node != nil {
			for _, m := range v.node.Members {
				if !yield(m.Name, v.member(m)) {
					return
				}
			}
			return
		}
		for _, name := range jsonvalue.Keys(values) {
			if !yield(name, v.child(name, values[name], true)) {
				return
			}
		}
	}
}

// child returns a field or an element without line and column.
func (v Value) child(name string, plain any, present bool) Value {
	present = present && (plain != nil || !v.report.NullIsAbsent)
	return Value{
		Plain: plain, present: present, report: v.report,
		at: problem.Place{Pointer: v.at.Pointer + "/" + jsonvalue.EscapePointer(name)},
	}
}

// member returns a field of a parsed object.
func (v Value) member(m jsonvalue.Member) Value {
	child := v.child(m.Name, m.Value.Value(), true)
	child.set(m.Value)
	child.nameAt = problem.Place{Line: m.Line, Column: m.Column}
	return child
}

func (v *Value) set(node *jsonvalue.Node) {
	v.node, v.at.Line, v.at.Column = node, node.Line, node.Column
}
