package picture_test

import (
	"testing"

	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/internal/picture"
)

func TestText(t *testing.T) {
	t.Parallel()
	doc, err := definition.ParseYAML([]byte(`
document: {schema: "https://agent-workflow.dev/schemas/workflow-definition.json", name: w, version: 1.0.0}
state_schema: {type: object}
nodes:
  - {id: finish, type: end}
  - {id: begin, type: start}
  - {id: route, type: switch, config: {cases: [{when: '.a == "x"', target: fan}, {when: .b, target: pay}], default: finish}}
  - {id: fan, type: parallel, config: {join: all, branches: [{name: l, entry: left}, {name: r, entry: right}]}}
  - {id: left, type: step, config: {handler: h}}
  - {id: right, type: subworkflow, config: {workflow_ref: other, input_mapping: {}}}
  - {id: both, type: set_state, config: {assignments: {x: {literal: 1}, y: {jq: .x}}}}
  - {id: pay, type: wait, config: {kind: signal, signal: paid}}
  - {id: lonely, type: agent_delegate, config: {agent_id: bob, protocol: a2a, input_mapping: {}}}
edges:
  - {source: __start__, target: begin}
  - {source: begin, target: route}
  - {source: fan, target: both}
  - {source: left, target: both}
  - {source: right, target: both}
  - {source: both, target: route}
  - {source: pay, target: finish}
  - {source: lonely, target: finish}
`))
	if err != nil {
		t.Fatal(err)
	}
	prog, findings := definition.Compile(doc, definition.Options{})
	if prog == nil {
		t.Fatal(findings)
	}
	const want = `begin (start) → route
route (switch): .a == "x" → fan; .b → pay; else → finish
fan (parallel all): l → left; r → right; joined → both
pay (wait signal paid) → finish
finish (end)
both (set_state x, y) → route
left (step) → both
right (subworkflow other) → both
lonely (agent_delegate bob) → finish   (no path leads here)
`
	if got := picture.Text(prog, nil); got != want {
		t.Errorf("got\n%s", got)
	}
}
