package definition

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/jsonschema"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
	"github.com/workflows-engine/workflows-engine/internal/suggest"
)

// compileState reads the state_schema: its reducers and the schema itself (spec: execution, 3.2 and 3.3).
func (c *compiler) compileState() {
	n := c.document.root.Get("state_schema")
	if n == nil || n.Kind != jsonvalue.Object {
		return
	}
	raw := c.document.value.(map[string]any)["state_schema"].(map[string]any)
	at := (*path)(nil).member("state_schema")
	c.checkReducers(n, raw, at)
	rules, err := NewStateRules(withoutCustom(raw))
	if err != nil {
		c.findings = append(c.findings, schemaFindings(problem.StateSchemaInvalid, problem.SeverityError, err, n, at, nil)...)
		return
	}
	c.rules = rules
	c.literals = NewLiteralCheck(raw, rules)
	c.noteSchema(rules.Schema, n, at, nil, checked)
}

func (c *compiler) checkReducers(n *jsonvalue.Node, raw map[string]any, at *path) {
	properties := n.Get("properties")
	if properties == nil || properties.Kind != jsonvalue.Object {
		return
	}
	reducers := Reducers(raw)
	for _, m := range properties.Members {
		reducer, named := reducers[m.Name]
		if !named {
			continue
		}
		place := at.member("properties").member(m.Name)
		value, where := m.Value.Get("reducer"), place.member("reducer")
		switch {
		case reducer == "custom":
			c.fail(problem.ReducerCustom, value, where, nil, "custom reducers are refused by the protocol",
				"use overwrite, append or merge")
		case !reducer.Known():
			c.refuse(problem.ReducerUnknown, value, where, nil,
				fmt.Sprintf("unknown reducer %s: a run fails when %q is first written", strings.TrimPrefix(describeValue(value), "the text "), clip(m.Name)),
				reducerHint(value))
		case reducer == ReducerAppend && excludesType(m.Value, "array"):
			c.warn(problem.ReducerType, value, where, nil,
				fmt.Sprintf("append makes %q an array, which its type forbids", clip(m.Name)), `write "type": "array"`)
		case reducer == ReducerMerge && excludesType(m.Value, "object"):
			c.warn(problem.ReducerType, value, where, nil,
				fmt.Sprintf("merge makes %q an object, which its type forbids", clip(m.Name)), `write "type": "object"`)
		}
	}
}

func reducerHint(value *jsonvalue.Node) string {
	if hint := suggest.DidYouMean(value.Str, []string{"overwrite", "append", "merge"}); hint != "" {
		return hint
	}
	return "the reducers are overwrite, append and merge"
}

// excludesType reports whether a schema has a type that leaves out the given one.
func excludesType(schema *jsonvalue.Node, name string) bool {
	switch t := schema.Get("type"); {
	case t == nil:
		return false
	case t.Kind == jsonvalue.String:
		return t.Str != name
	case t.Kind == jsonvalue.Array:
		return !slices.ContainsFunc(t.Elements, func(e *jsonvalue.Node) bool { return isText(e, name) })
	}
	return false
}

// withoutCustom returns the schema without the reducers that have been rejected, so that the rest can be compiled.
func withoutCustom(schema map[string]any) map[string]any {
	properties, _ := schema["properties"].(map[string]any)
	clean := maps.Clone(properties)
	for key, property := range properties {
		if p, ok := property.(map[string]any); ok && p["reducer"] == "custom" {
			p = maps.Clone(p)
			delete(p, "reducer")
			clean[key] = p
		}
	}
	if properties == nil {
		return schema
	}
	out := maps.Clone(schema)
	out["properties"] = clean
	return out
}

// schemaFindings returns a finding for each problem of a schema that does not compile, at the place in the document. at is
// the member that holds the schema.
func schemaFindings(
	code problem.Code, severity problem.Severity, err error, n *jsonvalue.Node, at *path, v *vertex,
) problem.Findings {
	ce, ok := errors.AsType[*jsonschema.CompileError](err)
	if !ok {
		return problem.Findings{finding(code, severity, n, at.pointer(), v, err.Error(), "")}
	}
	var out problem.Findings
	for _, p := range ce.Problems {
		place := n.Lookup(p.Pointer)
		if place == nil {
			place = n
		}
		out = append(out, finding(code, severity, place, at.pointer()+p.Pointer, v, at.name+": "+p.Message, p.Hint))
	}
	return out
}

// noteSchema warns of keywords of a valid schema whose effect may surprise its author or differs in other engines.
func (c *compiler) noteSchema(s *jsonschema.Schema, n *jsonvalue.Node, at *path, v *vertex, use schemaUse) {
	severity := problem.SeverityWarning
	note := func(code problem.Code, p jsonschema.Problem) {
		c.findings = append(c.findings, finding(code, severity,
			n.Lookup(p.Pointer), at.pointer()+p.Pointer, v, at.name+": "+p.Message, p.Hint))
	}
	for _, p := range s.Notes() {
		note(problem.SchemaPortability, p)
	}
	for _, p := range s.Unchecked() {
		note(problem.FormatUnchecked, p)
	}
	if s.Older() && use == checked {
		if c.options.Protocol {
			severity = problem.SeverityError
		}
		note(problem.SchemaPortability, jsonschema.Problem{
			Pointer: "/$schema", Message: "other engines of the protocol refuse dialects before draft 2020-12",
			Hint: "write " + jsonschema.Dialect + ", if the schema means the same in it",
		})
	}
}
