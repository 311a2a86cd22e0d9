package machine_test

import (
	"testing"

	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/history"
)

// TestPositionsOfALargeMapGrowWithItsRecords: a position of a map, or of its rollback, has all outputs. Those that are worth storing
// take about as much as the records in all, and a restart from the newest one has little to read and goes on where the run was.
func TestPositionsOfALargeMapGrowWithItsRecords(t *testing.T) {
	t.Parallel()
	prog := compile(t, `
document: {schema: "urn:test", name: large, version: "1"}
x-workflows-engine: {uses: [compensate, map], rollback: [failure]}
state_schema: {type: object}
nodes:
  - {id: s, type: start}
  - {id: each, type: step, config: {handler: h}, map: {items: "[range(1000)]", concurrency: 7}, compensate: {node: undo, as: it}}
  - {id: undo, type: step, config: {handler: h}}
  - {id: stop, type: step, config: {handler: h}}
  - {id: e, type: end}
edges:
  - {source: __start__, target: s}
  - {source: s, target: each}
  - {source: each, target: stop}
  - {source: stop, target: e}
`)
	m := machine.Start(prog, machine.Config{ExecutionID: "x"}, nil, epoch)
	var rows []history.Record
	var newest []byte
	var seq, bytes, at, positions, most int64
	restarts := 0
	for inputs := 0; ; inputs++ {
		b := m.Ready()
		for _, r := range b.Records {
			r.Seq = int64(len(rows)) + 1
			rows = append(rows, r)
			bytes += int64(len(r.AppendPayload(nil, "x")))
		}
		if m.Status().Terminal() {
			break
		}
		position := m.NextPosition()
		m.SetBytes(bytes)
		if position != nil {
			newest, seq, at = position, int64(len(rows)), bytes
			positions += int64(len(position))
		}
		most = max(most, bytes-at-int64(len(newest)))
		if inputs%250 == 200 {
			var state map[string]any
			if stateSeq := machine.PositionStateSeq(newest); stateSeq > 0 {
				state = rows[stateSeq-1].Payload.State
			}
			again, err := machine.Restore(prog, newest, state)
			if err != nil {
				t.Fatal(err)
			}
			if err := again.Catchup(rows[seq:], epoch); err != nil {
				t.Fatal(err)
			}
			if got, want := summary(again), summary(m); got != want {
				t.Fatalf("restarted after %d inputs\ngot  %s\nwant %s", inputs, got, want)
			}
			again.SetBytes(bytes)
			again.Ready()
			m = again
			restarts++
		}
		effects := m.InFlight()
		e := effects[len(effects)/2].(*machine.ActivityEffect)
		out := machine.Outcome{Key: e.Key(), OK: true, Output: map[string]any{"reservation": e.Key(), "seats": "a window seat for " + e.Key()}}
		if e.NodeID == "stop" {
			out = machine.Outcome{Key: e.Key(), Error: "no"}
		}
		if err := m.Handle(out, epoch); err != nil {
			t.Fatal(err)
		}
	}
	if m.Status() != machine.Failed || len(rows) < 8000 || restarts < 7 {
		t.Fatalf("%s after %d records and %d restarts", m.Status(), len(rows), restarts)
	}
	if positions > 2*bytes {
		t.Errorf("the positions took %d bytes, the records %d", positions, bytes)
	}
	if most > 1<<10 {
		t.Errorf("a restart would have read %d bytes more than the position has", most)
	}
}
