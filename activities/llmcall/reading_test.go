package llmcall_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/workflows-engine/workflows-engine/activities/chat"
	"github.com/workflows-engine/workflows-engine/activities/chat/chattest"
	"github.com/workflows-engine/workflows-engine/activities/llmcall"
	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// TestStructuredAnswersAreRead out of what models put around them, and as strictly as any input.
func TestStructuredAnswersAreRead(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ answer, want, wrong string }{
		"thought aloud":           {"<think>\nMaybe {\"n\": 7}?\n</think>\n\n{\"n\":1}", `{"n":1}`, ""},
		"words before":            {`Here you are: {"n":1}`, `{"n":1}`, ""},
		"a bracket in words":      {`The list [as asked for, is {"n":1}. Done.`, `{"n":1}`, ""},
		"brackets in a text":      {`Sure: {"n":1,"s":"} \" {"} - that is it {really}`, `{"n":1,"s":"} \" {"}`, ""},
		"another block first":     {"```python\nprint(1)\n```\nand\n```json\n{\"n\":1}\n```", `{"n":1}`, ""},
		"a block of JSON counts":  {"```python\n{\"n\":2}\n```\nand\n```json\n{\"n\":1}\n```", `{"n":1}`, ""},
		"another schema first":    {`{"m":1} and then {"n":1}`, `{"n":1}`, ""},
		"the same twice":          {`{"n":1} and again {"n": 1}`, `{"n":1}`, ""},
		"a byte order mark":       {"\ufeff{\"n\":1}", `{"n":1}`, ""},
		"spaces without a width":  {"\u200b{\"n\":1}\u2060\u200b", `{"n":1}`, ""},
		"two that could be meant": {`{"n":1} or {"n":2}`, "", "several values"},
		"one member twice":        {`{"n":1,"n":2}`, "", "cannot be kept"},
		"a large number":          {`{"n":1e999}`, "", "cannot be kept"},
		"very deep":               {`{"n":1,"d":` + strings.Repeat("[", 600) + strings.Repeat("]", 600) + `}`, "", "nested"},
		"no JSON":                 {"I cannot say.", "", "not JSON"},
	} {
		p := newProvider(t, says(tt.answer))
		got, err := newExecutor(t, llmcall.Config{BaseURL: p.URL, NoRepair: true}).Execute(t.Context(), request(object{"output_schema": schema()}))
		if tt.wrong != "" {
			if err == nil {
				t.Errorf("%s: took %v", name, got.Output)
				continue
			}
			wantFailure(t, err, problem.LLMOutputInvalid, tt.wrong)
			continue
		}
		if err != nil || text(t, got.Output) != tt.want {
			t.Errorf("%s: %v, %v", name, got.Output, err)
		}
	}
}

// TestThoughtsAreNoText: what a model thinks aloud is its reasoning, whole or in pieces of any size; nobody hears it, nor a part of its tags.
func TestThoughtsAreNoText(t *testing.T) {
	t.Parallel()
	for piece := 1; piece < 30; piece++ {
		s := chattest.Serve(t, chattest.Reply{Text: "<think>Is 1 < 2?\n</thin I know.</think>\n\nYes, <think> is a tag.", Piece: piece, Always: true})
		for _, stream := range []bool{false, true} {
			req := question()
			req.Stream = stream
			var heard strings.Builder
			req.OnText = func(text string) { heard.WriteString(text) }
			got, err := newExecutor(t, llmcall.Config{BaseURL: s.URL}).Chat(t.Context(), req)
			const want = "Yes, <think> is a tag."
			if err != nil || got.Text != want || got.Reasoning != "Is 1 < 2?\n</thin I know." || stream && heard.String() != want {
				t.Fatalf("pieces of %d: %q, thought %q, heard %q, %v", piece, got.Text, got.Reasoning, heard.String(), err)
			}
		}
	}
}

// TestPiecesOfAStream that were cut anywhere are put together.
func TestPiecesOfAStream(t *testing.T) {
	t.Parallel()
	const done = "data: [DONE]"
	delta := func(members string) string { return `data: {"choices":[{"delta":{` + members + `}}]}` }
	for name, tt := range map[string]struct {
		answer  http.HandlerFunc
		text    string
		calls   int
		failing bool
	}{
		"done, without a reason":    {streams(delta(`"content":"Yes"`), delta(`"content":"."`), done), "Yes.", 0, false},
		"a call, without a reason":  {streams(delta(`"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{\"a\""}}]`), delta(`"tool_calls":[{"index":0,"function":{"arguments":":1}"}}]`), done), "", 1, false},
		"not done":                  {streams(delta(`"content":"Yes"`)), "", 0, true},
		"an event of several lines": {raw(200, "data: {\"choices\":[{\"delta\":\ndata: {\"content\":\"Yes\"},\ndata: \"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n", "Content-Type", "text/event-stream"), "Yes", 0, false},
		"a byte order mark":         {raw(200, "\ufeffdata: {\"choices\":[{\"delta\":{\"content\":\"Yes\"},\"finish_reason\":\"stop\"}]}\n\n", "Content-Type", "text/event-stream"), "Yes", 0, false},
		"an escape cut in two":      {streams(delta(`"content":"a \ud83d"`), delta(`"content":"\ude00 b"`), done), "a \U0001F600 b", 0, false},
		"half an escape":            {streams(delta(`"content":"a \ud83d"`), delta(`"content":" b"`), done), "a \uFFFD b", 0, false},
	} {
		req := question()
		req.Stream = true
		var heard strings.Builder
		req.OnText = func(text string) { heard.WriteString(text) }
		got, err := newExecutor(t, llmcall.Config{BaseURL: newProvider(t, tt.answer).URL}).Chat(t.Context(), req)
		if tt.failing {
			if err == nil {
				t.Errorf("%s: taken", name)
			}
			continue
		}
		if err != nil || got.Text != tt.text || heard.String() != tt.text || len(got.Calls) != tt.calls || got.Finish != chat.FinishStop {
			t.Errorf("%s: %+v, heard %q, %v", name, got, heard.String(), err)
		}
	}
	calls := streams(delta(`"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{\"a\":\"\ud83d"}}]`), delta(`"tool_calls":[{"index":0,"function":{"arguments":"\ude00\"}"}}]`), done)
	req := question()
	req.Stream = true
	if got, err := newExecutor(t, llmcall.Config{BaseURL: newProvider(t, calls).URL}).Chat(t.Context(), req); err != nil || got.Calls[0].Arguments != "{\"a\":\"\U0001F600\"}" {
		t.Errorf("arguments %+v, %v", got.Calls, err)
	}
	whole := newProvider(t, raw(200, "\ufeff{\"choices\":[{\"message\":{\"content\":\"Yes\"},\"finish_reason\":\"stop\"}]}"))
	if got, err := newExecutor(t, llmcall.Config{BaseURL: whole.URL}).Chat(t.Context(), question()); err != nil || got.Text != "Yes" {
		t.Errorf("%+v, %v", got, err)
	}
}
