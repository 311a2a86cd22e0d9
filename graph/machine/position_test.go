package machine_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"testing"

	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// TestPositionsOfOtherVersions: positions of the version before repairs are read, those of newer versions are not.
func TestPositionsOfOtherVersions(t *testing.T) {
	t.Parallel()
	prog := compile(t, `
document: {schema: "urn:test", name: old, version: "1"}
state_schema: {type: object}
nodes:
  - {id: s, type: start}
  - {id: ask, type: llm_call, config: {model: m}, retry: {max_attempts: 2, initial_interval: 1s}}
  - {id: e, type: end}
edges:
  - {source: __start__, target: s}
  - {source: s, target: ask}
  - {source: ask, target: e}
`)
	m := machine.Start(prog, machine.Config{ExecutionID: "x"}, nil, epoch)
	rows := m.Ready().Records
	if err := m.Handle(machine.Outcome{Key: "ask#1.1", Error: "busy"}, epoch); err != nil {
		t.Fatal(err)
	}
	rows = append(rows, m.Ready().Records...)
	now := m.Position()
	for version, read := range map[int]bool{0: false, 1: true, 2: true, 3: true, 4: true, 5: true, 6: true, 7: true, 8: true, 9: true, 10: false} {
		data := bytes.Replace(now, []byte(`{"v":3,`), fmt.Appendf(nil, `{"v":%d,`, version), 1)
		if version != 3 && bytes.Equal(data, now) {
			t.Fatalf("the position does not begin with its version: %.20s", now)
		}
		old, err := machine.Restore(prog, data, rows[machine.PositionStateSeq(data)-1].Payload.State)
		switch {
		case !read && !errors.Is(err, problem.HistoryCorrupt):
			t.Errorf("version %d: %v", version, err)
		case read && err != nil:
			t.Errorf("version %d: %v", version, err)
		case read && summary(old) != summary(m):
			t.Errorf("version %d: %s, want %s", version, summary(old), summary(m))
		}
	}
}

// TestStoredPositions checks the stored form byte by byte: testdata/positions has the positions after the commands of some
// scripts, which every later version must read and write. Run with -update only for a new version of the form.
func TestStoredPositions(t *testing.T) {
	t.Parallel()
	for _, name := range []string{
		"delegate_retry", "delegate_task", "delegate_task_any", "delegate_task_cancel", "early_signals_branches", "interrupt_deadline_held",
		"loop_interrupt", "loop_nested", "rollback_branch", "rollback_map",
		"parallel_all_failure", "parallel_all_sequential", "parallel_interrupt_held", "parallel_nested", "repair_branches", "repair_policy", "signal",
		"subworkflow_loop", "waits",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			script, err := os.ReadFile("testdata/" + name + ".txt")
			if err != nil {
				t.Fatal(err)
			}
			_, b := runBench(t, string(script), "")
			got := append(bytes.Join(b.positions, []byte("\n")), '\n')
			file := "testdata/positions/" + name
			if *update {
				if err := os.WriteFile(file, got, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, want) {
				t.Errorf("the stored form differs: %s", firstDifference(string(want), string(got)))
			}
			older, err := os.ReadFile("testdata/older_positions/" + name) // before blocks failed by the first failure as recorded
			if err == nil && bytes.Contains(older, []byte("failFast")) {
				t.Error("an older position with what is new")
			}
			for line := range bytes.Lines(append(want, older...)) {
				position := bytes.TrimSuffix(line, []byte("\n"))
				var state map[string]any
				if seq := machine.PositionStateSeq(position); seq > 0 {
					state = b.rows[seq-1].Payload.State
				}
				m, err := machine.Restore(b.prog, position, state)
				if err != nil {
					t.Fatal(err)
				}
				if again := m.Position(); !bytes.Equal(again, position) {
					t.Errorf("restored and written again\nwant %s\ngot  %s", position, again)
				}
			}
		})
	}
}
