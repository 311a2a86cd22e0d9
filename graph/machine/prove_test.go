package machine_test

import (
	"strings"
	"testing"

	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/history"
)

const provenDefinition = `{"document":{"schema":"urn:t","name":"w","version":"1"},"state_schema":{"type":"object","properties":{"l":{"type":"array","reducer":"append"}}},
	"checkpointing":{"strategy":"after_each_node"},
	"nodes":[{"id":"s","type":"start"},{"id":"t","type":"tool_call","config":{"server":"s","tool":"t"}},
		{"id":"x","type":"set_state","config":{"assignments":{"n":{"jq":".r + 1"},"token":{"literal":"k1"},"l":{"literal":"é"}}}},
		{"id":"i","type":"interrupt","config":{"prompt":"?","resume_schema":{"type":"object"}}},{"id":"e","type":"end"}],
	"edges":[{"source":"__start__","target":"s"},{"source":"s","target":"t"},{"source":"t","target":"x"},{"source":"x","target":"i"},{"source":"i","target":"e"}]}`

// TestProve alters one value of a history at a time; the finding names its place, its value and the expected value.
func TestProve(t *testing.T) {
	t.Parallel()
	prog := compile(t, provenDefinition)
	m := machine.Start(prog, machine.Config{ExecutionID: "x"}, map[string]any{"l": []any{"a"}}, epoch)
	original := m.Ready().Records
	if err := m.Handle(machine.Outcome{Key: "t#1.1", OK: true, Output: map[string]any{"r": 1.0}}, epoch); err != nil {
		t.Fatal(err)
	}
	original = append(original, m.Ready().Records...)
	for name, c := range map[string]struct {
		record history.Name
		node   string
		alter  func(*history.Record)
		want   string // of the first difference
	}{
		"nothing":                    {history.StateUpdated, "x", func(*history.Record) {}, ""},
		"a number written otherwise": {history.StateUpdated, "x", func(r *history.Record) { r.Payload.State["n"] = 2 }, ""},
		"a state":                    {history.StateUpdated, "x", func(r *history.Record) { r.Payload.State["n"] = 5.0 }, `StateUpdated of "x" with /state/n 5, but the definition leads to 2`},
		"a state of another engine":  {history.StateUpdated, "x", func(r *history.Record) { r.Payload.State["n"], r.Foreign = 5.0, true }, ""},
		"a member too many":          {history.StateUpdated, "x", func(r *history.Record) { r.Payload.State["a/b"] = nil }, `StateUpdated of "x" with /state/a~1b null, but the definition leads to absent`},
		"a member too few":           {history.StateUpdated, "x", func(r *history.Record) { delete(r.Payload.State, "n") }, `StateUpdated of "x" with /state/n absent, but the definition leads to 2`},
		"an element":                 {history.StateUpdated, "x", func(r *history.Record) { r.Payload.State["l"] = []any{"a", "b"} }, `StateUpdated of "x" with /state/l/1 "b", but the definition leads to "é"`},
		"a list that is too short":   {history.StateUpdated, "x", func(r *history.Record) { r.Payload.State["l"] = []any{"a"} }, `StateUpdated of "x" with /state/l/1 absent, but the definition leads to "é"`},
		"another kind":               {history.StateUpdated, "x", func(r *history.Record) { r.Payload.State["l"] = strings.Repeat("é", 100) }, `StateUpdated of "x" with /state/l "` + strings.Repeat("é", 39) + `…, but the definition leads to ["a","é"]`},
		"a secret":                   {history.StateUpdated, "x", func(r *history.Record) { r.Payload.State["token"] = "k2" }, `StateUpdated of "x" with /state/token [REDACTED], but the definition leads to [REDACTED]`},
		"an output":                  {history.CompleteNode, "x", func(r *history.Record) { r.Payload.Output["n"] = 5.0 }, `CompleteNode of "x" with /output/n 5, but the definition leads to 2`},
		"an outcome":                 {history.ActivityCompleted, "t", func(r *history.Record) { r.Payload.Result = history.Some(map[string]any{"r": 4.0}) }, `CompleteNode of "t" with /output/r 1, but the definition leads to 4`},
		"a checkpoint":               {history.CheckpointWritten, "x", func(r *history.Record) { r.Payload.StateRef["n"] = 5.0 }, `CheckpointWritten of "x" with /stateRef/state/n 5, but the definition leads to 2`},
	} {
		records := roundTrip(t, original)
		altered := false
		for i := range records {
			if r := &records[i]; r.Name == c.record && r.Payload.NodeID == c.node {
				c.alter(r)
				altered = true
			}
		}
		if !altered {
			t.Fatalf("%s: no %s of %q", name, c.record, c.node)
		}
		again, found, err := machine.Prove(prog, machine.Config{ExecutionID: "x"}, records, nil, epoch)
		if err != nil || again.Status() != machine.Interrupted {
			t.Fatalf("%s: %v", name, err)
		}
		got := ""
		if len(found) > 0 {
			_, got, _ = strings.Cut(found[0].String(), " is ")
			if r := records[found[0].Seq-1]; r.Name != found[0].Name || r.Payload.NodeID != found[0].NodeID {
				t.Errorf("%s: record %d is %s", name, found[0].Seq, r.Name)
			}
		}
		if got != c.want {
			t.Errorf("%s: %s\nwant %s", name, got, c.want)
		}
		for i := range found {
			found[i].SetDerived(&records[found[i].Seq-1].Payload)
		}
		if _, found, err = machine.Prove(prog, machine.Config{ExecutionID: "x"}, records, nil, epoch); len(found) > 0 || err != nil {
			t.Errorf("%s: after the repair: %v, %v", name, found, err)
		}
	}
}

// TestProveAnyPartOfALoop proves the rest of a history that is cut off anywhere: missing records are not a finding.
func TestProveAnyPartOfALoop(t *testing.T) {
	t.Parallel()
	prog := compile(t, `{"document":{"schema":"urn:t","name":"w","version":"1"},"state_schema":{"type":"object"},"checkpointing":{"strategy":"after_each_node"},
		"nodes":[{"id":"s","type":"start"},{"id":"c","type":"set_state","config":{"assignments":{"n":{"jq":"(.n // 0) + 1"}}}},
			{"id":"q","type":"switch","config":{"cases":[{"when":".n < 4","target":"c"}],"default":"e"}},{"id":"e","type":"end"}],
		"edges":[{"source":"__start__","target":"s"},{"source":"s","target":"c"},{"source":"c","target":"q"}]}`)
	m := machine.Start(prog, machine.Config{ExecutionID: "x"}, nil, epoch)
	records := m.Ready().Records
	if m.Status() != machine.Completed {
		t.Fatal(m.Failure())
	}
	for n := 1; n < len(records); n++ {
		if _, found, err := machine.Prove(prog, machine.Config{ExecutionID: "x"}, roundTrip(t, records[:n]), map[string]any{}, epoch); len(found) > 0 || err != nil {
			t.Errorf("of %d records: %v, %v", n, found, err)
		}
	}
}

// TestProveForeign compares nothing in a history that another engine began.
func TestProveForeign(t *testing.T) {
	t.Parallel()
	recorded := rows(t, begun+`
		C ScheduleNode(t)
		E NodeScheduled(t)
		E ActivityRequested(t) {"nodeType":"tool_call","attempt":1}
		E ActivityCompleted(t) {"result":{"r":1}}
		C CompleteNode(t) {"output":{"r":2}}
		E StateUpdated(t) {"state":{"a":1,"r":2}}`)
	if _, found, err := machine.Prove(compile(t, linearDefinition), machine.Config{ExecutionID: "x"}, recorded, nil, epoch); len(found) > 0 || err != nil {
		t.Errorf("%v, %v", found, err)
	}
}
