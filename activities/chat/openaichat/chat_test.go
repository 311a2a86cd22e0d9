package openaichat_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/activities/chat"
	"github.com/workflows-engine/workflows-engine/activities/chat/chattest"
	"github.com/workflows-engine/workflows-engine/activities/chat/openaichat"
	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// question is a conversation with one tool.
func question() chat.Request {
	return chat.Request{
		Model: "m", Messages: []chat.Message{{Role: chat.System, Text: "Be brief."}, {Role: chat.User, Text: "How warm is Zürich?"}},
		Tools:     []chat.Tool{{Name: "weather", Description: "Tells the weather.", Parameters: object{"type": "object", "required": []any{"at"}}}},
		MaxTokens: 500, Temperature: new(0.5), Key: "ex:agent#1.1:t1",
	}
}

// ways runs a test with whole answers and with streamed ones.
func ways(t *testing.T, f func(t *testing.T, req chat.Request)) {
	for name, stream := range map[string]bool{"whole": false, "streamed": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			req := question()
			req.Stream = stream
			f(t, req)
		})
	}
}

func TestChat(t *testing.T) {
	t.Parallel()
	ways(t, func(t *testing.T, req chat.Request) {
		s := chattest.Serve(t, chattest.Reply{
			Text: "Let me look, in Zürich.", Reasoning: "I need the weather.", Usage: chat.Usage{Prompt: 30, Cached: 20, Completion: 9},
			Calls: []chat.Call{{ID: "a", Name: "weather", Arguments: `{"at":"Zürich"}`}, {ID: "b", Name: "weather", Arguments: `{"at":`}},
		})
		var heard []string
		req.OnText = func(text string) { heard = append(heard, text) }
		got, err := newModel(t, openaichat.Config{BaseURL: s.URL}).Chat(t.Context(), req)
		if err != nil {
			t.Fatal(err)
		}
		want := chat.Reply{
			Model: "m", Text: "Let me look, in Zürich.", Reasoning: "I need the weather.", Finish: chat.FinishStop,
			Calls: []chat.Call{{ID: "a", Name: "weather", Arguments: `{"at":"Zürich"}`}, {ID: "b", Name: "weather", Arguments: `{"at":`}},
			Usage: chat.Usage{Prompt: 30, Cached: 20, Completion: 9},
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("got  %+v\nwant %+v", got, want)
		}
		if joined := strings.Join(heard, ""); req.Stream && (joined != want.Text || len(heard) < 3) || !req.Stream && joined != "" {
			t.Errorf("heard %q", heard)
		}
		asked := s.Asked()[0]
		if asked.Key != "ex:agent#1.1:t1" || asked.Header.Get("Authorization") != "Bearer "+sentinel || asked.Path != "/chat/completions" {
			t.Errorf("%s with %v", asked.Path, asked.Header)
		}
		if !reflect.DeepEqual(asked.Messages, req.Messages) || asked.MaxTokens != 500 || *asked.Temperature != 0.5 || asked.Stream != req.Stream || asked.Schema != nil {
			t.Errorf("asked %+v", asked.Request)
		}
		if sent := text(t, asked.Tools[0].Parameters); sent != `{"properties":{},"required":["at"],"type":"object"}` {
			t.Errorf("parameters %s", sent)
		}
	})
}

// TestChatSendsWhatProvidersTake: strict providers accept the next request, whatever models and tools have returned, and it
// begins with the bytes of the previous request.
func TestChatSendsWhatProvidersTake(t *testing.T) {
	t.Parallel()
	s := chattest.Serve(t, chattest.Reply{Always: true})
	e := newModel(t, openaichat.Config{BaseURL: s.URL})
	req := question()
	req.Messages = []chat.Message{{Role: chat.System, Text: " "}, {Role: chat.User}}
	var before string
	for _, said := range []struct {
		calls   []chat.Call
		results []chat.Message
	}{
		{[]chat.Call{{ID: "call_1", Name: "weather", Arguments: ""}}, []chat.Message{{Role: chat.Result, CallID: "call_1"}}},
		{
			[]chat.Call{{ID: "call_1", Name: "no\x00such tool\n", Arguments: "{oops"}, {ID: "call_2", Arguments: `["a"]`}},
			[]chat.Message{{Role: chat.Result, CallID: "call_2", Text: "x"}, {Role: chat.Result, CallID: "call_1", Text: "y"}},
		},
		{nil, []chat.Message{{Role: chat.User, Text: "Go on."}}},
		{[]chat.Call{{ID: "call_1", Name: strings.Repeat("é", 100), Arguments: "\xff"}}, []chat.Message{{Role: chat.Result, CallID: "call_1"}}},
	} {
		req.Messages = append(append(req.Messages, chat.Message{Role: chat.Assistant, Calls: said.calls}), said.results...)
		if _, err := e.Chat(t.Context(), req); err != nil {
			t.Fatal(err)
		}
		asked := s.Asked()
		var body struct{ Messages []json.RawMessage }
		if err := json.Unmarshal(asked[len(asked)-1].Body, &body); err != nil {
			t.Fatal(err)
		}
		after := text(t, body.Messages)
		if !strings.HasPrefix(after, strings.TrimSuffix(before, "]")) {
			t.Errorf("the request does not continue the one before:\n%s\n%s", before, after)
		}
		before = after
	}
	asked := s.Asked()
	last := asked[len(asked)-1].Messages
	want := []chat.Message{
		{Role: chat.User, Text: "(nothing)"},
		{Role: chat.Assistant, Calls: []chat.Call{{ID: "call_1", Name: "weather", Arguments: "{}"}}},
		{Role: chat.Result, CallID: "call_1", Text: "(nothing)"},
		{Role: chat.Assistant, Calls: []chat.Call{
			{ID: "call_1_2", Name: "no_such_tool_", Arguments: `{"invalid_arguments":"{oops"}`}, {ID: "call_2", Name: "output", Arguments: `{"invalid_arguments":"[\"a\"]"}`},
		}},
		{Role: chat.Result, CallID: "call_2", Text: "x"}, {Role: chat.Result, CallID: "call_1_2", Text: "y"},
		{Role: chat.Assistant, Text: "(nothing)"}, {Role: chat.User, Text: "Go on."},
		{Role: chat.Assistant, Calls: []chat.Call{{ID: "call_1_3", Name: strings.Repeat("_", 64), Arguments: `{"invalid_arguments":"` + "\uFFFD" + `"}`}}},
		{Role: chat.Result, CallID: "call_1_3", Text: "(nothing)"},
	}
	if !reflect.DeepEqual(last, want) {
		t.Errorf("sent %+v\nwant %+v", last, want)
	}
}

// TestChatRefusesWhatNoProviderTakes before a request is sent.
func TestChatRefusesWhatNoProviderTakes(t *testing.T) {
	t.Parallel()
	e := newModel(t, openaichat.Config{BaseURL: chattest.Serve(t).URL})
	for name, change := range map[string]func(*chat.Request){
		"no model":         func(r *chat.Request) { r.Model = " " },
		"no message":       func(r *chat.Request) { r.Messages = nil },
		"nothing but air":  func(r *chat.Request) { r.Messages = []chat.Message{{Role: chat.System}} },
		"a role":           func(r *chat.Request) { r.Messages[0].Role = "owner" },
		"a tool's name":    func(r *chat.Request) { r.Tools[0].Name = "files.read" },
		"a long name":      func(r *chat.Request) { r.Tools[0].Name = strings.Repeat("a", 65) },
		"one name twice":   func(r *chat.Request) { r.Tools = append(r.Tools, r.Tools[0]) },
		"a temperature":    func(r *chat.Request) { r.Temperature = new(-1.0) },
		"settings of gpt5": func(r *chat.Request) { r.Model = "gpt-5" },
	} {
		req := question()
		change(&req)
		_, err := e.Chat(t.Context(), req)
		if f := wantFailure(t, err, problem.LLMConfigInvalid, ""); f.Retryable != activities.RetryPointless {
			t.Errorf("%s: %v", name, f.Retryable)
		}
	}
}

// TestChatFailures checks codes, waiting times and the advice to retry.
func TestChatFailures(t *testing.T) {
	t.Parallel()
	const sensible, pointless, unknown = activities.RetrySensible, activities.RetryPointless, activities.RetryUnknown
	const exceeded = problem.LLMContextExceeded // which is chat.CodeContextExceeded
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for _, tt := range []struct {
		name     string
		answer   http.HandlerFunc
		code     problem.Code
		says     string
		retry    activities.Retryable
		after    time.Duration
		overload bool
		// events are answers to requests for a stream alone.
		events bool
	}{
		{"413", raw(413, "too large for "+sentinel, "Retry-After", "3"), exceeded, "status 413: too large for [secret]", pointless, 0, false, false},
		{"OpenAI", raw(400, `{"error":{"message":"This model's maximum context length is 8192 tokens.","code":"context_length_exceeded"}}`), exceeded, "status 400", pointless, 0, false, false},
		{"a code alone", raw(400, `{"error":{"message":"no","code":"context_length_exceeded"}}`), exceeded, "status 400", pointless, 0, false, false},
		{"llama.cpp", raw(400, `{"error":{"code":400,"message":"request (9 tokens) exceeds the available context size (8 tokens), try increasing it","type":"exceed_context_size_error"}}`), exceeded, "status 400", pointless, 0, false, false},
		{"llama.cpp, while it answers", raw(500, `{"error":{"message":"Context size has been exceeded."}}`), exceeded, "status 500", pointless, 0, false, false},
		{"Anthropic", raw(400, `{"type":"error","error":{"message":"prompt is too long: 210000 tokens > 200000 maximum"}}`), exceeded, "", pointless, 0, false, false},
		{"Gemini", raw(400, `[{"error":{"message":"The input token count (1196265) exceeds the maximum number of tokens allowed (1048576)."}}]`), exceeded, "", pointless, 0, false, false},
		{"xAI", raw(400, `"This model's maximum prompt length is 131072 but the request contains 537812 tokens."`), exceeded, "", pointless, 0, false, false},
		{"in an answer", raw(200, `{"error":{"code":400,"message":"maximum context length is 5"}}`), exceeded, "status 400", pointless, 0, false, false},
		{"in a stream", streams(`data: {"error":{"code":"context_length_exceeded","message":"no"}}`), exceeded, "no (context_length_exceeded)", pointless, 0, false, true},
		{"a limit for some minutes", raw(429, `too many tokens: context length`), problem.LLMProviderError, "status 429", sensible, 0, false, false},
		{"429 with seconds", raw(429, "slow down", "Retry-After", "7"), problem.LLMProviderError, "status 429; the rate limit", sensible, 7 * time.Second, false, false},
		{"429 with a date", raw(429, "slow down", "Retry-After", "Sun, 01 Mar 2026 12:00:42 GMT"), problem.LLMProviderError, "status 429", sensible, 42 * time.Second, false, false},
		{"529", raw(529, "busy", "Retry-After", "2"), problem.LLMProviderError, "status 529: busy: the provider is overloaded", sensible, 2 * time.Second, true, false},
		{"overloaded in words", raw(503, "The engine is currently overloaded"), problem.LLMProviderError, "status 503", sensible, 0, true, false},
		{"overloaded in a stream", streams(": wait", `data: {"type":"error", "error":{"type":"overloaded_error","message":"Later"}}`), problem.LLMProviderError, "Later (overloaded_error)", sensible, 0, true, true},
		{"503", raw(503, "down"), problem.LLMProviderError, "status 503", sensible, 0, false, false},
		{"401", raw(401, "no "+sentinel), problem.LLMProviderError, ": no [secret]", pointless, 0, false, false},
		{"403", raw(403, "no"), problem.LLMProviderError, "status 403", pointless, 0, false, false},
		{"404", raw(404, "no such model"), problem.LLMProviderError, "status 404", pointless, 0, false, false},
		{"a redirect", raw(307, "", "Location", "/"), problem.LLMProviderError, "redirects are not followed", pointless, 0, false, false},
		{"a connection that closes", dies, problem.LLMProviderError, "cannot be reached", sensible, 0, false, false},
		{"no choices", raw(200, `{"choices":[]}`, "Content-Type", "application/json"), problem.LLMProviderError, "no choices", unknown, 0, false, false},
		{"an error among the choices", raw(200, `{"choices":[{"error":{"code":502,"message":"upstream"},"finish_reason":"error"}]}`), problem.LLMProviderError, "status 502: upstream", sensible, 0, false, false},
		{"an error as the end", raw(200, `{"choices":[{"message":{"content":"x"},"finish_reason":"error"}]}`), problem.LLMProviderError, "ended its answer", sensible, 0, false, false},
		{"an error that is a text", raw(200, `{"error":"out of memory"}`), problem.LLMProviderError, `"out of memory"`, sensible, 0, false, false},
		{"an error without an event", streams(`{"error":{"code":500,"message":"boom"}}`), problem.LLMProviderError, "status 500: boom", sensible, 0, false, true},
		{"a web page", raw(200, "<html>"), problem.LLMProviderError, "", sensible, 0, false, false},
		{"no UTF-8", raw(200, "{\"choices\":[{\"message\":{\"content\":\"\xff\"}}]}"), problem.LLMProviderError, "not valid UTF-8", sensible, 0, false, false},
		{"a refusal", raw(200, `{"choices":[{"message":{"refusal":"never"},"finish_reason":"stop"}]}`), problem.LLMProviderError, "the model refused: never", unknown, 0, false, false},
		{"20 MB", floods, problem.LLMProviderError, "longer than the limit of 10485760 bytes", unknown, 0, false, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			ways(t, func(t *testing.T, req chat.Request) {
				e := newModel(t, openaichat.Config{BaseURL: newProvider(t, tt.answer).URL, Now: func() time.Time { return now }})
				_, err := e.Chat(t.Context(), req)
				if tt.events && !req.Stream {
					return
				}
				f := wantFailure(t, err, tt.code, tt.says)
				if f.Retryable != tt.retry || f.RetryAfter != tt.after || errors.Is(err, chat.ErrOverloaded) != tt.overload {
					t.Errorf("retryable %v after %v, overloaded %v: %v", f.Retryable, f.RetryAfter, errors.Is(err, chat.ErrOverloaded), f)
				}
			})
		})
	}
}

// TestChatWithoutUsage: tokens that a provider does not count are estimated, also in failures.
func TestChatWithoutUsage(t *testing.T) {
	t.Parallel()
	ways(t, func(t *testing.T, req chat.Request) {
		s := chattest.Serve(t, chattest.Reply{Text: strings.Repeat("x", 400), NoUsage: true}, chattest.Reply{Text: strings.Repeat("x", 400), Break: true})
		e := newModel(t, openaichat.Config{BaseURL: s.URL})
		got, err := e.Chat(t.Context(), req)
		if size := len(s.Asked()[0].Body); err != nil || got.Usage != (chat.Usage{Prompt: (size + 3) / 4, Completion: 100, Estimated: true}) {
			t.Errorf("%+v for a request of %d bytes, %v", got.Usage, size, err)
		}
		_, err = e.Chat(t.Context(), req)
		f := wantFailure(t, err, problem.LLMProviderError, "broke off")
		u := chat.UsageIn(f.Usage)
		if f.Retryable != activities.RetrySensible || req.Stream && (!u.Estimated || u.Completion < 40 || u.Prompt < 50) || !req.Stream && f.Usage != nil {
			t.Errorf("usage %v, retryable %v", f.Usage, f.Retryable)
		}
	})
	refusal := raw(200, `{"choices":[{"message":{"refusal":"never"}}],"usage":{"prompt_tokens":9,"completion_tokens":2,"prompt_cache_hit_tokens":4}}`)
	_, err := newModel(t, openaichat.Config{BaseURL: newProvider(t, refusal).URL}).Chat(t.Context(), question())
	if u := chat.UsageIn(wantFailure(t, err, problem.LLMProviderError, "").Usage); u != (chat.Usage{Prompt: 9, Cached: 4, Completion: 2}) {
		t.Errorf("usage of a refusal %+v", u)
	}
}

// TestChatThatNeverEnds: an endless stream ends with the caller, its deadline, or the limit of a request.
func TestChatThatNeverEnds(t *testing.T) {
	t.Parallel()
	endless := func(w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			streams(": thinking", `data: {"choices":[{"delta":{"content":"x"}}]}`)(w, r)
			time.Sleep(time.Second)
		}
	}
	for _, tt := range []struct {
		code  problem.Code
		limit time.Duration
		end   time.Duration
	}{{problem.ActivityCancelled, 0, 0}, {problem.Timeout, 0, 20 * time.Second}, {problem.Timeout, 30 * time.Second, 0}} {
		synctest.Test(t, func(t *testing.T) {
			p := newProviderInMemory(t, endless)
			e := newModel(t, openaichat.Config{BaseURL: p.URL, Client: p.Client(), RequestTimeout: tt.limit})
			ctx, cancel := contextOf(t, tt.end)
			req, heard := question(), 0
			req.Stream, req.OnText = true, func(string) {
				if heard++; heard == 5 && tt.code == problem.ActivityCancelled {
					cancel()
				}
			}
			_, err := e.Chat(ctx, req)
			f := wantFailure(t, err, tt.code, "")
			if u := chat.UsageIn(f.Usage); heard < 5 || u.Completion < 1 || !u.Estimated {
				t.Errorf("heard %d pieces, usage %+v", heard, u)
			}
			cancel()
			p.Close()
		})
	}
}

// TestChatHidesTheKey, which a provider may repeat in any field, and in pieces.
func TestChatHidesTheKey(t *testing.T) {
	t.Parallel()
	ways(t, func(t *testing.T, req chat.Request) {
		for piece := 1; piece <= len(sentinel)+1; piece++ {
			s := chattest.Serve(t, chattest.Reply{
				Text: "sk- is how " + sentinel + " begins: sk-senti", Reasoning: sentinel, Piece: piece, Finish: sentinel,
				Calls: []chat.Call{{ID: sentinel, Name: sentinel, Arguments: `{"k":"` + strings.ReplaceAll(sentinel, "+", `\u002b`) + `"}`}},
			})
			var heard strings.Builder
			req.OnText = func(text string) { heard.WriteString(text) }
			got, err := newModel(t, openaichat.Config{BaseURL: s.URL}).Chat(t.Context(), req)
			const want = "sk- is how [secret] begins: sk-senti"
			if err != nil || strings.Contains(text(t, got), "4f9c") || got.Text != want || req.Stream && heard.String() != want || got.Calls[0].Arguments != `{"k":"[secret]"}` {
				t.Fatalf("pieces of %d: heard %q, got %+v, %v", piece, heard.String(), got, err)
			}
		}
	})
}

// TestChatSchema: the formats fall back and are remembered.
func TestChatSchema(t *testing.T) {
	t.Parallel()
	p := newProvider(t, raw(400, `{"error":{"message":"response_format.type json_schema is not supported"}}`), says(`{"n":1}`))
	e := newModel(t, openaichat.Config{BaseURL: p.URL})
	req := question()
	req.Schema = schema()
	for _, req.SchemaName = range []string{"", "", "another name"} {
		if got, err := e.Chat(t.Context(), req); err != nil || got.Text != `{"n":1}` {
			t.Fatalf("%+v, %v", got, err)
		}
	}
	var asked []string
	for _, r := range p.Seen() {
		kind, described := format(r)
		if described {
			kind += "+schema"
		}
		asked = append(asked, kind)
	}
	if got := strings.Join(asked, " "); got != "json_schema json_object+schema json_object+schema json_object+schema" {
		t.Errorf("formats %s", got)
	}
	if first, second := p.Seen()[0].Header.Get("Idempotency-Key"), p.Seen()[1].Header.Get("Idempotency-Key"); first != req.Key || second != req.Key+":2" {
		t.Errorf("keys %q, %q", first, second)
	}
}

// TestEndpoint: another endpoint has its own address and key, and the other settings of the model.
func TestEndpoint(t *testing.T) {
	t.Parallel()
	here, there := chattest.Serve(t), chattest.Serve(t, chattest.Text("there"), chattest.Text(strings.Repeat("x", 3000)))
	e := newModel(t, openaichat.Config{BaseURL: here.URL, MaxAnswerBytes: 2000})
	model, err := e.At(openaichat.Endpoint{BaseURL: there.URL, NoAuth: true})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := model.Chat(t.Context(), question()); err != nil || got.Text != "there" || there.Asked()[0].Header.Get("Authorization") != "" {
		t.Errorf("%+v, %v, %v", got, err, there.Asked()[0].Header)
	}
	_, err = model.Chat(t.Context(), question())
	wantFailure(t, err, problem.LLMProviderError, "limit of 2000 bytes")
	_, err = e.At(openaichat.Endpoint{BaseURL: there.URL})
	if !errors.Is(err, problem.LLMConfigInvalid) {
		t.Errorf("an endpoint without a key: %v", err)
	}
	missing, err := e.At(openaichat.Endpoint{BaseURL: there.URL, APIKey: keyed(" ")})
	if err != nil {
		t.Fatal(err)
	}
	_, err = missing.Chat(t.Context(), question())
	wantFailure(t, err, problem.LLMCredentialsMissing, "blank")
}
