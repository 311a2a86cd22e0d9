package cli

import (
	"fmt"
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historymem"
	"github.com/workflows-engine/workflows-engine/internal/enginetest"
)

// TestStatusSaysWhoAnswered: of the newest answers to questions of a run, with nobody where that is not recorded.
func TestStatusSaysWhoAnswered(t *testing.T) {
	t.Parallel()
	store := historymem.New()
	runner := enginetest.Closing(t, enginetest.Must(graph.New(store, graph.Options{})))
	d := enginetest.Must(definition.Parse([]byte(fourGates)))
	enginetest.Must(runner.Start(t.Context(), graph.StartRequest{ExecutionID: "r", Definition: d}))
	for i, who := range []string{"ann", "bob", "", "cleo"} {
		ctx := t.Context()
		if who != "" {
			ctx = graph.WithActor(ctx, history.Actor{Via: "mcp", Name: who})
		}
		enginetest.Must(runner.Resume(ctx, graph.ResumeRequest{ExecutionID: "r", InterruptID: fmt.Sprintf("r:g%d#1", i+1), Payload: map[string]any{"n": i}}))
	}
	s := &session{store: store}
	execution := enginetest.Must(store.Execution(t.Context(), "r"))
	var lines []string
	for _, a := range enginetest.Must(s.answersOf(t.Context(), &execution)) {
		lines = append(lines, a.text(a.at.Add(time.Minute)))
	}
	if got, want := fmt.Sprint(lines), "[g2 by bob (mcp), 1m ago g3, 1m ago g4 by cleo (mcp), 1m ago]"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

const fourGates = `{"document":{"schema":"s","name":"gates","version":"1"},"state_schema":{"type":"object"},"nodes":[{"id":"begin","type":"start"},
	{"id":"g1","type":"interrupt","config":{"prompt":"?","resume_schema":{"type":"object"}}},{"id":"g2","type":"interrupt","config":{"prompt":"?","resume_schema":{"type":"object"}}},
	{"id":"g3","type":"interrupt","config":{"prompt":"?","resume_schema":{"type":"object"}}},{"id":"g4","type":"interrupt","config":{"prompt":"?","resume_schema":{"type":"object"}}},
	{"id":"end","type":"end"}],"edges":[{"source":"__start__","target":"begin"},{"source":"begin","target":"g1"},{"source":"g1","target":"g2"},{"source":"g2","target":"g3"},
	{"source":"g3","target":"g4"},{"source":"g4","target":"end"}]}`
