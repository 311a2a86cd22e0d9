package llmcall_test

import (
	"strings"
	"testing"

	"github.com/workflows-engine/workflows-engine/activities/llmcall"
	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// format returns the type of a request's response_format, and whether the system message describes the schema.
func format(r arrived) (kind string, described bool) {
	f, _ := r.Body["response_format"].(object)
	kind, _ = f["type"].(string)
	first := r.Body["messages"].([]any)[0].(object)
	return kind, first["role"] == "system" && strings.Contains(first["content"].(string), `{"properties":{"n":{"type":"number"}},"required":["n"],"type":"object"}`)
}

func TestStructuredOutputSendsTheSchema(t *testing.T) {
	t.Parallel()
	p := newProvider(t, says(`{"n":1}`))
	got, err := newExecutor(t, llmcall.Config{BaseURL: p.URL}).Execute(t.Context(), request(object{"output_schema": schema()}))
	if err != nil {
		t.Fatal(err)
	}
	if got.Usage["response_format"] != "json_schema" {
		t.Errorf("usage %v", got.Usage)
	}
	const want = `{"json_schema":{"name":"ask_me","schema":{"properties":{"n":{"type":"number"}},"required":["n"],"type":"object"},"strict":false},"type":"json_schema"}`
	if sent := text(t, p.Seen()[0].Body["response_format"]); sent != want {
		t.Errorf("sent %s\nwant %s", sent, want)
	}
}

// TestStructuredOutputFallsBack to json_object, then to no format; the next call begins with the format that worked.
func TestStructuredOutputFallsBack(t *testing.T) {
	t.Parallel()
	p := newProvider(t,
		raw(400, `{"error":{"message":"response_format.type json_schema is not supported"}}`),
		raw(422, `unknown value for response_format`),
		says(`{"n":1}`), says(`{"n":2}`), says(`{"n":3}`))
	e := newExecutor(t, llmcall.Config{BaseURL: p.URL})
	for _, config := range []object{
		{"output_schema": schema(), "system_prompt": "S"},
		{"output_schema": schema()},
		{"output_schema": schema(), "model": "another"},
	} {
		if _, err := e.Execute(t.Context(), request(config)); err != nil {
			t.Fatal(err)
		}
	}
	want := []struct {
		kind      string
		described bool
	}{{"json_schema", false}, {"json_object", true}, {"", true}, {"", true}, {"json_schema", false}}
	seen := p.Seen()
	if len(seen) != len(want) {
		t.Fatalf("%d requests, want %d", len(seen), len(want))
	}
	keys := map[string]bool{}
	for i, w := range want {
		if kind, described := format(seen[i]); kind != w.kind || described != w.described {
			t.Errorf("request %d: format %q, described %v; want %q, %v", i, kind, described, w.kind, w.described)
		}
		if i < 3 {
			keys[seen[i].Header.Get("Idempotency-Key")] = true
		}
	}
	if system := seen[1].Body["messages"].([]any)[0].(object)["content"].(string); !strings.HasPrefix(system, "S\n\nAnswer with one JSON value") {
		t.Errorf("system message %q", system)
	}
	if len(keys) != 3 || !keys["ex:ask me#1.1"] || !keys["ex:ask me#1.1:2"] {
		t.Errorf("different requests need different idempotency keys: %v", keys)
	}
}

// TestOneSchemaRefused: a rejected schema does not change the format for the next one.
func TestOneSchemaRefused(t *testing.T) {
	t.Parallel()
	p := newProvider(t, raw(400, `{"error":{"message":"Invalid schema for response_format 'x'"}}`), says(`{"n":1}`), says(`{"n":2}`))
	e := newExecutor(t, llmcall.Config{BaseURL: p.URL})
	for range 2 {
		if _, err := e.Execute(t.Context(), request(object{"output_schema": schema()})); err != nil {
			t.Fatal(err)
		}
	}
	var kinds []string
	for _, r := range p.Seen() {
		kind, _ := format(r)
		kinds = append(kinds, kind)
	}
	if got := strings.Join(kinds, " "); got != "json_schema json_object json_schema" {
		t.Errorf("formats %s", got)
	}
}

// TestOtherRefusalsAreNotRetried: only an error that names the format changes the format.
func TestOtherRefusalsAreNotRetried(t *testing.T) {
	t.Parallel()
	for _, answer := range []struct {
		status int
		body   string
	}{{400, "context length exceeded"}, {500, "json_schema"}, {429, "response_format"}} {
		p := newProvider(t, raw(answer.status, answer.body))
		_, err := newExecutor(t, llmcall.Config{BaseURL: p.URL}).Execute(t.Context(), request(object{"output_schema": schema()}))
		wantFailure(t, err, problem.LLMProviderError, answer.body)
		if n := len(p.Seen()); n != 1 {
			t.Errorf("%s: %d requests", answer.body, n)
		}
	}
}

// TestLimitByItsNewName: a model that rejects max_tokens is asked with max_completion_tokens from then on.
func TestLimitByItsNewName(t *testing.T) {
	t.Parallel()
	p := newProvider(t, raw(400, `{"error":{"message":"Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."}}`), says("x"))
	e := newExecutor(t, llmcall.Config{BaseURL: p.URL})
	for range 2 {
		if _, err := e.Execute(t.Context(), request(object{"max_tokens": 20.0})); err != nil {
			t.Fatal(err)
		}
	}
	var names []string
	for _, r := range p.Seen() {
		for _, name := range []string{"max_tokens", "max_completion_tokens"} {
			if r.Body[name] == 20.0 {
				names = append(names, name)
			}
		}
	}
	if got := strings.Join(names, " "); got != "max_tokens max_completion_tokens max_completion_tokens" {
		t.Errorf("asked with %s", got)
	}
	// Another error, or a second one, fails the attempt.
	for body, requests := range map[string]int{"max_completion_tokens: not supported": 2, "'max_tokens' or 'max_completion_tokens' is too large": 1} {
		p = newProvider(t, raw(400, body))
		_, err := newExecutor(t, llmcall.Config{BaseURL: p.URL}).Execute(t.Context(), request(object{"max_tokens": 20.0}))
		if wantFailure(t, err, problem.LLMProviderError, body); len(p.Seen()) != requests {
			t.Errorf("%s: %d requests", body, len(p.Seen()))
		}
	}
}
