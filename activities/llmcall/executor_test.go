package llmcall_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/activities/llmcall"
	"github.com/workflows-engine/workflows-engine/graph/problem"
)

func TestWire(t *testing.T) {
	t.Parallel()
	p := newProvider(t, says("hello"))
	e := newExecutor(t, llmcall.Config{BaseURL: " " + p.URL + "/v1/ ", APIKey: keyed(" " + sentinel + "\n")})
	got, err := e.Execute(t.Context(), request(object{
		"system_prompt": "S ${ .name }", "temperature": 0.0, "top_p": 0.5, "max_tokens": 20.0, "seed": 7.0, "stop": "END", "other": true,
	}))
	if err != nil {
		t.Fatal(err)
	}
	if text(t, got.Output) != `{"text":"hello"}` {
		t.Errorf("output %v", got.Output)
	}
	delete(got.Usage, "duration_ms")
	if want := `{"completion_tokens":4,"finish_reason":"stop","model":"m-2026","prompt_tokens":3,"requests":1,"total_tokens":7}`; text(t, got.Usage) != want {
		t.Errorf("usage %s, want %s", text(t, got.Usage), want)
	}
	r := p.Seen()[0]
	if r.Method != "POST" || r.Path != "/v1/chat/completions" {
		t.Errorf("%s %s", r.Method, r.Path)
	}
	for name, want := range map[string]string{
		"Authorization": "Bearer " + sentinel, "Content-Type": "application/json", "Idempotency-Key": "ex:ask me#1.1", "User-Agent": "workflows-engine",
	} {
		if got := r.Header.Get(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	if temperature, ok := r.Body["temperature"].(float64); !ok || temperature > 1e-30 {
		t.Errorf("temperature %v, want as good as 0", r.Body["temperature"])
	}
	delete(r.Body, "temperature")
	const want = `{"max_tokens":20,"messages":[{"content":"S ${ .name }","role":"system"},{"content":"U","role":"user"}],"model":"m",` +
		`"seed":7,"stop":["END"],"stream":false,"top_p":0.5}`
	if text(t, r.Body) != want {
		t.Errorf("sent %s\nwant %s", text(t, r.Body), want)
	}
}

func TestPrompts(t *testing.T) {
	t.Parallel()
	state := `{"a":["x"],"b":1,"name":"Ada"}`
	for _, tt := range []struct {
		name      string
		config    object
		templates any
		want      string // the messages' contents, joined by "|"
		refused   string
	}{
		{"user_prompt wins", object{"prompt": "P"}, nil, "U", ""},
		{"prompt", object{"user_prompt": nil, "prompt": "P"}, nil, "P", ""},
		{"the state", object{"user_prompt": nil}, nil, state, ""},
		{"an empty system prompt is left out", object{"system_prompt": ""}, nil, "U", ""},
		{"literal by default", object{"user_prompt": "${ .name } {{state.name}} $${"}, nil, "${ .name } {{state.name}} $${", ""},
		{"literal unless true", object{"user_prompt": "${ .name }"}, "true", "${ .name }", ""},
		{"a program is no text by default", object{"user_prompt": object{"jq": "."}}, nil, "", "not a text"},
		{"a number", object{"system_prompt": 1.0}, nil, "", "system_prompt"},
		{"an empty user_prompt", object{"user_prompt": "", "prompt": "P"}, nil, "", "is empty"},
		{"templates", object{"system_prompt": "For ${ .name }.", "user_prompt": "${ .a }, ${ .b + 1 }: ${ .none }!"}, true, `For Ada.|["x"], 2: !`, ""},
		{"braces in programs", object{"user_prompt": `<${ {x: .b} }> <${ "}" } ${ "a\("}" + .name)\"" }>`}, true, `<{"x":1}> <} a}Ada">`, ""},
		{"escaped", object{"user_prompt": "$${ .name } costs $5, ${ .name }"}, true, "${ .name } costs $5, Ada", ""},
		{"a program", object{"user_prompt": object{"jq": ".name + \"!\""}}, true, "Ada!", ""},
		{"a literal", object{"user_prompt": object{"literal": "${ .name }"}}, true, "${ .name }", ""},
		{"the state, with templates", object{"user_prompt": nil}, true, state, ""},
		{"unclosed", object{"user_prompt": "${ .name"}, true, "", "no matching }"},
		{"closed wrongly", object{"user_prompt": "${ .a] }"}, true, "", "no matching }"},
		{"empty program", object{"user_prompt": "${ }"}, true, "", "is empty"},
		{"broken program", object{"user_prompt": "${ .a | }"}, true, "", "cannot be filled in"},
		{"failing program", object{"user_prompt": "${ .name | tonumber }"}, true, "", "cannot be filled in"},
		{"empty result", object{"user_prompt": "${ .none }"}, true, "", "is empty"},
		{"another object", object{"user_prompt": object{"x": 1.0}}, true, "", `{"jq"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := newProvider(t, says("ok"))
			req := request(tt.config)
			req.Metadata = object{llmcall.Templates: tt.templates}
			_, err := newExecutor(t, llmcall.Config{BaseURL: p.URL}).Execute(t.Context(), req)
			if tt.refused != "" {
				f := wantFailure(t, err, problem.LLMConfigInvalid, tt.refused)
				if f.Retryable != activities.RetryPointless || len(p.Seen()) != 0 {
					t.Errorf("retryable %v after %d requests", f.Retryable, len(p.Seen()))
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var contents []string
			for _, m := range p.Seen()[0].Body["messages"].([]any) {
				contents = append(contents, m.(object)["content"].(string))
			}
			if got := strings.Join(contents, "|"); got != tt.want {
				t.Errorf("sent %q, want %q", got, tt.want)
			}
		})
	}
}

func TestEmptyStateHasAPrompt(t *testing.T) {
	t.Parallel()
	p := newProvider(t, says("ok"))
	req := request(object{"user_prompt": nil, "system_prompt": "S"})
	req.State = func() map[string]any { return object{} }
	if _, err := newExecutor(t, llmcall.Config{BaseURL: p.URL}).Execute(t.Context(), req); err != nil {
		t.Fatal(err)
	}
	user := p.Seen()[0].Body["messages"].([]any)[1].(object)
	if content, _ := user["content"].(string); !strings.Contains(content, "system instructions") {
		t.Errorf("sent %v", user)
	}
}

func TestConfigIsChecked(t *testing.T) {
	t.Parallel()
	p := newProvider(t, says("ok"))
	e := newExecutor(t, llmcall.Config{BaseURL: p.URL, MaxPromptBytes: 100})
	for _, tt := range []struct {
		config object
		want   string
	}{
		{object{"model": nil}, `config: missing field "model"`},
		{object{"model": "  "}, "config.model: must not be blank"},
		{object{"model": 1.0}, "config.model"},
		{object{"output_schema": "x"}, "config.output_schema"},
		{object{"output_schema": object{"type": 1.0}}, "config.output_schema: invalid schema"},
		{object{"temperature": "hot"}, "config.temperature"},
		{object{"temperature": -1.0}, "config.temperature"},
		{object{"top_p": 2.0}, "config.top_p"},
		{object{"max_tokens": 0.0}, "config.max_tokens"},
		{object{"max_tokens": 1.5}, "config.max_tokens"},
		{object{"seed": "s"}, "config.seed"},
		{object{"stop": []any{"a", 1.0}}, "config.stop"},
		{object{"stream": "yes"}, "config.stream"},
		{object{"user_prompt": strings.Repeat("x", 101)}, "above the limit of 100"},
		{object{"model": "o1-mini", "temperature": 0.3}, "does not take these settings"},
	} {
		_, err := e.Execute(t.Context(), request(tt.config))
		if f := wantFailure(t, err, problem.LLMConfigInvalid, tt.want); f.Retryable != activities.RetryPointless {
			t.Errorf("%v: retryable %v", tt.config, f.Retryable)
		}
	}
	req := request(nil)
	req.NodeType = "tool_call"
	_, err := e.Execute(t.Context(), req)
	wantFailure(t, err, problem.ExecutorUnsupportedNode, "tool_call")
	if len(p.Seen()) != 0 {
		t.Errorf("%d requests were sent", len(p.Seen()))
	}
}

// TestReasoningModelsHaveAnotherTokenLimit: the setting has the same name for every model, but another name on the wire.
func TestReasoningModelsHaveAnotherTokenLimit(t *testing.T) {
	t.Parallel()
	p := newProvider(t, says("ok"))
	if _, err := newExecutor(t, llmcall.Config{BaseURL: p.URL}).Execute(t.Context(), request(object{"model": "o3-mini", "max_tokens": 9.0})); err != nil {
		t.Fatal(err)
	}
	if body := p.Seen()[0].Body; body["max_completion_tokens"] != 9.0 || body["max_tokens"] != nil {
		t.Errorf("sent %v", body)
	}
}

func TestNew(t *testing.T) {
	t.Parallel()
	for _, c := range []llmcall.Config{
		{},
		{APIKey: keyed("k"), NoAuth: true},
		{NoAuth: true, BaseURL: "models.example"},
		{NoAuth: true, BaseURL: "ftp://models.example"},
		{NoAuth: true, BaseURL: "https://models.example/?x=1"},
		{NoAuth: true, BaseURL: "https://models.example/v1/chat/completions/"},
		{NoAuth: true, BaseURL: "https://me:sentinel@models.example"},
		{NoAuth: true, BaseURL: "https://me:sentinel@models.example/%zz"},
		{NoAuth: true, RequestTimeout: -1},
	} {
		_, err := llmcall.New(c)
		if !errors.Is(err, problem.LLMConfigInvalid) || strings.Contains(fmt.Sprint(err), "sentinel") {
			t.Errorf("%+v: %v", c, err)
		}
	}
	if _, err := llmcall.New(llmcall.Config{NoAuth: true}); err != nil {
		t.Error(err)
	}
}

func TestCredentials(t *testing.T) {
	t.Parallel()
	p := newProvider(t, says("ok"))
	for _, key := range []string{"", "  ", "two\nlines", "tab\tbed", "schlüssel"} {
		_, err := newExecutor(t, llmcall.Config{BaseURL: p.URL, APIKey: keyed(key)}).Execute(t.Context(), request(nil))
		if f := wantFailure(t, err, problem.LLMCredentialsMissing, "key"); f.Retryable != activities.RetryPointless {
			t.Errorf("%q: retryable %v", key, f.Retryable)
		}
	}
	broken := errors.New("no such variable")
	unreadable := func(context.Context) (llmcall.Secret, error) { return llmcall.Secret{}, broken }
	_, err := newExecutor(t, llmcall.Config{BaseURL: p.URL, APIKey: unreadable}).Execute(t.Context(), request(nil))
	if wantFailure(t, err, problem.LLMCredentialsMissing, "no such variable"); !errors.Is(err, broken) {
		t.Errorf("the cause is lost: %v", err)
	}
	if len(p.Seen()) != 0 {
		t.Errorf("%d requests were sent", len(p.Seen()))
	}
	if _, err := newExecutor(t, llmcall.Config{BaseURL: p.URL, NoAuth: true}).Execute(t.Context(), request(nil)); err != nil {
		t.Fatal(err)
	}
	if values, sent := p.Seen()[0].Header["Authorization"]; sent {
		t.Errorf("noAuth sent %q", values)
	}
}

// TestAnswers has the rows of the protocol's table (spec: activities, 5.5).
func TestAnswers(t *testing.T) {
	t.Parallel()
	withSchema := object{"output_schema": schema()}
	anySchema := object{"output_schema": object{}}
	const invalid, provider = problem.LLMOutputInvalid, problem.LLMProviderError
	for _, tt := range []struct {
		name    string
		config  object
		answer  http.HandlerFunc
		output  string
		code    problem.Code
		message string
		retry   activities.Retryable
	}{
		{name: "an object", answer: says(` {"a":[1]} `), output: `{"a":[1]}`},
		{name: "an array stays text", answer: says(`[1,2]`), output: `{"text":"[1,2]"}`},
		{name: "text is not trimmed", answer: says(" hi \n"), output: `{"text":" hi \n"}`},
		{name: "white space", answer: says(" \n"), output: `{"text":""}`},
		{name: "nothing", answer: says(""), output: `{"text":""}`},
		{name: "a fence stays text", answer: says("```json\n{\"a\":1}\n```"), output: `{"text":"` + "```json\\n{\\\"a\\\":1}\\n```" + `"}`},
		{name: "broken object", answer: says(`{"a":`), output: `{"text":"{\"a\":"}`},
		{name: "schema: an object", config: withSchema, answer: says(` {"n":1} `), output: `{"n":1}`},
		{name: "schema: fenced", config: withSchema, answer: says("```json\n{\"n\":1}\n```\n"), output: `{"n":1}`},
		{name: "schema: fenced without a language", config: withSchema, answer: says("```\n{\"n\":1}```"), output: `{"n":1}`},
		{name: "schema: an array", config: anySchema, answer: says(`[1,2]`), output: `[1,2]`},
		{name: "schema: a number", config: anySchema, answer: says(`7`), output: `7`},
		{name: "schema: null", config: anySchema, answer: says(`null`), output: `null`},
		{name: "schema: no JSON", config: withSchema, answer: says("n is 1"), code: invalid, message: "not JSON", retry: activities.RetrySensible},
		{name: "schema: broken", config: withSchema, answer: says(`{"n":"x"}`), code: invalid, message: "/n ", retry: activities.RetrySensible},
		{name: "schema: cut off", config: withSchema, answer: completes(object{"content": `{"n":`}, "length"), code: invalid, message: "max_tokens", retry: activities.RetrySensible},
		{name: "null content", answer: completes(object{"content": nil}, "stop"), code: provider, message: "no text"},
		{name: "no content", answer: completes(object{}, "length"), code: provider, message: `"length"`},
		{name: "parts", answer: completes(object{"content": []any{
			object{"type": "thinking", "thinking": []any{object{"type": "text", "text": "hm"}}}, object{"type": "text", "text": "x"}, object{"type": "text", "text": "y"},
		}}, "stop"), output: `{"text":"xy"}`},
		{name: "members of odd forms", answer: raw(200, `{"id":7,"created":1.5,"model":"m","choices":[{"message":{"content":"x"}}],"usage":{"prompt_tokens":1.0}}`), output: `{"text":"x"}`},
		{name: "parts without a text", answer: completes(object{"content": []any{object{"type": "image_url"}}}, "stop"), code: provider, message: "no text"},
		{name: "schema: a block between words", config: withSchema, answer: says("Sure!\n```json\n{\"n\":1}\n```\nAnything else?"), output: `{"n":1}`},
		{name: "schema: two blocks", config: withSchema, answer: says("```\n{\"n\":1}\n```\nor\n```\n{\"n\":2}\n```"), code: invalid, message: "not JSON", retry: activities.RetrySensible},
		{name: "cut off without a schema", answer: completes(object{"content": "half a sen"}, "length"), output: `{"text":"half a sen"}`},
		{name: "filtered", answer: completes(object{"content": nil}, "content_filter"), code: provider, message: `"content_filter"`},
		{name: "a number as content", answer: completes(object{"content": 1}, "stop"), code: provider, message: "not a chat completion", retry: activities.RetrySensible},
		{name: "refusal", answer: completes(object{"content": nil, "refusal": "I will not"}, "stop"), code: provider, message: "I will not"},
		{name: "tool call", answer: completes(object{"content": nil, "tool_calls": []any{object{"id": "1", "type": "function", "function": object{"name": "f"}}}}, "tool_calls"), code: provider, message: "called a tool"},
		{name: "no choices", answer: raw(200, `{"choices":[]}`), code: provider, message: "no choices"},
		{name: "another document", answer: raw(200, `{"ok":true}`), code: provider, message: "no choices"},
		{name: "a gateway's error", answer: raw(200, `{"error":{"code":503,"message":"upstream"}}`), code: provider, message: "upstream", retry: activities.RetrySensible},
		{name: "an HTML page", answer: raw(200, `<html>`+sentinel), code: provider, message: "not a chat completion: <html>", retry: activities.RetrySensible},
		{name: "an empty body", answer: raw(200, ``), code: provider, message: "not a chat completion", retry: activities.RetrySensible},
		{name: "half a body", answer: raw(200, `{"choices":[{"mess`), code: provider, message: "not a chat completion", retry: activities.RetrySensible},
		{name: "a body that breaks off", answer: raw(200, `{"choices":[{"mess`, "Content-Length", "900"), code: provider, message: "broke off after 18 bytes", retry: activities.RetrySensible},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := newProvider(t, tt.answer)
			got, err := newExecutor(t, llmcall.Config{BaseURL: p.URL}).Execute(t.Context(), request(tt.config))
			if tt.code != "" {
				if f := wantFailure(t, err, tt.code, tt.message); f.Retryable != tt.retry {
					t.Errorf("retryable %v, want %v", f.Retryable, tt.retry)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if text(t, got.Output) != tt.output {
				t.Errorf("output %s, want %s", text(t, got.Output), tt.output)
			}
		})
	}
}

func TestStatuses(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	const sensible, pointless = activities.RetrySensible, activities.RetryPointless
	for _, tt := range []struct {
		status  int
		header  []string
		message string
		retry   activities.Retryable
		after   time.Duration
	}{
		{400, nil, "status 400", pointless, 0},
		{401, nil, "the key is refused", pointless, 0},
		{403, nil, "the key is refused", pointless, 0},
		{404, nil, `status 404; there is no model "m" at http`, pointless, 0},
		{422, nil, "status 422", pointless, 0},
		{400, []string{"Retry-After", "9"}, "status 400", pointless, 0},
		{408, nil, "status 408", sensible, 0},
		{409, nil, "status 409", sensible, 0},
		{429, nil, "rate limit", sensible, 0},
		{429, []string{"Retry-After", "7"}, "rate limit", sensible, 7 * time.Second},
		{429, []string{"Retry-After", " 1.5 "}, "rate limit", sensible, 1500 * time.Millisecond},
		{429, []string{"Retry-After", "Sun, 01 Mar 2026 12:00:42 GMT"}, "rate limit", sensible, 42 * time.Second},
		{429, []string{"Retry-After", "Sun, 01 Mar 2026 11:00:00 GMT"}, "rate limit", sensible, 0},
		{429, []string{"Retry-After", "soon"}, "rate limit", sensible, 0},
		{429, []string{"Retry-After", "-3"}, "rate limit", sensible, 0},
		{429, []string{"Retry-After", "NaN"}, "rate limit", sensible, 0},
		{429, []string{"Retry-After", "1e300"}, "rate limit", sensible, time.Hour},
		{429, []string{"Retry-After-Ms", "20", "Retry-After", "1"}, "rate limit", sensible, 20 * time.Millisecond},
		{500, nil, "status 500", sensible, 0},
		{503, []string{"Retry-After", "3"}, "status 503", sensible, 3 * time.Second},
		{302, []string{"Location", "/elsewhere"}, "redirects are not followed", pointless, 0},
		{307, []string{"Location", "/elsewhere"}, "redirects are not followed", pointless, 0},
	} {
		t.Run(fmt.Sprint(tt.status, tt.header), func(t *testing.T) {
			t.Parallel()
			body := `{"error":{"message":"no: Bearer ` + sentinel + `"}} ` + strings.Repeat("ü", 1000)
			p := newProvider(t, raw(tt.status, body, tt.header...))
			e := newExecutor(t, llmcall.Config{BaseURL: p.URL, Now: func() time.Time { return now }})
			_, err := e.Execute(t.Context(), request(nil))
			f := wantFailure(t, err, problem.LLMProviderError, tt.message)
			if f.Retryable != tt.retry || f.RetryAfter != tt.after {
				t.Errorf("retryable %v after %v, want %v after %v", f.Retryable, f.RetryAfter, tt.retry, tt.after)
			}
			if n := len([]rune(f.Message)); !strings.Contains(f.Message, "Bearer [secret]") || !strings.HasSuffix(f.Message, "ü…") || n > 640 {
				t.Errorf("the message has %d characters: %s", n, f.Message)
			}
			if len(p.Seen()) != 1 {
				t.Errorf("%d requests", len(p.Seen()))
			}
		})
	}
}

// TestARefusedKeyIsFound: the failure of a request with a rejected key names the host and the source of the key.
func TestARefusedKeyIsFound(t *testing.T) {
	t.Parallel()
	for _, status := range []int{401, 403} {
		p := newProvider(t, raw(status, "no"))
		host := strings.TrimPrefix(p.URL, "http://")
		for want, c := range map[string]llmcall.Config{
			"; the key is refused by " + host + ": no":                            {},
			"; the key is refused by " + host + " (it comes from env:MY_KEY): no": {KeyFrom: "env:MY_KEY"},
			"; " + host + " requires a key, and the settings have noAuth: no":     {NoAuth: true},
		} {
			c.BaseURL = p.URL + "/v1"
			_, err := newExecutor(t, c).Execute(t.Context(), request(nil))
			wantFailure(t, err, problem.LLMProviderError, want)
		}
	}
}

func TestTimeouts(t *testing.T) {
	t.Parallel()
	slowBody := func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, `{"choices":`)
		w.(http.Flusher).Flush()
		hangs(w, r)
	}
	for name, answer := range map[string]http.HandlerFunc{"no answer": hangs, "half an answer": slowBody} {
		for _, stream := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				p := newProviderInMemory(t, answer)
				c := llmcall.Config{BaseURL: p.URL, Client: p.Client(), Stream: stream}
				ctx, stop := context.WithTimeoutCause(t.Context(), 30*time.Millisecond, errors.New("late"))
				defer stop()
				begun := time.Now()
				_, err := newExecutor(t, c).Execute(ctx, request(nil))
				if f := wantFailure(t, err, problem.Timeout, "deadline"); f.Retryable != activities.RetrySensible || !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("%s: %+v", name, f)
				}
				c.RequestTimeout = 40 * time.Millisecond
				_, err = newExecutor(t, c).Execute(t.Context(), request(nil))
				wantFailure(t, err, problem.Timeout, "40ms")
				if took := time.Since(begun); took != 70*time.Millisecond || len(p.Seen()) != 2 {
					t.Errorf("%s: %d requests ended after %s", name, len(p.Seen()), took)
				}
			})
		}
	}
	arrived := make(chan struct{})
	p := newProvider(t, func(w http.ResponseWriter, r *http.Request) { close(arrived); hangs(w, r) })
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-arrived; cancel() }()
	_, err := newExecutor(t, llmcall.Config{BaseURL: p.URL}).Execute(ctx, request(nil))
	wantFailure(t, err, problem.ActivityCancelled, "cancelled")
}

func TestUnreachable(t *testing.T) {
	t.Parallel()
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	_, err := newExecutor(t, llmcall.Config{BaseURL: gone.URL}).Execute(t.Context(), request(nil))
	if f := wantFailure(t, err, problem.LLMProviderError, "refused"); f.Retryable != activities.RetrySensible {
		t.Errorf("retryable %v", f.Retryable)
	}
	p := newProvider(t, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	_, err = newExecutor(t, llmcall.Config{BaseURL: p.URL}).Execute(t.Context(), request(nil))
	wantFailure(t, err, problem.LLMProviderError, "cannot be reached")
}

// TestHugeAnswers: a body beyond the limit is not read to its end, whether its length is known or not.
func TestHugeAnswers(t *testing.T) {
	t.Parallel()
	const huge = 40 << 20
	var sent int
	done := make(chan struct{}, 1)
	endless := func(status int, announced bool) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			if announced {
				w.Header().Set("Content-Length", fmt.Sprint(huge))
			}
			w.WriteHeader(status)
			chunk := []byte(strings.Repeat(" ", 64<<10))
			for sent = 0; sent < huge; sent += len(chunk) {
				if _, err := w.Write(chunk); err != nil {
					break
				}
			}
			done <- struct{}{}
		}
	}
	for _, tt := range []struct {
		answer http.HandlerFunc
		stream bool
		want   string
	}{
		{endless(200, true), false, "longer than the limit of 10485760 bytes"},
		{endless(200, false), false, "longer than the limit"},
		{endless(200, false), true, "longer than the limit"},
		{endless(500, false), false, "status 500"},
	} {
		p := newProvider(t, tt.answer)
		_, err := newExecutor(t, llmcall.Config{BaseURL: p.URL, Stream: tt.stream}).Execute(t.Context(), request(nil))
		wantFailure(t, err, problem.LLMProviderError, tt.want)
		if <-done; sent > huge/2 {
			t.Errorf("%s: %d bytes were taken", tt.want, sent)
		}
	}
}

// TestRedirectsDoNotCarryTheKey, even if the configured client follows redirects.
func TestRedirectsDoNotCarryTheKey(t *testing.T) {
	t.Parallel()
	elsewhere := newProvider(t, says("stolen"))
	for _, status := range []int{301, 302, 303, 307, 308} {
		p := newProvider(t, raw(status, "", "Location", elsewhere.URL+"/chat/completions"))
		client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return nil }}
		_, err := newExecutor(t, llmcall.Config{BaseURL: p.URL, Client: client}).Execute(t.Context(), request(nil))
		wantFailure(t, err, problem.LLMProviderError, "redirects are not followed")
	}
	if n := len(elsewhere.Seen()); n != 0 {
		t.Errorf("%d requests followed", n)
	}
}

// TestClosedConnection: an idle connection that the server closes does not fail the next attempt.
// The request goes out again with the key by which a provider can tell; on a connection of its own it does not.
func TestClosedConnection(t *testing.T) {
	t.Parallel()
	// net/http keeps a connection only if the request was written within 50 ms of the answer; in a bubble it always was.
	synctest.Test(t, func(t *testing.T) {
		p := newProviderInMemory(t, says("one"), dies, says("two"))
		e := newExecutor(t, llmcall.Config{BaseURL: p.URL, Client: p.Client()})
		for _, want := range []string{"one", "two"} {
			got, err := e.Execute(t.Context(), request(nil))
			if err != nil || text(t, got.Output) != `{"text":"`+want+`"}` {
				t.Fatalf("output %v, %v, want %s", got.Output, err, want)
			}
		}
		seen := p.Seen()
		if len(seen) != 3 || seen[1].Header.Get("Idempotency-Key") != seen[2].Header.Get("Idempotency-Key") {
			t.Errorf("%d requests", len(seen))
		}
	})
	p := newProvider(t, dies, says("never asked for"))
	_, err := newExecutor(t, llmcall.Config{BaseURL: p.URL}).Execute(t.Context(), request(nil))
	wantFailure(t, err, problem.LLMProviderError, "")
	if n := len(p.Seen()); n != 1 {
		t.Errorf("%d requests on a new connection", n)
	}
}
