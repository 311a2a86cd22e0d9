package config_test

import (
	"errors"
	"maps"
	"testing"

	"github.com/workflows-engine/workflows-engine/graph/problem"
)

func TestDefaultRetry(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]map[string]int{
		"": nil, "llm_call=3": {"llm_call": 3}, " tool_call = 2 , llm_call=1": {"tool_call": 2, "llm_call": 1},
	} {
		for _, args := range [][]string{{"--default-retry", text}, nil} {
			env := environment()
			if args == nil {
				env = environment("WORKFLOW_ENGINE_DEFAULT_RETRY=" + text)
			}
			cfg, err := load(t, env, args...)
			if err != nil || !maps.Equal(cfg.Attempts, want) {
				t.Errorf("%q: got %+v, %v", text, cfg, err)
			}
		}
	}
	for _, text := range []string{"llm_call", "llm_call=0", "llm_call=101", "llm_call=x", "step=2", "agent_delegate=2", "llm_call=2,", "llm_call=2,llm_call=3"} {
		if _, err := load(t, environment(), "--default-retry", text); !errors.Is(err, problem.UsageError) {
			t.Errorf("%q: got %v", text, err)
		}
	}
}
