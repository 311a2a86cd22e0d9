package openaichat_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/workflows-engine/workflows-engine/activities/chat"
	"github.com/workflows-engine/workflows-engine/activities/chat/chattest"
	"github.com/workflows-engine/workflows-engine/activities/chat/openaichat"
)

// TestThoughtsAreNoText: text between tags is reasoning, whole or in pieces of any size; OnText gets neither it nor a part of its tags.
func TestThoughtsAreNoText(t *testing.T) {
	t.Parallel()
	for piece := 1; piece < 30; piece++ {
		s := chattest.Serve(t, chattest.Reply{Text: "<think>Is 1 < 2?\n</thin I know.</think>\n\nYes, <think> is a tag.", Piece: piece, Always: true})
		for _, stream := range []bool{false, true} {
			req := question()
			req.Stream = stream
			var heard strings.Builder
			req.OnText = func(text string) { heard.WriteString(text) }
			got, err := newModel(t, openaichat.Config{BaseURL: s.URL}).Chat(t.Context(), req)
			const want = "Yes, <think> is a tag."
			if err != nil || got.Text != want || got.Reasoning != "Is 1 < 2?\n</thin I know." || stream && heard.String() != want {
				t.Fatalf("pieces of %d: %q, thought %q, heard %q, %v", piece, got.Text, got.Reasoning, heard.String(), err)
			}
		}
	}
}

// TestPiecesOfAStream that were cut anywhere are joined.
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
		got, err := newModel(t, openaichat.Config{BaseURL: newProvider(t, tt.answer).URL}).Chat(t.Context(), req)
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
	if got, err := newModel(t, openaichat.Config{BaseURL: newProvider(t, calls).URL}).Chat(t.Context(), req); err != nil || got.Calls[0].Arguments != "{\"a\":\"\U0001F600\"}" {
		t.Errorf("arguments %+v, %v", got.Calls, err)
	}
	whole := newProvider(t, raw(200, "\ufeff{\"choices\":[{\"message\":{\"content\":\"Yes\"},\"finish_reason\":\"stop\"}]}"))
	if got, err := newModel(t, openaichat.Config{BaseURL: whole.URL}).Chat(t.Context(), question()); err != nil || got.Text != "Yes" {
		t.Errorf("%+v, %v", got, err)
	}
}
