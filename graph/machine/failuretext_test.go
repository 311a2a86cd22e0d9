package machine_test

import (
	"strings"
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/history"
)

// TestTextsOfFailuresMayChange: a history in which each failure has another text, as another release may have written it, is replayed as it
// is, though a catch has copied the text into the state.
func TestTextsOfFailuresMayChange(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		node, more string
		outcomes   []machine.Input
	}{
		"switch without a match":    {node: `"type":"switch","config":{"cases":[{"when":"false","target":"e"}]}`},
		"condition that fails":      {node: `"type":"switch","config":{"cases":[{"when":"error(\"no\")","target":"e"}]}`},
		"assignment that fails":     {node: `"type":"set_state","config":{"assignments":{"v":{"jq":".n.a"}}}`},
		"items that are no array":   {node: `"type":"step","config":{"handler":"h"},"map":{"items":".n","collect":"c"}`},
		"delegation without input":  {node: `"type":"agent_delegate","config":{"agent_id":"a","protocol":"sdk","input_mapping":{"v":"${ .n.a }"}}`},
		"subworkflow without input": {node: `"type":"subworkflow","config":{"workflow_ref":"c","input_mapping":{"v":"${ .n.a }"}}`},
		"loop beyond its limit": {
			node: `"type":"switch","loop":{"until":"false","body":"b","max":1},"config":{"default":"e"}`,
			more: `,{"id":"b","type":"set_state","config":{"assignments":{"v":{"literal":1}}}}`,
		},
		"map with an item that fails": {
			node:     `"type":"step","config":{"handler":"h"},"map":{"items":"[range(2)]","collect":"c"}`,
			outcomes: []machine.Input{machine.Outcome{Key: "x#2.1", Code: "BAD", Error: "bad"}},
		},
		"join that cannot be reached": {
			node: `"type":"parallel","config":{"join":"n_of_m","n":2,"branches":[{"name":"p","entry":"p"},{"name":"q","entry":"q"}]}`,
			more: `,{"id":"p","type":"step","config":{"handler":"h"}},{"id":"q","type":"step","config":{"handler":"h"}},{"id":"x2","type":"set_state","config":{"assignments":{"v":{"literal":1}}}}`,
			outcomes: []machine.Input{
				machine.Outcome{Key: "p#1.1", Code: "BAD", Error: "bad"},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			edges := `{"source":"__start__","target":"s"},{"source":"s","target":"block"},{"source":"block","target":"e"},{"source":"x","target":"e"},{"source":"i","target":"e"}`
			if strings.Contains(c.more, `"b"`) {
				edges += `,{"source":"b","target":"x"}`
			} else if c.more != "" {
				edges += `,{"source":"p","target":"x2"},{"source":"q","target":"x2"},{"source":"x2","target":"e"}`
			}
			prog := compile(t, `{"document":{"schema":"urn:t","name":"w","version":"1"},"x-workflows-engine":{"uses":["catch","map","loop"]},
				"state_schema":{"type":"object"},"nodes":[{"id":"s","type":"start"},{"id":"x",`+c.node+`},
				{"id":"block","type":"parallel","config":{"join":"all","branches":[{"name":"only","entry":"x"}]},"catch":[{"codes":["*"],"target":"i","as":"why"}]},
				{"id":"i","type":"interrupt","config":{"prompt":"?","resume_schema":{"type":"object"}}},{"id":"e","type":"end"}`+c.more+`],"edges":[`+edges+`]}`)
			m := machine.Start(prog, machine.Config{ExecutionID: "x"}, map[string]any{"n": 1.0}, epoch)
			rows := m.Ready().Records
			for _, in := range c.outcomes {
				if err := m.Handle(in, epoch.Add(10*time.Second)); err != nil {
					t.Fatal(err)
				}
				rows = append(rows, m.Ready().Records...)
			}
			if m.Status() != machine.Interrupted {
				t.Fatalf("%s: %+v", m.Status(), m.Pending())
			}
			rows = roundTrip(t, rows)
			reworded := 0
			for i := range rows {
				p := &rows[i].Payload
				if rows[i].Name == history.FailNode && p.NodeID+p.FailedNodeID == "x" {
					p.Message = "as it was"
					reworded++
				}
				for _, state := range []map[string]any{p.State, p.StateRef} {
					if why, ok := state["why"].(map[string]any); ok {
						why["message"] = "as it was"
						reworded++
					}
				}
			}
			again, found, err := machine.Prove(prog, machine.Config{ExecutionID: "x"}, rows, nil, epoch.Add(10*time.Second))
			if err != nil || reworded < 3 || again.Status() != machine.Interrupted {
				t.Fatalf("%v, %d reworded, %s", err, reworded, again.Status())
			}
			for i := range found {
				t.Error(found[i].String())
			}
			if b := again.Ready(); len(b.Records) > 0 {
				t.Errorf("the replay adds %d records", len(b.Records))
			}
		})
	}
}
