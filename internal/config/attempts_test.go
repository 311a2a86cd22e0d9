package config_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/problem"
)

func TestAttemptLimits(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]graph.Limit{
		"":        nil,
		"step=20": {{Class: "step", Concurrent: 20}},
		" step:charge = 5 , llm:https://api.example.com/v1?a=b/ =4,mcp:github=2": {
			{Class: "step:charge", Concurrent: 5}, {Class: "llm:https://api.example.com/v1?a=b", Concurrent: 4}, {Class: "mcp:github", Concurrent: 2},
		},
		"agent:x=0.5/s,agent:x=3,tool_call=100/s": {{Class: "agent:x", Concurrent: 3, PerSecond: 0.5}, {Class: "tool_call", PerSecond: 100}},
	} {
		for _, args := range [][]string{{"--limits", text}, nil} {
			env := environment()
			if args == nil {
				env = environment("WORKFLOW_ENGINE_LIMITS=" + text)
			}
			cfg, err := load(t, env, args...)
			if err != nil || !slices.Equal(cfg.AttemptLimits, want) {
				t.Errorf("%q: got %+v, %v", text, cfg, err)
			}
		}
	}
	for _, text := range []string{
		"step", "step=", "step=0", "step=-1", "step=1.5", "step=x/s", "step=0/s", "step=NaN/s", "step=Inf/s", "wait=3", "step:=3", "tool_call:x=3",
		"step: z=3", "mcp: =3", "agent:\tx=3", "llm:gpt-4=3", "llm: https://api.example.com=3", "step=1,", "step=1,step=2", "agent:x=1/s,agent:x=2/s",
	} {
		if _, err := load(t, environment(), "--limits", text); !errors.Is(err, problem.UsageError) {
			t.Errorf("%q: got %v", text, err)
		}
	}
}
