package llmcall_test

import (
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/activities/llmcall"
	"github.com/workflows-engine/workflows-engine/graph/problem"
)

const (
	piece1 = `data: {"model":"m-2026","choices":[{"index":0,"delta":{"role":"assistant","content":"{\"n\":"}}]}`
	piece2 = `data: {"model":"m-2026","choices":[{"index":1,"delta":{"content":"other"}},{"index":0,"delta":{"content":"1}"}}]}`
	piece3 = `data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`
	tokens = `data: {"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":4,"total_tokens":7,"prompt_tokens_details":{"cached_tokens":2}}}`
	done   = `data: [DONE]`
)

func TestStream(t *testing.T) {
	t.Parallel()
	p := newProvider(t, streams(": thinking", piece1, ": thinking", piece2, piece3, tokens, done))
	now := time.Unix(0, 0)
	e := newExecutor(t, llmcall.Config{BaseURL: p.URL, HeartbeatInterval: 2 * time.Second, Now: func() time.Time {
		now = now.Add(time.Second)
		return now
	}})
	var beats []any
	req := request(object{"stream": true, "output_schema": schema()})
	req.Heartbeat = func(details map[string]any) { beats = append(beats, details["received_bytes"]) }
	got, err := e.Execute(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	delete(got.Usage, "duration_ms")
	const want = `{"cached_tokens":2,"completion_tokens":4,"finish_reason":"stop","model":"m-2026","prompt_tokens":3,"requests":1,"response_format":"json_schema","total_tokens":7}`
	if text(t, got.Output) != `{"n":1}` || text(t, got.Usage) != want {
		t.Errorf("output %v, usage %s", got.Output, text(t, got.Usage))
	}
	if text(t, beats) != `[5,7]` {
		t.Errorf("heartbeats after %v bytes, want one at once and then every two seconds", beats)
	}
	body := p.Seen()[0].Body
	if body["stream"] != true || text(t, body["stream_options"]) != `{"include_usage":true}` {
		t.Errorf("sent %v", body)
	}
}

func TestNodeChoosesStreaming(t *testing.T) {
	t.Parallel()
	p := newProvider(t, says("whole"))
	if _, err := newExecutor(t, llmcall.Config{BaseURL: p.URL, Stream: true}).Execute(t.Context(), request(object{"stream": false})); err != nil {
		t.Fatal(err)
	}
	if p.Seen()[0].Body["stream"] != false {
		t.Error("the node's wish is not heard")
	}
}

// TestServersThatCannotStream: they answer every request in one piece.
func TestServersThatCannotStream(t *testing.T) {
	t.Parallel()
	p := newProvider(t, says("whole"), raw(200, `{"error":{"code":503,"message":"nobody home"}}`, "Content-Type", "application/json; charset=utf-8"),
		raw(200, `[`, "Content-Type", "application/json"))
	e := newExecutor(t, llmcall.Config{BaseURL: p.URL, Stream: true})
	got, err := e.Execute(t.Context(), request(nil))
	if err != nil || text(t, got.Output) != `{"text":"whole"}` || got.Usage["total_tokens"] != 7 {
		t.Errorf("%+v, %v", got, err)
	}
	_, err = e.Execute(t.Context(), request(nil))
	if f := wantFailure(t, err, problem.LLMProviderError, "nobody home"); f.Retryable != activities.RetrySensible {
		t.Errorf("retryable %v", f.Retryable)
	}
	_, err = e.Execute(t.Context(), request(nil))
	wantFailure(t, err, problem.LLMProviderError, "not a chat completion")
}

// TestStreamsWithoutUsage: a server that rejects stream_options is asked without them from then on.
func TestStreamsWithoutUsage(t *testing.T) {
	t.Parallel()
	p := newProvider(t, raw(400, `{"error":"unknown field stream_options"}`), streams(piece1, piece2, piece3, done))
	e := newExecutor(t, llmcall.Config{BaseURL: p.URL, Stream: true})
	for range 2 {
		got, err := e.Execute(t.Context(), request(object{"output_schema": schema()}))
		if err != nil || text(t, got.Output) != `{"n":1}` || got.Usage["model"] != "m-2026" {
			t.Fatalf("%+v, %v", got, err)
		}
		if _, counted := got.Usage["total_tokens"]; counted {
			t.Errorf("usage %v counts tokens that nobody told", got.Usage)
		}
	}
	var asked []bool
	for _, r := range p.Seen() {
		asked = append(asked, r.Body["stream_options"] != nil)
	}
	if text(t, asked) != `[true,false,false]` {
		t.Errorf("asked for usage: %v", asked)
	}
	// Another error, or a second one, fails the attempt.
	p = newProvider(t, raw(400, `{"error":"stream_options: no"}`))
	_, err := newExecutor(t, llmcall.Config{BaseURL: p.URL, Stream: true}).Execute(t.Context(), request(nil))
	if wantFailure(t, err, problem.LLMProviderError, "stream_options"); len(p.Seen()) != 2 {
		t.Errorf("%d requests", len(p.Seen()))
	}
}

// TestStreamsWithoutUsageAtOnce: calls that are rejected at the same time are all repeated, not only the first.
func TestStreamsWithoutUsageAtOnce(t *testing.T) {
	t.Parallel()
	const calls = 3
	var arrived sync.WaitGroup
	arrived.Add(calls)
	p := newProvider(t, func(w http.ResponseWriter, r *http.Request) {
		arrived.Done()
		arrived.Wait()
		raw(400, `{"error":"unknown field stream_options"}`)(w, r)
	})
	for range calls - 1 {
		p.Answers = append(p.Answers, p.Answers[0])
	}
	p.Answers = append(p.Answers, streams(piece1, piece2, piece3, done))
	e := newExecutor(t, llmcall.Config{BaseURL: p.URL, Stream: true})
	var ended sync.WaitGroup
	for range calls {
		ended.Go(func() {
			if _, err := e.Execute(t.Context(), request(nil)); err != nil {
				t.Error(err)
			}
		})
	}
	ended.Wait()
}

func TestStreamsThatFail(t *testing.T) {
	t.Parallel()
	const sensible, unknown = activities.RetrySensible, activities.RetryUnknown
	for _, tt := range []struct {
		name   string
		events []string
		want   string
		retry  activities.Retryable
	}{
		{"cut off", []string{piece1}, "ended before the answer", sensible},
		{"done without an answer", []string{done}, "ended before the answer", sensible},
		{"done with half a call", []string{`data: {"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{\"a\":"}}]}}]}`, done}, "ended before the answer", sensible},
		{"empty", nil, "ended before the answer", sensible},
		{"not JSON", []string{piece1, "data: {oops"}, "not JSON", sensible},
		{"another document", []string{`data: {"choices":7}`}, "not a chat completion chunk", sensible},
		{"an error", []string{piece1, `data: {"error":{"message":"overloaded ` + sentinel + `"}}`}, "overloaded [secret]", sensible},
		{"an error with a status", []string{piece1, `data: {"error":{"code":400,"message":"bad"}}`}, "status 400: bad", activities.RetryPointless},
		{"an error after a comment", []string{": wait", `data: {"error":{"code":400,"message":"bad"}}`}, "status 400: bad", activities.RetryPointless},
		{"an error in another form", []string{piece1, `data: {"id":1, "error":"out of memory"}`}, "out of memory", sensible},
		{"refusal", []string{`data: {"choices":[{"index":0,"delta":{"refusal":"never"},"finish_reason":"stop"}]}`, done}, "never", unknown},
		{"tool call", []string{`data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"1"}]},"finish_reason":"tool_calls"}]}`, done}, "called a tool", unknown},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := newProvider(t, streams(tt.events...))
			_, err := newExecutor(t, llmcall.Config{BaseURL: p.URL, Stream: true}).Execute(t.Context(), request(nil))
			if f := wantFailure(t, err, problem.LLMProviderError, tt.want); f.Retryable != tt.retry {
				t.Errorf("retryable %v, want %v", f.Retryable, tt.retry)
			}
		})
	}
	p := newProvider(t, raw(429, "slow down", "Retry-After", "2"))
	_, err := newExecutor(t, llmcall.Config{BaseURL: p.URL, Stream: true}).Execute(t.Context(), request(nil))
	if f := wantFailure(t, err, problem.LLMProviderError, "slow down"); f.RetryAfter != 2*time.Second {
		t.Errorf("retry after %v", f.RetryAfter)
	}
}

// TestManyComments: comments that keep a connection alive during long reasoning are ignored.
func TestManyComments(t *testing.T) {
	t.Parallel()
	p := newProvider(t, streams(strings.Repeat(": thinking\n\n", 1000), piece1, piece2, piece3, done))
	if _, err := newExecutor(t, llmcall.Config{BaseURL: p.URL, Stream: true}).Execute(t.Context(), request(nil)); err != nil {
		t.Error(err)
	}
}
