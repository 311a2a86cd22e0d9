package machine_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/enginetest"
)

// linear makes a definition of n activities in a row.
func linear(tb testing.TB, n int) *definition.Program {
	nodes := []string{`{"id":"s","type":"start"}`}
	for i := range n {
		nodes = append(nodes, fmt.Sprintf(`{"id":"n%d","type":"step","config":{"handler":"h"}}`, i))
	}
	return compile(tb, enginetest.Linear("linear", append(nodes, `{"id":"e","type":"end"}`)...))
}

// BenchmarkWalk measures the machine alone: one activity's outcome, the script that follows, the next request.
func BenchmarkWalk(b *testing.B) {
	prog := linear(b, 1000)
	now := epoch
	var m *machine.Machine
	output := map[string]any{"k": 1.0}
	b.ReportAllocs()
	for b.Loop() {
		if m == nil || m.Status().Terminal() {
			m = machine.Start(prog, machine.Config{ExecutionID: "x"}, map[string]any{}, now)
		}
		batch := m.Ready()
		now = now.Add(time.Millisecond)
		if err := m.Handle(machine.Outcome{Key: batch.Effects[0].Key(), OK: true, Output: output}, now); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkRebuild compares a replay of a whole history with a restored position.
func BenchmarkRebuild(b *testing.B) {
	for _, n := range []int{10, 100, 1000} {
		prog := linear(b, n)
		m := machine.Start(prog, machine.Config{ExecutionID: "x"}, map[string]any{}, epoch)
		var rows []history.Record
		var position []byte
		for {
			batch := m.Ready()
			rows = append(rows, batch.Records...)
			if m.Visits() > n {
				position = m.Position()
				break
			}
			if err := m.Handle(machine.Outcome{Key: batch.Effects[0].Key(), OK: true, Output: map[string]any{"k": 1.0}}, epoch); err != nil {
				b.Fatal(err)
			}
		}
		b.Run(fmt.Sprintf("replay/%d", len(rows)), func(b *testing.B) {
			for b.Loop() {
				if _, err := machine.Replay(prog, machine.Config{ExecutionID: "x"}, rows, nil, epoch); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(fmt.Sprintf("position/%d", len(rows)), func(b *testing.B) {
			for b.Loop() {
				if _, err := machine.Restore(prog, position, map[string]any{"k": 1.0}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
