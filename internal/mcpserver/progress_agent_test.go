package mcpserver

import (
	"testing"

	"github.com/workflows-engine/workflows-engine/graph"
)

// TestProgressOfAgents: the current activity of an agent in words, never the text that arrives.
func TestProgressOfAgents(t *testing.T) {
	t.Parallel()
	type object = map[string]any
	for want, detail := range map[string]object{
		"researcher: turn 3, asks gpt-4.1 (1,204 characters)":            {"agent": "researcher", "key": "t3", "turn": 3, "activity": "model", "model": "gpt-4.1", "received_chars": 1204, "text": "secret words"},
		"researcher: turn 1, asks gpt-4.1":                               {"agent": "researcher", "key": "t1", "turn": 1, "activity": "model", "model": "gpt-4.1", "received_chars": 0},
		"researcher: turn 3, calls files__read":                          {"agent": "researcher", "key": "t3.c1", "turn": 3, "activity": "tool", "tool": "files__read"},
		"researcher: turn 2, waits before the model is asked again":      {"agent": "researcher", "key": "t2", "turn": 2, "activity": "waiting"},
		"researcher: summarizes the conversation (1,000,000 characters)": {"agent": "researcher", "key": "k1", "turn": 0, "activity": "compacting", "received_chars": 1_000_000},
		"n is running: received_bytes 5":                                 {"received_bytes": 5},
	} {
		if got := progressText(graph.Progress{NodeID: "n", Kind: graph.ExecutorAlive, Detail: detail}); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
