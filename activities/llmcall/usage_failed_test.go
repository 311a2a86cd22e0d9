package llmcall_test

import (
	"testing"

	"github.com/workflows-engine/workflows-engine/activities/llmcall"
	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// An attempt that fails after the model has answered tells what that has cost; one without an answer tells nothing.
func TestUsageOfFailedAttempts(t *testing.T) {
	t.Parallel()
	const one = `{"completion_tokens":4,"finish_reason":"stop","model":"m-2026","prompt_tokens":3,"requests":1,"response_format":"json_schema","total_tokens":7}`
	for _, tt := range []struct {
		name   string
		p      *provider
		config object
		code   problem.Code
		want   string
	}{
		{"the answer breaks the schema", newProvider(t, says("no")), object{"output_schema": schema()}, problem.LLMOutputInvalid, one},
		{"a refusal", newProvider(t, completes(object{"content": nil, "refusal": "I won't"}, "stop")), nil, problem.LLMProviderError,
			`{"completion_tokens":4,"finish_reason":"stop","model":"m-2026","prompt_tokens":3,"requests":1,"total_tokens":7}`},
		{"no answer", newProvider(t, raw(500, "broken")), nil, problem.LLMProviderError, "null"},
	} {
		_, err := newExecutor(t, llmcall.Config{BaseURL: tt.p.URL}).Execute(t.Context(), request(tt.config))
		usage := wantFailure(t, err, tt.code, "").Usage
		delete(usage, "duration_ms")
		if got := text(t, usage); got != tt.want {
			t.Errorf("%s:\ngot  %s\nwant %s", tt.name, got, tt.want)
		}
	}
}
