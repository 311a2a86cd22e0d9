package shortform_test

import (
	"maps"
	"os"
	"strings"
	"testing"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/internal/shortform"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// FuzzWrite: whatever states a run goes through, its short rows are read back as what was written.
func FuzzWrite(f *testing.F) {
	f.Add([]byte(`{"a":[1,2],"$b":{"$$":null}}`), []byte(`{"a":[1,2,3],"$b":{"$blob":"x"}}`))
	f.Add([]byte(`{"$state":1}`), []byte(`{"$snapshot":{},"$delta":{}}`))
	f.Fuzz(func(t *testing.T, first, second []byte) {
		states := make([]map[string]any, 2)
		for i, text := range [][]byte{first, second} {
			v, err := jsonvalue.Decode(text)
			if states[i], _ = v.(map[string]any); err != nil || states[i] == nil {
				t.Skip("states are objects")
			}
		}
		m, prior := newMemory(t), history.Prior{}
		whole := newMemory(t)
		whole.whole = 1 << 20
		for _, request := range states {
			for _, m := range []*memory{m, whole} {
				m.add(history.Prior{}, history.Record{Name: history.ActivityRequested, Payload: history.Payload{NodeType: "step", Request: request}})
			}
		}
		whole.check()
		for _, state := range []map[string]any{states[0], states[1], states[0]} {
			given := maps.Clone(state)
			given["and"] = states[1]
			seq := m.add(prior,
				history.Record{Name: history.ActivityCompleted, Payload: history.Payload{Result: history.Some(any(given))}},
				history.Record{Kind: history.Command, Name: history.CompleteNode, Payload: history.Payload{Output: given}},
				history.Record{Name: history.StateUpdated, Payload: history.Payload{State: state}})
			prior = history.Prior{Seq: seq, State: state}
		}
		m.check()
	})
}

// FuzzRead reads a damaged row among good ones: it is refused with a code, or read the same way twice.
func FuzzRead(f *testing.F) {
	rows, err := os.ReadFile("testdata/rows.txt")
	if err != nil {
		f.Fatal(err)
	}
	for line := range strings.Lines(string(rows)) {
		if _, payload, ok := strings.Cut(line, " {"); ok && len(payload) < 4000 {
			f.Add([]byte("{" + strings.TrimSpace(payload)))
		}
	}
	f.Add([]byte(`{"nodeId":"n","state":{"$delta":{"base":2,"hash":"","whole":2,"changes":{}}}}`))
	f.Add([]byte(`{"nodeId":"n","output":{"$part":{"state":2,"hash":"","names":["log"],"changes":{"in":{}}}}}`))
	f.Fuzz(func(t *testing.T, payload []byte) {
		m := newMemory(t)
		state := map[string]any{"log": []any{strings.Repeat("long ", 80), 1.0}, "n": 1.0}
		m.add(history.Prior{}, history.Record{Name: history.ExecutionStarted, Payload: history.Payload{WorkflowName: "w"}},
			history.Record{Name: history.StateUpdated, Payload: history.Payload{State: state}})
		m.rows = append(m.rows, row{name: history.StateUpdated, payload: payload, short: true})
		for _, name := range []history.Name{history.StateUpdated, history.CompleteNode, history.ActivityCompleted} {
			var texts [2]string
			for i := range texts {
				p, err := shortform.NewDecoder("run", m, false).Payload(name, 3, payload)
				if err != nil {
					if _, coded := problem.As(err); !coded {
						t.Fatalf("refused without a code: %v", err)
					}
					continue
				}
				record := history.Record{Name: name, Payload: p}
				texts[i] = string(record.AppendPayload(nil, "run"))
			}
			if texts[0] != texts[1] {
				t.Fatalf("read twice:\n%s\n%s", texts[0], texts[1])
			}
			_, _ = shortform.NewDecoder("run", m, true).Payload(name, 3, payload)
		}
		// A state after it that is based on it.
		_, _ = shortform.NewDecoder("run", m, false).Payload(history.CompleteNode, 4, []byte(`{"nodeId":"n","output":{"$state":3}}`))
	})
}
