package llmcall_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/activities/llmcall"
	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// asked performs an attempt that must ask for a repair, and returns the request of the repair as read from a history.
func asked(t *testing.T, e *llmcall.Executor, req activities.Request) activities.Request {
	t.Helper()
	_, err := e.Execute(t.Context(), req)
	failure := wantFailure(t, err, problem.LLMOutputInvalid, "")
	if failure.Repair == nil {
		t.Fatalf("no repair is asked for: %v", failure)
	}
	req.Attempt++
	req.IdempotencyKey = "ex:ask me#1.2"
	if err := json.Unmarshal([]byte(text(t, failure.Repair)), &req.Repair); err != nil {
		t.Fatal(err)
	}
	return req
}

func TestRepair(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, says, repair, said, wrong string }{
		{"an object", "```json\n{ \"n\": \"x\", \"a\": 1 }\n```", `{"answer":{"a":1,"n":"x"},"violation":"the answer breaks output_schema: /n must be number, not string"}`,
			`{"a":1,"n":"x"}`, "/n must be number"},
		{"a text", "seven", "", "seven", "the answer is not JSON"},
		{"a JSON text", `"seven"`, "", `"seven"`, "must be object"},
		{"nothing", " ", "", "(nothing)", "the answer is not JSON"},
		{"the key", `["` + sentinel + `"]`, `{"answer":["[secret]"],"violation":"the answer breaks output_schema: / must be object, not array"}`,
			`["[secret]"]`, "must be object"},
	} {
		p := newProvider(t, says(tt.says), says(`{"n":1}`))
		e := newExecutor(t, llmcall.Config{BaseURL: p.URL})
		req := asked(t, e, request(object{"output_schema": schema(), "system_prompt": "S"}))
		if got := text(t, req.Repair); tt.repair != "" && got != tt.repair {
			t.Errorf("%s: the repair gets %s\nwant %s", tt.name, got, tt.repair)
		}
		got, err := e.Execute(t.Context(), req)
		if err != nil || text(t, got.Output) != `{"n":1}` {
			t.Fatalf("%s: output %v, %v", tt.name, got.Output, err)
		}
		delete(got.Usage, "duration_ms")
		const usage = `{"completion_tokens":4,"finish_reason":"stop","model":"m-2026","prompt_tokens":3,"repaired":true,"requests":1,` +
			`"response_format":"json_schema","total_tokens":7}`
		if text(t, got.Usage) != usage {
			t.Errorf("%s: usage %s\nwant  %s", tt.name, text(t, got.Usage), usage)
		}
		second := p.Seen()[1]
		if key := second.Header.Get("Idempotency-Key"); key != "ex:ask me#1.2" {
			t.Errorf("%s: the repair is sent with the key %q", tt.name, key)
		}
		messages := second.Body["messages"].([]any)
		if len(messages) != 4 || text(t, messages[:2]) != text(t, p.Seen()[0].Body["messages"]) {
			t.Fatalf("%s: the repair has the messages %v", tt.name, messages)
		}
		if said := messages[2].(object); said["role"] != "assistant" || said["content"] != tt.said {
			t.Errorf("%s: the answer is sent back as %v, want %s", tt.name, said, tt.said)
		}
		if last := messages[3].(object); last["role"] != "user" || !strings.Contains(last["content"].(string), tt.wrong) ||
			!strings.Contains(last["content"].(string), `"required":["n"]`) {
			t.Errorf("%s: the model is told %v", tt.name, last)
		}
	}
}

// TestRepairThatFails: a second invalid answer asks for no further repair.
func TestRepairThatFails(t *testing.T) {
	t.Parallel()
	p := newProvider(t, says("no"))
	e := newExecutor(t, llmcall.Config{BaseURL: p.URL})
	_, err := e.Execute(t.Context(), asked(t, e, request(object{"output_schema": schema()})))
	if f := wantFailure(t, err, problem.LLMOutputInvalid, "after a request to repair it"); f.Repair != nil || f.Usage["repaired"] != nil {
		t.Errorf("%+v", f)
	}
	if n := len(p.Seen()); n != 2 {
		t.Errorf("%d requests", n)
	}
}

func TestNoRepair(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		p       *provider
		config  llmcall.Config
		code    problem.Code
		message string
	}{
		{"switched off", newProvider(t, says("no")), llmcall.Config{NoRepair: true}, problem.LLMOutputInvalid, "not JSON"},
		{"cut", newProvider(t, completes(object{"content": `{"n":`}, "length")), llmcall.Config{}, problem.LLMOutputInvalid, "max_tokens"},
		{"not an answer", newProvider(t, raw(503, "busy")), llmcall.Config{}, problem.LLMProviderError, "busy"},
	} {
		tt.config.BaseURL = tt.p.URL
		_, err := newExecutor(t, tt.config).Execute(t.Context(), request(object{"output_schema": schema()}))
		if f := wantFailure(t, err, tt.code, tt.message); f.Repair != nil {
			t.Errorf("%s: a repair is asked for: %v", tt.name, f.Repair)
		}
	}
}

// TestRepairIsBounded: a long list of violations is recorded in part.
func TestRepairIsBounded(t *testing.T) {
	t.Parallel()
	p := newProvider(t, says(`{"n":1,"list":[`+strings.Repeat(`"x",`, 5000)+`"x"]}`))
	long := schema()
	long["properties"].(object)["list"] = object{"items": object{"type": "number"}}
	_, err := newExecutor(t, llmcall.Config{BaseURL: p.URL}).Execute(t.Context(), request(object{"output_schema": long}))
	f := wantFailure(t, err, problem.LLMOutputInvalid, "/list/7 ")
	if violation, _ := f.Repair["violation"].(string); len(f.Message) > 5000 || len(violation) > 4100 {
		t.Errorf("a message of %d bytes, a violation of %d", len(f.Message), len(violation))
	}
}

// TestRepairOfAnotherExecutor: the repair of another executor is ignored.
func TestRepairOfAnotherExecutor(t *testing.T) {
	t.Parallel()
	for _, repair := range []object{{}, {"answer": "x"}, {"violation": "x"}, {"answer": 1.0, "violation": "x"}, {"answer": "x", "violation": false}} {
		p := newProvider(t, says(`{"n":1}`))
		req := request(object{"output_schema": schema()})
		req.Repair = repair
		got, err := newExecutor(t, llmcall.Config{BaseURL: p.URL}).Execute(t.Context(), req)
		if err != nil || got.Usage["repaired"] != nil {
			t.Errorf("%v: %v, %v", repair, got, err)
		}
		if messages := p.Seen()[0].Body["messages"].([]any); len(messages) != 1 {
			t.Errorf("%v: messages %v", repair, messages)
		}
	}
}
