package chattest

import (
	"fmt"
	"net/http"
	"time"

	"github.com/workflows-engine/workflows-engine/activities/chat"
)

// Reply is one reply of a script. The zero value is an empty answer.
type Reply struct {
	// When limits the reply to requests whose body contains it; "" means all requests.
	When string
	// Always keeps the reply in the script after its use.
	Always bool

	Text, Reasoning string
	// Calls without an id get one: "c", the number of the request, "." and the number of the call.
	Calls []chat.Call
	// Finish is the finish_reason; "" means "tool_calls" or "stop".
	Finish string
	// Usage without counts means DefaultUsage. NoUsage omits the usage.
	Usage   chat.Usage
	NoUsage bool
	// Piece is the number of characters in a piece of a streamed answer; 0 means 7.
	Piece int

	// Status, unless 0, rejects the request, with Header and Body.
	Status int
	Header http.Header
	Body   string

	// Delay is the time before the reply. Outside a bubble of testing/synctest the test waits for it.
	Delay time.Duration
	// Hang sends no reply before the client disconnects.
	Hang bool
	// Break closes the connection in the middle of the answer.
	Break bool
}

// DefaultUsage is the usage of a reply without counts.
var DefaultUsage = chat.Usage{Prompt: 100, Completion: 10}

// Text answers with a text.
func Text(text string) Reply { return Reply{Text: text} }

// Calls answers with tool calls.
func Calls(calls ...chat.Call) Reply { return Reply{Calls: calls} }

// Call returns a tool call; the server assigns its id.
func Call(name, arguments string) chat.Call { return chat.Call{Name: name, Arguments: arguments} }

// Fail rejects a request with a status and a message; headers are pairs of name and value.
func Fail(status int, message string, headers ...string) Reply {
	r := Reply{Status: status, Header: http.Header{}, Body: text(map[string]any{"error": map[string]any{"message": message}})}
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	return r
}

func (r Reply) finish() string {
	switch {
	case r.Finish != "":
		return r.Finish
	case len(r.Calls) > 0:
		return "tool_calls"
	}
	return "stop"
}

func (r Reply) usage() map[string]any {
	u := r.Usage
	if u.Prompt+u.Completion == 0 {
		u = DefaultUsage
	}
	return map[string]any{
		"prompt_tokens": u.Prompt, "completion_tokens": u.Completion, "total_tokens": u.Prompt + u.Completion,
		"prompt_tokens_details": map[string]any{"cached_tokens": u.Cached},
	}
}

// call returns a call in the form of the wire.
func (r Reply) call(request Request, i int) map[string]any {
	c := r.Calls[i]
	if c.ID == "" {
		c.ID = fmt.Sprintf("c%d.%d", request.Number, i+1)
	}
	return map[string]any{"id": c.ID, "type": "function", "function": map[string]any{"name": c.Name, "arguments": c.Arguments}}
}

// completion returns the whole answer.
func (r Reply) completion(request Request) map[string]any {
	message := map[string]any{"role": "assistant", "content": r.Text}
	if r.Reasoning != "" {
		message["reasoning_content"] = r.Reasoning
	}
	var calls []any
	for i := range r.Calls {
		calls = append(calls, r.call(request, i))
	}
	if calls != nil {
		message["tool_calls"] = calls
		if r.Text == "" {
			message["content"] = nil
		}
	}
	answer := map[string]any{
		"id": "chatcmpl-1", "object": "chat.completion", "model": request.Model,
		"choices": []any{map[string]any{"index": 0, "message": message, "finish_reason": r.finish()}},
	}
	if !r.NoUsage {
		answer["usage"] = r.usage()
	}
	return answer
}

// chunks returns the pieces of the answer. The usage is the last piece, if the request asks for it.
func (r Reply) chunks(request Request) []any {
	var chunks []any
	add := func(choices []any, usage any) {
		chunk := map[string]any{"id": "chatcmpl-1", "object": "chat.completion.chunk", "model": request.Model, "choices": choices}
		if usage != nil {
			chunk["usage"] = usage
		}
		chunks = append(chunks, chunk)
	}
	delta := func(delta map[string]any, finish any) {
		add([]any{map[string]any{"index": 0, "delta": delta, "finish_reason": finish}}, nil)
	}
	delta(map[string]any{"role": "assistant"}, nil)
	for _, piece := range r.pieces(r.Reasoning) {
		delta(map[string]any{"reasoning_content": piece}, nil)
	}
	for _, piece := range r.pieces(r.Text) {
		delta(map[string]any{"content": piece}, nil)
	}
	for i, c := range r.Calls {
		first := r.call(request, i)
		first["index"], first["function"] = i, map[string]any{"name": c.Name, "arguments": ""}
		delta(map[string]any{"tool_calls": []any{first}}, nil)
		for _, piece := range r.pieces(c.Arguments) {
			delta(map[string]any{"tool_calls": []any{map[string]any{"index": i, "function": map[string]any{"arguments": piece}}}}, nil)
		}
	}
	delta(map[string]any{}, r.finish())
	if request.wantsUsage && !r.NoUsage {
		add([]any{}, r.usage())
	}
	return chunks
}

// pieces splits a text into pieces of Piece characters.
func (r Reply) pieces(text string) []string {
	size := r.Piece
	if size <= 0 {
		size = 7
	}
	var pieces []string
	for runes := []rune(text); len(runes) > 0; {
		n := min(size, len(runes))
		pieces, runes = append(pieces, string(runes[:n])), runes[n:]
	}
	return pieces
}
