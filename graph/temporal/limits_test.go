package temporal

import (
	"errors"
	"testing"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// TestLimitsAreThoseOfTaskQueues: a limit that no task queue of the worker can keep is rejected.
func TestLimitsAreThoseOfTaskQueues(t *testing.T) {
	t.Parallel()
	lanes, serves := []string{"tool_call:github", "sdk:reviewer"}, []string{"step", "llm_call", "tool_call", "tool_call:github", "sdk", "sdk:reviewer"}
	for class, need := range map[string]string{
		"step": "step", "llm_call": "llm_call", "mcp:github": "tool_call:github", "agent:reviewer": "sdk:reviewer",
		"tool_call": "", "step:charge": "", "mcp:other": "", "agent:other": "", "agent_delegate": "", "llm:https://m.example/v1": "",
	} {
		o := Options{Lanes: lanes, Queues: []string{"default"}, Limits: []graph.Limit{{Class: class, Concurrent: 3}}}
		got, err := o.limited(serves)
		if need != "" && (err != nil || got[need].Concurrent != 3) || need == "" && !errors.Is(err, problem.Unsupported) {
			t.Errorf("%s: %v %v", class, got, err)
		}
		if p, ok := problem.As(err); ok && p.Hint == "" {
			t.Errorf("%s: no hint", class)
		}
	}
	o := Options{Queues: []string{"a", "b"}, Limits: []graph.Limit{{Class: "step", PerSecond: 1}}}
	if _, err := o.limited(serves); !errors.Is(err, problem.Unsupported) {
		t.Errorf("of two queues: %v", err)
	}
}
