package machine_test

import (
	"testing"

	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/machine"
)

// TestItemsThatFailAtOnceAreBegunInStretches has a walk that begins many items, each of which fails at once, give way in between.
func TestItemsThatFailAtOnceAreBegunInStretches(t *testing.T) {
	t.Parallel()
	d, err := definition.ParseYAML([]byte(`
document: {schema: "urn:t", name: w, version: "1"}
x-workflows-engine: {uses: [map]}
state_schema: {type: object}
nodes:
  - {id: s, type: start}
  - {id: each, type: subworkflow, config: {workflow_ref: w, input_mapping: {x: {jq: 'error("no")'}}}, map: {items: "[range(1000)]", concurrency: 1, tolerate: {percent: 100, as: failed}}}
  - {id: e, type: end}
edges: [{source: __start__, target: s}, {source: s, target: each}, {source: each, target: e}]
`))
	if err != nil {
		t.Fatal(err)
	}
	prog, findings := definition.Compile(d, definition.Options{})
	if prog == nil {
		t.Fatal(findings)
	}
	m := machine.Start(prog, machine.Config{ExecutionID: "x", Limits: machine.Limits{StretchUnits: 10_000}}, nil, epoch)
	stretches := 0
	for m.Status() == machine.Running {
		b := m.Ready()
		if len(b.Effects) != 1 || len(b.Records) > 100 {
			t.Fatalf("stretch %d: %d records, effects %v", stretches, len(b.Records), b.Effects)
		}
		position := m.Position()
		if position != nil && stretches%7 == 0 { // another process goes on
			restored, err := machine.Restore(prog, position, m.State())
			if err != nil {
				t.Fatal(err)
			}
			restored.SetLimits(0, machine.Limits{StretchUnits: 10_000})
			m = restored
		}
		if err := m.Handle(machine.Continue{Key: b.Effects[0].Key()}, epoch); err != nil {
			t.Fatal(err)
		}
		stretches++
	}
	if failed, _ := m.State()["failed"].([]any); m.Status() != machine.Completed || len(failed) != 1000 || stretches < 20 {
		t.Errorf("%s with %d failures after %d stretches", m.Status(), len(failed), stretches)
	}
}
