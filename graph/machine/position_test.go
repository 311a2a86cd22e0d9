package machine_test

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// TestPositionsOfOtherVersions: those from before there were repairs are read, those from after this version are not.
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
	for version, read := range map[int]bool{0: false, 1: true, 2: true, 3: true, 4: false} {
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
			t.Errorf("version %d stands at %s, want %s", version, summary(old), summary(m))
		}
	}
}
