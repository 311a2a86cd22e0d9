package openaichat_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/workflows-engine/workflows-engine/activities/chat"
	"github.com/workflows-engine/workflows-engine/activities/chat/openaichat"
)

// contextOf returns a context that ends with cancel, and after a time unless that is 0.
func contextOf(t *testing.T, after time.Duration) (context.Context, context.CancelFunc) {
	if after == 0 {
		return context.WithCancel(t.Context())
	}
	return context.WithTimeout(t.Context(), after)
}

// deltas returns a stream of pieces, each a JSON array of tool-call deltas, with its end.
func deltas(pieces ...string) string {
	var b strings.Builder
	for _, piece := range pieces {
		fmt.Fprintf(&b, "data: {\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[%s]}}]}\n\n", piece)
	}
	b.WriteString("data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"tool_calls\"}]}\n\ndata: [DONE]\n\n")
	return b.String()
}

// TestToolCallPieces: servers identify the call of a piece in different ways.
func TestToolCallPieces(t *testing.T) {
	t.Parallel()
	read := chat.Call{ID: "a", Name: "read", Arguments: `{"p":1}`}
	list := chat.Call{ID: "b", Name: "list", Arguments: `{"q":2}`}
	named := func(c chat.Call, id string) chat.Call { c.ID = id; return c }
	for _, tt := range []struct {
		name   string
		pieces []string
		want   []chat.Call
	}{
		{"as documented", []string{
			`{"index":0,"id":"a","type":"function","function":{"name":"read","arguments":""}}`, `{"index":0,"function":{"arguments":"{\"p\""}}`,
			`{"index":0,"function":{"arguments":":1}"}}`, `{"index":1,"id":"b","type":"function","function":{"name":"list","arguments":""}}`,
			`{"index":1,"function":{"arguments":"{\"q\":2}"}}`,
		}, []chat.Call{read, list}},
		{"interleaved", []string{
			`{"index":0,"id":"a","function":{"name":"read"}},{"index":1,"id":"b","function":{"name":"list"}}`,
			`{"index":1,"function":{"arguments":"{\"q\""}},{"index":0,"function":{"arguments":"{\"p\""}}`,
			`{"index":0,"function":{"arguments":":1}"}}`, `{"index":1,"function":{"arguments":":2}"}}`,
		}, []chat.Call{read, list}},
		{"no index", []string{
			`{"id":"a","function":{"name":"read","arguments":"{\"p\""}}`, `{"function":{"arguments":":1}"}}`,
			`{"id":"b","function":{"name":"list","arguments":"{\"q\""}}`, `{"id":"b","function":{"arguments":":2}"}}`,
		}, []chat.Call{read, list}},
		{"the index 0 for all", []string{
			`{"index":0,"id":"a","function":{"name":"read","arguments":"{\"p\":1}"}}`, `{"index":0,"id":"b","function":{"name":"list","arguments":"{\"q\":2}"}}`,
		}, []chat.Call{read, list}},
		{"the index 0 for all, and no ids", []string{
			`{"index":0,"id":"","function":{"name":"read","arguments":"{\"p\":1}"}}`, `{"index":0,"function":{"name":"read","arguments":"{\"p\":1}"}}`,
			`{"index":0,"function":{"name":"list","arguments":"{\"q\":2}"}}`,
		}, []chat.Call{named(read, "call_1"), named(read, "call_2"), named(list, "call_3")}},
		{"neither index nor id", []string{
			`{"function":{"name":"read","arguments":"{\"p\":1}"}},{"function":{"name":"list","arguments":"{\"q\":2}"}}`, `{"index":null,"id":null,"function":{"name":"now"}}`,
		}, []chat.Call{named(read, "call_1"), named(list, "call_2"), {ID: "call_3", Name: "now"}}},
		{"one id for two", []string{
			`{"index":0,"id":"a","function":{"name":"read","arguments":"{\"p\":1}"}}`, `{"index":1,"id":"a","function":{"name":"read","arguments":"{\"p\":1}"}}`,
			`{"index":2,"id":"call_1","function":{"name":"list","arguments":"{\"q\":2}"}}`,
		}, []chat.Call{read, named(read, "call_2"), named(list, "call_1")}},
		{"one id for two, and no index", []string{
			`{"id":"a","function":{"name":"read","arguments":"{\"p\":1}"}}`, `{"id":"a","function":{"name":"read","arguments":"{\"p\":1}"}}`,
		}, []chat.Call{read, named(read, "call_1")}},
		{"name and id in every piece", []string{
			`{"index":0,"id":"a","function":{"name":"read","arguments":""}}`, `{"index":0,"id":"a","function":{"name":"read","arguments":"{\"p\""}}`,
			`{"index":0,"id":"a","function":{"name":"read","arguments":":1}"}}`,
		}, []chat.Call{read}},
		{"another id in every piece", []string{
			`{"index":0,"id":"a","function":{"name":"read"}}`, `{"index":0,"id":"x","function":{"arguments":"{\"p\""}}`, `{"index":0,"id":"y","function":{"arguments":":1}"}}`,
		}, []chat.Call{read}},
		{"the id last", []string{`{"index":0,"function":{"name":"read"}}`, `{"index":0,"id":"a","function":{"arguments":"{\"p\":1}"}}`}, []chat.Call{read}},
		{"a name in two pieces", []string{`{"index":0,"id":"a","function":{"name":"re"}}`, `{"index":0,"function":{"name":"ad","arguments":"{\"p\":1}"}}`}, []chat.Call{read}},
		{"arguments that are no text", []string{`{"index":0,"id":"a","function":{"name":"read","arguments":{"p":1}}}`}, []chat.Call{read}},
		{"no arguments", []string{`{"index":0,"id":"a","function":{"name":"read","arguments":null}}`}, []chat.Call{{ID: "a", Name: "read"}}},
		{"strange indexes", []string{
			`{"index":-7,"id":7,"function":{"name":"read","arguments":"{}"}}`, `{"index":1e99,"id":"b","function":{"name":"list","arguments":"{\"q\":2}"}}`, `{}`,
		}, []chat.Call{{ID: "7", Name: "read", Arguments: "{}"}, list}},
		{"no name", []string{`{"index":0,"id":"a","function":{"arguments":"{}"}}`}, []chat.Call{{ID: "a", Arguments: "{}"}}},
	} {
		got, err := openaichat.ReadStream(strings.NewReader(deltas(tt.pieces...)), nil)
		if err != nil || !reflect.DeepEqual(got.Calls, tt.want) {
			t.Errorf("%s:\ngot  %+v, %v\nwant %+v", tt.name, got.Calls, err, tt.want)
		}
	}
}

// TestWholeToolCalls: in an answer that is not streamed, each element is a call of its own.
func TestWholeToolCalls(t *testing.T) {
	t.Parallel()
	p := newProvider(t, completes(object{"content": nil, "tool_calls": []any{
		object{"id": "a", "function": object{"name": "read", "arguments": "{}"}}, object{"id": "a", "function": object{"name": "read", "arguments": ""}},
		object{"function": object{"arguments": "oops"}}, object{"id": nil, "function": object{"name": "list", "arguments": object{"q": 2.0}}},
	}}, "tool_calls"))
	got, err := newModel(t, openaichat.Config{BaseURL: p.URL}).Chat(t.Context(), question())
	want := []chat.Call{
		{ID: "a", Name: "read", Arguments: "{}"}, {ID: "call_1", Name: "read"}, {ID: "call_2", Arguments: "oops"}, {ID: "call_3", Name: "list", Arguments: `{"q":2}`},
	}
	if err != nil || !reflect.DeepEqual(got.Calls, want) {
		t.Errorf("got  %+v, %v\nwant %+v", got.Calls, err, want)
	}
}

// story is a stream with every kind of content.
const story = ": hello\r\n\r\n" +
	`data: {"model":"m","choices":[{"index":0,"delta":{"role":"assistant","reasoning":"hm"}}]}` + "\r\n\r\n" +
	`data: {"choices":[{"index":0,"delta":{"content":"Zürich 🌡"}}]}` + "\n\n" +
	`data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"read","arguments":"{\"p\":"}}]}}]}` + "\n\n" +
	"event: ping\ndata:\n\n" +
	`data:{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"\"ü\"}"}}]}}]}` + "\n\n" +
	`data: {"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}],"usage":null}` + "\n\n" +
	`data: {"choices":[],"usage":{"prompt_tokens":12,"completion_tokens":5.0,"total_tokens":"many"}}` + "\n\n" +
	`data: {"choices":[],"usage":{"prompt_tokens":12,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":99}}}` + "\n\n" +
	"data: [DONE]\n\n"

// told is the text of story.
var told = chat.Reply{
	Model: "m", Text: "Zürich 🌡", Reasoning: "hm", Calls: []chat.Call{{ID: "a", Name: "read", Arguments: `{"p":"ü"}`}},
	Finish: chat.FinishStop, Usage: chat.Usage{Prompt: 12, Cached: 12, Completion: 5},
}

// TestStreamSplitAnywhere: the network may split a stream at any byte.
func TestStreamSplitAnywhere(t *testing.T) {
	t.Parallel()
	for i := range len(story) {
		got, err := openaichat.ReadStream(io.MultiReader(strings.NewReader(story[:i]), strings.NewReader(story[i:])), nil)
		if err != nil || !reflect.DeepEqual(got, told) {
			t.Fatalf("cut at byte %d: %+v, %v", i, got, err)
		}
	}
	if got, err := openaichat.ReadStream(iotest.OneByteReader(strings.NewReader(story)), nil); err != nil || !reflect.DeepEqual(got, told) {
		t.Errorf("byte by byte: %+v, %v", got, err)
	}
	p := newProvider(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for i := range len(story) {
			_, _ = io.WriteString(w, story[i:i+1])
			w.(http.Flusher).Flush()
		}
	})
	req := question()
	req.Stream = true
	if got, err := newModel(t, openaichat.Config{BaseURL: p.URL}).Chat(t.Context(), req); err != nil || !reflect.DeepEqual(got, told) {
		t.Errorf("over HTTP: %+v, %v", got, err)
	}
}

// TestStreamCutAnywhere: a stream that ends before its finish_reason fails, wherever it is cut.
func TestStreamCutAnywhere(t *testing.T) {
	t.Parallel()
	end := strings.Index(story, `"usage":null}`) + len(`"usage":null}`)
	for i := range len(story) {
		got, err := openaichat.ReadStream(strings.NewReader(story[:i]), nil)
		if whole := i >= end && err == nil && got.Text == told.Text; !whole && err == nil {
			t.Fatalf("ended at byte %d: %+v", i, got)
		}
		if _, err = openaichat.ReadStream(io.MultiReader(strings.NewReader(story[:i]), iotest.ErrReader(errors.New("reset"))), nil); err == nil && !strings.Contains(story[:i], "[DONE]") {
			t.Fatalf("broken at byte %d without an error", i)
		}
	}
}

// TestToolCallSplitAnywhere: a server may split name and arguments at any byte.
func TestToolCallSplitAnywhere(t *testing.T) {
	t.Parallel()
	const arguments = `{"path":"a/ü","deep":[{"x":{}}],"text":"} {\""}`
	want := []chat.Call{{ID: "a", Name: "read", Arguments: arguments}}
	for i := range arguments {
		for j := range arguments[i:] {
			got, err := openaichat.ReadStream(strings.NewReader(deltas(
				`{"index":0,"id":"a","function":{"name":"read","arguments":`+text(t, arguments[:i])+`}}`,
				`{"index":0,"function":{"arguments":`+text(t, arguments[i:i+j])+`}}`,
				`{"index":0,"function":{"arguments":`+text(t, arguments[i+j:])+`}}`)), nil)
			if err != nil || !reflect.DeepEqual(got.Calls, want) {
				t.Fatalf("cut at %d and %d: %+v, %v", i, i+j, got.Calls, err)
			}
		}
	}
	for i := range "read" {
		got, err := openaichat.ReadStream(strings.NewReader(deltas(
			`{"index":0,"id":"a","function":{"name":"`+"read"[:i]+`"}}`, `{"index":0,"function":{"name":"`+"read"[i:]+`","arguments":`+text(t, arguments)+`}}`)), nil)
		if err != nil || !reflect.DeepEqual(got.Calls, want) {
			t.Errorf("name cut at %d: %+v, %v", i, got.Calls, err)
		}
	}
}

// TestFinishReasons of many providers.
func TestFinishReasons(t *testing.T) {
	t.Parallel()
	for reason, want := range map[string]chat.Finish{
		"stop": chat.FinishStop, "tool_calls": chat.FinishStop, "eos": chat.FinishStop, "🌡": chat.FinishStop, "length": chat.FinishLength,
		"MAX_TOKENS": chat.FinishLength, "model_length": chat.FinishLength, "content_filter": chat.FinishFilter, "SAFETY": chat.FinishFilter,
	} {
		got, err := openaichat.ReadStream(strings.NewReader(`data: {"choices":[{"finish_reason":"`+reason+`"}]}`), nil)
		if err != nil || got.Finish != want {
			t.Errorf("%s: %+v, %v", reason, got, err)
		}
	}
}

// FuzzStream: whatever a server streams, the reader ends, gives every call an id of its own, and says nothing that it did not hear.
func FuzzStream(f *testing.F) {
	f.Add([]byte(story))
	f.Add([]byte(deltas(`{"index":0,"id":"a","function":{"name":"read","arguments":""}}`, `{"id":"a","function":{"name":"read","arguments":{}}}`)))
	f.Add([]byte("data: {\"error\":{\"code\":529,\"message\":\"x\"}}\n\n"))
	f.Add([]byte("{\"choices\":[{\"message\":{\"content\":[{\"type\":\"text\",\"text\":\"x\"}]},\"finish_reason\":\"stop\"}]}"))
	f.Add([]byte(deltas(`{"function":{"name":"a"}}`, `{"function":{"name":"a"}}`, `{"id":"call_1","function":{"name":"b"}}`)))
	f.Fuzz(func(t *testing.T, stream []byte) {
		var heard strings.Builder
		got, err := openaichat.ReadStream(strings.NewReader(string(stream)), func(piece string, _ int) { heard.WriteString(piece) })
		again, errAgain := openaichat.ReadStream(iotest.HalfReader(strings.NewReader(string(stream))), nil)
		if (err == nil) != (errAgain == nil) || !reflect.DeepEqual(got, again) {
			t.Fatalf("%+v, %v; in pieces %+v, %v", got, err, again, errAgain)
		}
		if err != nil {
			return
		}
		if got.Text != heard.String() {
			t.Errorf("heard %q, got %q", heard.String(), got.Text)
		}
		ids := map[string]bool{"": true}
		for _, c := range got.Calls {
			if ids[c.ID] {
				t.Errorf("id %q is empty or given twice", c.ID)
			}
			ids[c.ID] = true
		}
		if u := got.Usage; u.Prompt < 0 || u.Completion < 0 || u.Cached < 0 || u.Cached > u.Prompt {
			t.Errorf("usage %+v", u)
		}
	})
}
