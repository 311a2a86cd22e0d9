// Package jsonobject reads the fields of JSON objects: settings, manifests, tool arguments, test vectors.
//
//	report := jsonobject.Report{Code: problem.UsageError}
//	o := report.Object(values)
//	name, limit := o.Require("name").Text(), o.Get("limit")
//	if n, ok := limit.Whole(1, 100); ok { … }
//	o.Close() // a field that was not read is unknown
//	if len(report.Findings) > 0 { … }
//
// Reading continues after a mistake: the value is then the zero value, and the report has a finding with the place,
// the expected and the found value. Check the report once, at the end.
package jsonobject

import (
	"slices"
	"strings"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
	"github.com/workflows-engine/workflows-engine/internal/suggest"
)

// Report collects the mistakes of one document.
type Report struct {
	// Code is the code of the findings.
	Code problem.Code
	// NullIsAbsent makes a field whose value is null count as absent.
	NullIsAbsent bool
	// Limit is the largest number of findings, 0 for any number. Omitted counts the findings beyond it.
	Limit, Omitted int
	Findings       problem.Findings
}

// Object reads a decoded object. Its findings have a pointer, but neither line nor column.
func (r *Report) Object(values map[string]any) *Object {
	return &Object{Value: r.Value(values)}
}

// Value is a decoded value with the pointer "".
func (r *Report) Value(plain any) Value { return Value{Plain: plain, present: true, report: r} }

// Node reads a parsed value; nil, and a finding, if it is not an object.
func (r *Report) Node(node *jsonvalue.Node) *Object {
	v := r.Value(node.Value())
	v.node, v.at = node, problem.Place{Line: node.Line, Column: node.Column}
	return v.Object()
}

func (r *Report) full() bool { return r.Limit > 0 && len(r.Findings) >= r.Limit }

// add keeps a finding as long as there is room. The pointer is valid until the next finding.
func (r *Report) add(f problem.Finding) *problem.Finding {
	switch {
	case r == nil:
		return &f
	case r.full():
		r.Omitted++
		return &f
	}
	f.Code, f.Severity = r.Code, problem.SeverityError
	r.Findings = append(r.Findings, f)
	return &r.Findings[len(r.Findings)-1]
}

// Object is an object whose fields are read one by one. It remembers the fields that were read. A nil Object has no
// fields and reports nothing.
type Object struct {
	Value
	known []string
}

// Get returns a field, which may be absent.
func (o *Object) Get(name string) Value {
	if o == nil {
		return Value{}
	}
	o.Known(name)
	if o.node != nil {
		for _, m := range slices.Backward(o.node.Members) { // of duplicates the last one counts
			if m.Name == name {
				return o.member(m)
			}
		}
	}
	plain, present := o.Map()[name]
	return o.child(name, plain, present)
}

// Require is Get for a required field.
func (o *Object) Require(name string) Value {
	v := o.Get(name)
	if o != nil && !v.present {
		o.Missing(name)
	}
	return v
}

// Missing reports that a field is missing. As in the protocol's schema, the place is the object's.
func (o *Object) Missing(name string) *problem.Finding {
	f := o.Fail("required", "missing field %q", name)
	f.Params = map[string]any{"missingProperty": name}
	return f
}

// Known names fields that the object may have although they are not read.
func (o *Object) Known(names ...string) {
	for _, name := range names {
		if !slices.Contains(o.known, name) {
			o.known = append(o.known, name)
		}
	}
}

// Close reports the fields that were not read, each of them once. The caller may change these findings.
func (o *Object) Close() problem.Findings {
	if o == nil {
		return nil
	}
	before, known := len(o.report.Findings), slices.Clone(o.known)
	for name, v := range o.Members() {
		if slices.Contains(o.known, name) {
			continue
		}
		o.Known(name)
		if o.report.full() {
			o.report.Omitted++
			continue
		}
		f := v.AtName().Fail("additionalProperties", "unknown field %q", name)
		f.Params = map[string]any{"additionalProperty": name}
		if f.Hint = suggest.DidYouMean(name, known); f.Hint == "" && len(known) > 0 {
			f.Hint = "known fields: " + strings.Join(known, ", ")
		}
	}
	return o.report.Findings[before:]
}

// Describe is a finding in one line: place, message and hint. The place is the path from root, which may be "".
func Describe(root string, f problem.Finding) string {
	path := Path(f)
	if len(path) > 0 && (f.Keyword == "required" || f.Keyword == "additionalProperties") {
		path = path[:len(path)-1] // the message names the field
	}
	if root != "" {
		path = append([]string{root}, path...)
	}
	if len(path) == 0 {
		return Message(f)
	}
	return strings.Join(path, ".") + ": " + Message(f)
}

// Message is the message of a finding, with its hint.
func Message(f problem.Finding) string {
	if f.Hint == "" {
		return f.Message
	}
	return f.Message + "; " + f.Hint
}

// Path lists the field names and indexes that lead to the place of a finding. A missing field is the last of its
// path.
func Path(f problem.Finding) []string {
	path := jsonvalue.PointerTokens(f.At.Pointer)
	if name, ok := f.Params["missingProperty"].(string); ok {
		path = append(path, name)
	}
	for i, name := range path {
		path[i] = problem.Excerpt(name, problem.MaxQuoted)
	}
	return path
}
