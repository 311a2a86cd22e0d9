package definition_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// TestIndependentErrors: all independent errors are reported at once. A wrong id has its finding whatever else is wrong with its node or
// edge, and a mistake has one finding.
func TestIndependentErrors(t *testing.T) {
	t.Parallel()
	const text = `document: {schema: 'https://agent-workflow.dev/schemas/workflow-definition.json', name: n, version: 1.0.0}
x-workflows-engine: {uses: [catch]}
state_schema: {type: object, properties: {name: {type: string}}}
nodes:
  - {id: begin, type: start}
  - {id: greet, type: step, config: {handler: a}}
  - {id: choose, type: switch, config: {cases: [{when: .a, target: finish}], default: last}}
  - {id: last, type: llm_call, config: {model: m, system_prompt: s}}
  - {id: finish, type: end}
edges:
  - {source: __start__, target: begin}
  - {source: begin, target: greet}
  - {source: greet, target: choose}
  - {source: last, target: finish}
`
	const schema, unknown = problem.DefinitionSchema, problem.UnknownNode
	for name, tt := range map[string]struct {
		changes []string // old and new text in turn
		want    []string
	}{
		"unknown type": {
			[]string{"type: step", "type: stop", "greet, target: choose", "greet, target: chose"}, []string{at(schema, 6), at(unknown, 13)},
		},
		"no type": {
			[]string{"type: step, ", "", "greet, target: choose", "greet, target: chose"}, []string{at(schema, 6), at(unknown, 13)},
		},
		"second edge": {
			[]string{"{source: greet, target: choose}", "{source: greet, target: choose}\n  - {source: greet, target: finsh}"},
			[]string{at(problem.GraphOutgoing, 14), at(unknown, 14)},
		},
		"second entry": {
			[]string{"{source: __start__, target: begin}", "{source: __start__, target: begin}\n  - {source: __start__, target: begn}"},
			[]string{at(problem.GraphEntry, 12), at(unknown, 12)},
		},
		"misspelt source": {
			[]string{"{source: greet, target: choose}", "{source: gret, target: chose}"}, []string{at(unknown, 13), at(unknown, 13)},
		},
		"unknown field of a switch": {
			[]string{"type: switch", "type: switch, colour: red", "target: finish}]", "target: finsh}]"}, []string{at(schema, 7), at(unknown, 7)},
		},
		"misspelt field of a switch": {
			[]string{"default: last", "defalt: last", "target: finish}]", "target: finsh}]"}, []string{at(schema, 7), at(unknown, 7)},
		},
		"unreadable case of a switch": {
			[]string{"{when: .a, target: finish}", "{when: 7, target: finsh}"}, []string{at(schema, 7), at(unknown, 7)},
		},
		"unreadable catch": {
			[]string{"config: {handler: a}", "catch: [{codes: X, target: finsh}], config: {handler: a}"}, []string{at(schema, 6), at(unknown, 6)},
		},
		"program beside an unknown field": {
			[]string{"type: switch", "type: switch, colour: red", "when: .a", "when: .a ="}, []string{at(schema, 7), at(problem.ExpressionInvalid, 7)},
		},
		// One mistake, one finding.
		"only an unknown field":     {[]string{"type: switch", "type: switch, colour: red"}, []string{at(schema, 7)}},
		"a misspelt optional field": {[]string{"default: last", "defalt: last"}, []string{at(schema, 7)}},
		"a misspelt required field": {[]string{"handler: a", "handlr: a"}, []string{at(schema, 6)}},
		"only an unknown type":      {[]string{"type: step", "type: stop"}, []string{at(schema, 6)}},
		"a renamed node":            {[]string{"id: choose", "id: greet"}, []string{at(problem.DuplicateNodeID, 7)}},
		"a node without an id":      {[]string{"id: choose, ", ""}, []string{at(schema, 7)}},
	} {
		d, err := definition.ParseYAML([]byte(strings.NewReplacer(tt.changes...).Replace(text)))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		_, findings := definition.Compile(d, definition.Options{Runnable: true})
		var got []string
		for _, f := range findings {
			got = append(got, at(f.Code, f.At.Line))
		}
		slices.Sort(got)
		slices.Sort(tt.want)
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s: %v, want %v\n%s", name, got, tt.want, list(findings))
		}
	}
}

func at(code problem.Code, line int) string { return fmt.Sprintf("%s in line %d", code, line) }
