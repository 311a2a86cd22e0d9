package historysql_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historytest"
)

// TestShortRowsAreAsRecorded compares the text of short rows and of their blobs, byte for byte, with that of a release, which is
// never made again: engines of every version read each other's rows.
func TestShortRowsAreAsRecorded(t *testing.T) {
	t.Parallel()
	const name = "short_rows.txt"
	keep(t, name, shortRows)
	recorded, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	got, want := strings.SplitAfter(shortRows(t), "\n"), strings.SplitAfter(string(recorded), "\n")
	if len(got) != len(want) {
		t.Errorf("%d lines, want %d", len(got), len(want))
	}
	for i := range min(len(got), len(want)) {
		if got[i] != want[i] {
			t.Fatalf("line %d is\n%swant\n%s", i+1, got[i], want[i])
		}
	}
}

// shortRows writes a run with values of every kind and lists its rows and blobs.
func shortRows(t *testing.T) string {
	path := filepath.Join(t.TempDir(), "runs.db")
	s := openFile(t, path, smallest)
	x := historytest.NewTrace(t, "run")
	text := func(seed string, n int) string { return strings.Repeat(seed+` "é\n" `, n) }
	state := map[string]any{"text": text("a", 60), "log": []any{}, "$odd": map[string]any{"$blob": text("x", 40)}, "n": 0.0, "empty": map[string]any{}}
	add := func(prior history.Prior, records ...history.Record) {
		t.Helper()
		b := history.Batch{ExecutionID: "run", ExpectedSeq: x.Execution.Seq, Prior: prior}
		for _, r := range records {
			if r.Kind == "" {
				r.Kind = history.Event
			}
			r.CreatedAt = x.Now
			r.Payload.NodeID = "n"
			b.Records = append(b.Records, r)
			x.Execution.Apply(r)
		}
		b.Execution = x.Execution
		if err := s.Append(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
	add(history.Prior{},
		history.Record{Name: history.ExecutionStarted, Payload: history.Payload{WorkflowName: "w", Mode: "in_process", Input: state}},
		history.Record{Name: history.StateUpdated, Payload: history.Payload{State: state}})
	prior := history.Prior{Seq: x.Execution.StateSeq, State: state}
	for step := range 14 {
		next := maps.Clone(state)
		entry := map[string]any{"step": float64(step), "text": text(fmt.Sprint(step), 5+10*(step%4)), "parts": []any{"short", text("p", 30), nil, true}}
		next["log"] = append(slices.Clone(state["log"].([]any)), entry)
		given := map[string]any{"log": next["log"], "entry": entry}
		switch step % 7 {
		case 2:
			next["n"] = float64(step)
		case 3:
			next["text"] = text("b", 50+step)
			given["text"] = next["text"]
		case 4:
			delete(next, "$odd")
		case 5:
			next["$odd"] = map[string]any{"$$": []any{text("$", 40)}}
			given = map[string]any{"whole": next}
		case 6: // a batch without a prior state, and large values that are not the state's
			prior = history.Prior{}
		}
		add(prior,
			history.Record{Name: history.ActivityCompleted, Payload: history.Payload{Result: history.Some(given), Usage: map[string]any{"note": text("u", 40)}}},
			history.Record{Kind: history.Command, Name: history.CompleteNode, Payload: history.Payload{Output: given}},
			history.Record{Name: history.StateUpdated, Payload: history.Payload{State: next}},
			history.Record{Name: history.CheckpointWritten, Payload: history.Payload{StateRef: next}},
			history.Record{Kind: history.Command, Name: history.ScheduleNode},
			history.Record{Name: history.ActivityRequested, Payload: history.Payload{NodeType: "agent_delegate", AgentID: "a", Protocol: "a2a",
				Correlation: "c", Mode: "host_mediated", DelegateInput: []map[string]any{next, {"log": next["log"], "n": 1.0}}[step%2]}})
		state, prior = next, history.Prior{Seq: x.Execution.StateSeq, State: next}
	}
	add(prior, history.Record{Name: history.SignalReceived, Payload: history.Payload{SignalName: "s", SignalPayload: state}},
		history.Record{Name: history.StateUpdated, Payload: history.Payload{State: map[string]any{"n": 1.0}}},
		history.Record{Name: history.ExecutionCompleted, Payload: history.Payload{Result: history.Some(text("end", 60))}})
	var out strings.Builder
	r := &reference{t, plain(t, path)}
	for seq := range x.Execution.Seq {
		var version int64
		var payload string
		r.scan(fmt.Sprintf("SELECT record_schema_version, payload_json FROM history WHERE seq = %d", seq+1), &version, &payload)
		fmt.Fprintln(&out, seq+1, version, payload)
	}
	for number := range count(t, path, "SELECT count(*) FROM blobs") {
		var content string
		r.scan(fmt.Sprintf("SELECT content FROM blobs WHERE number = %d", number+1), &content)
		fmt.Fprintln(&out, "blob", number+1, content)
	}
	return out.String()
}
