package llmcall_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/activities/llmcall"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/enginetest"
)

// sentinel is the key of these tests. No text that an executor gives may hold it.
const sentinel = "sk-sentinel/4f9c+Zq81=="

// object is a JSON object.
type object = map[string]any

// provider is a server that speaks chat completions: it gives its answers one after another, the last one again and
// again, and keeps what arrived.
type provider struct {
	*httptest.Server
	t        testing.TB
	mu       sync.Mutex
	answers  []http.HandlerFunc
	requests []arrived
}

type arrived struct {
	method, path string
	header       http.Header
	body         object
}

func newProvider(t testing.TB, answers ...http.HandlerFunc) *provider {
	t.Helper()
	p := &provider{t: t, answers: answers}
	p.Server = httptest.NewServer(p)
	t.Cleanup(p.Close)
	return p
}

// newProviderInMemory is newProvider for a bubble of testing/synctest. Only the provider's Client reaches it.
func newProviderInMemory(t testing.TB, answers ...http.HandlerFunc) *provider {
	t.Helper()
	p := &provider{t: t, answers: answers}
	p.Server = enginetest.Serve(t, p)
	return p
}

func (p *provider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var body object
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		p.t.Errorf("the request is not JSON: %v", err)
	}
	p.mu.Lock()
	p.requests = append(p.requests, arrived{r.Method, r.URL.Path, r.Header.Clone(), body})
	answer := p.answers[0]
	if len(p.answers) > 1 {
		p.answers = p.answers[1:]
	}
	p.mu.Unlock()
	answer(w, r)
}

func (p *provider) seen() []arrived {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]arrived(nil), p.requests...)
}

// says answers with a text, three prompt tokens and four of its own.
func says(content string) http.HandlerFunc { return completes(object{"content": content}, "stop") }

func completes(message object, finish string) http.HandlerFunc {
	message["role"] = "assistant"
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(object{
			"id": "c1", "object": "chat.completion", "model": "m-2026",
			"choices": []any{object{"index": 0, "message": message, "finish_reason": finish}},
			"usage":   object{"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7},
		})
	}
}

// raw answers with a status and a body; headers are pairs.
func raw(status int, body string, headers ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

// hangs answers nothing until the client is gone.
func hangs(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }

// streams answers with server-sent events.
func streams(events ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for _, e := range events {
			_, _ = fmt.Fprintf(w, "%s\n\n", e)
			w.(http.Flusher).Flush()
		}
	}
}

func keyed(key string) func(context.Context) (llmcall.Secret, error) {
	return func(context.Context) (llmcall.Secret, error) { return llmcall.NewSecret(key), nil }
}

func newExecutor(t testing.TB, c llmcall.Config) *llmcall.Executor {
	t.Helper()
	if c.APIKey == nil && !c.NoAuth {
		c.APIKey = keyed(sentinel)
	}
	e, err := llmcall.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// request is an llm_call with a model, a prompt, and more members of its config.
func request(more object) activities.Request {
	config := object{"model": " m ", "user_prompt": "U"}
	for name, v := range more {
		if config[name] = v; v == nil {
			delete(config, name)
		}
	}
	return activities.Request{
		ExecutionID: "ex", NodeID: "ask me", NodeType: "llm_call", Config: config, Visit: 1, Attempt: 1,
		IdempotencyKey: "ex:ask me#1.1",
		State:          func() map[string]any { return object{"b": 1.0, "a": []any{"x"}, "name": "Ada"} },
		Heartbeat:      func(map[string]any) {},
	}
}

// schema asks for an object with a number n.
func schema() object {
	return object{"type": "object", "required": []any{"n"}, "properties": object{"n": object{"type": "number"}}}
}

func wantFailure(t *testing.T, err error, code problem.Code, contains string) *activities.Failure {
	t.Helper()
	failure, ok := errors.AsType[*activities.Failure](err)
	if !ok {
		t.Fatalf("error is %v, want a failure with code %s", err, code)
	}
	if failure.Code != string(code) || !strings.Contains(failure.Error(), contains) {
		t.Errorf("got %s: %v, want %s: …%s…", failure.Code, failure, code, contains)
	}
	if strings.Contains(failure.Error(), "sentinel") {
		t.Errorf("the failure shows the key: %v", failure)
	}
	return failure
}

// text is a value as JSON.
func text(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
