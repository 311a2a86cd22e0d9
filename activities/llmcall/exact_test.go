package llmcall_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/workflows-engine/workflows-engine/activities/llmcall"
	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// TestAnswersThatWouldChangeAreRefused: an answer with integers or texts that cannot be recorded exactly is rejected; with an output_schema the
// model is asked to repair it.
func TestAnswersThatWouldChangeAreRefused(t *testing.T) {
	t.Parallel()
	const big = `{"n":1234567890123456789}`
	p := newProvider(t, says(big), says(`{"n":1}`))
	e := newExecutor(t, llmcall.Config{BaseURL: p.URL})
	req := asked(t, e, request(object{"output_schema": schema()}))
	if got := text(t, req.Repair); !strings.Contains(got, "the integer 1234567890123456789 cannot be kept exactly") {
		t.Errorf("the repair gets %s", got)
	}
	if got, err := e.Execute(t.Context(), req); err != nil || text(t, got.Output) != `{"n":1}` {
		t.Errorf("%v, %v", got.Output, err)
	}
	if said := p.Seen()[1].Body["messages"].([]any); !strings.Contains(text(t, said), "1234567890123456789") {
		t.Errorf("the model is told %s", text(t, said))
	}

	const body = `{"choices":[{"index":0,"message":{"role":"assistant","content":"a` + "\xe2\x82" + `"},"finish_reason":"stop"}]}`
	const event = `data: {"choices":[{"index":0,"delta":{"content":"` + "\xff" + `"}}]}`
	for name, tt := range map[string]struct {
		answer http.HandlerFunc
		code   problem.Code
		text   string
	}{
		"without a schema": {says(big), problem.ActivityOutputInvalid, `"/n": the integer 1234567890123456789`},
		"a body":           {raw(200, body, "Content-Type", "application/json"), problem.LLMProviderError, "not valid UTF-8"},
		"a stream":         {streams(event, "data: [DONE]"), problem.LLMProviderError, "not valid UTF-8"},
	} {
		p := newProvider(t, tt.answer)
		e := newExecutor(t, llmcall.Config{BaseURL: p.URL, Stream: strings.Contains(name, "stream")})
		_, err := e.Execute(t.Context(), request(nil))
		if err == nil {
			t.Errorf("%s: taken", name)
			continue
		}
		wantFailure(t, err, tt.code, tt.text)
	}
	// A character may be split between two reads.
	long := strings.Repeat("é€😀", 20_000)
	q := newProvider(t, says(long))
	if got, err := newExecutor(t, llmcall.Config{BaseURL: q.URL}).Execute(t.Context(), request(nil)); err != nil || got.Output.(object)["text"] != long {
		t.Errorf("a long text: %v", err)
	}
}
