package enginetest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
)

// Provider is a server of chat completions for tests of the wire: it gives its Answers in order, repeats the last one, and keeps the requests.
type Provider struct {
	*httptest.Server
	t        testing.TB
	mu       sync.Mutex
	Answers  []http.HandlerFunc
	requests []Arrived
}

// Arrived is a request that a Provider received.
type Arrived struct {
	Method, Path string
	Header       http.Header
	Body         map[string]any
}

// NewProvider starts a Provider that closes with the test.
func NewProvider(t testing.TB, answers ...http.HandlerFunc) *Provider {
	t.Helper()
	p := &Provider{t: t, Answers: answers}
	p.Server = httptest.NewServer(p)
	t.Cleanup(p.Close)
	return p
}

// NewProviderInMemory is NewProvider for a bubble of testing/synctest. Only the provider's Client reaches it.
func NewProviderInMemory(t testing.TB, answers ...http.HandlerFunc) *Provider {
	t.Helper()
	p := &Provider{t: t, Answers: answers}
	p.Server = Serve(t, p)
	return p
}

func (p *Provider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var body map[string]any
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		p.t.Errorf("the request is not JSON: %v", err)
	}
	p.mu.Lock()
	p.requests = append(p.requests, Arrived{r.Method, r.URL.Path, r.Header.Clone(), body})
	answer := p.Answers[0]
	if len(p.Answers) > 1 {
		p.Answers = p.Answers[1:]
	}
	p.mu.Unlock()
	answer(w, r)
}

// Seen returns the requests so far.
func (p *Provider) Seen() []Arrived {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.requests)
}

// Says answers with a text, and counts three prompt tokens and four of its own.
func Says(content string) http.HandlerFunc {
	return Completes(map[string]any{"content": content}, "stop")
}

// Completes answers with a message.
func Completes(message map[string]any, finish string) http.HandlerFunc {
	message["role"] = "assistant"
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{
			"id": "c1", "object": "chat.completion", "model": "m-2026",
			"choices": []any{map[string]any{"index": 0, "message": message, "finish_reason": finish}},
			"usage":   map[string]any{"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7},
		})
	}
}

// Raw answers with a status and a body; headers are pairs.
func Raw(status int, body string, headers ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

// Hangs sends no answer before the client disconnects.
func Hangs(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }

// Dies closes the connection instead of answering.
func Dies(w http.ResponseWriter, _ *http.Request) {
	if connection, _, err := w.(http.Hijacker).Hijack(); err == nil {
		connection.Close()
	}
}

// Floods answers with 20 MB, as long as the client reads them.
func Floods(w http.ResponseWriter, _ *http.Request) {
	w.WriteHeader(http.StatusOK)
	_, _ = io.WriteString(w, `{"choices":[{"message":{"content":"`)
	piece := strings.Repeat("x", 1<<20)
	for range 20 {
		if _, err := io.WriteString(w, piece); err != nil {
			return
		}
	}
}

// Streams answers with server-sent events.
func Streams(events ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for _, e := range events {
			_, _ = fmt.Fprintf(w, "%s\n\n", e)
			w.(http.Flusher).Flush()
		}
	}
}
