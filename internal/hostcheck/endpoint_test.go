package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
)

// endpoint serves a scripted model as the three kinds of model APIs that the hosts speak: streamed Chat Completions, Responses and
// Messages.
type endpoint struct {
	*model
	count atomic.Int64
}

// request holds the fields of the three kinds of requests that the endpoint reads.
type request struct {
	Stream   bool
	Tools    []toolOffer
	Messages []struct {
		Role    string
		Content json.RawMessage
	}
	Input json.RawMessage
}

type toolOffer struct {
	Type, Name string
	Function   struct{ Name string }
	Tools      []toolOffer // of a namespace (Responses)
}

// names returns the names of the tools; a name in a namespace follows it and "|".
func names(offers []toolOffer, namespace string) (list []string) {
	for _, o := range offers {
		switch {
		case o.Type == "namespace":
			list = append(list, names(o.Tools, o.Name+"|")...)
		case o.Function.Name != "":
			list = append(list, namespace+o.Function.Name)
		case o.Name != "":
			list = append(list, namespace+o.Name)
		}
	}
	return list
}

// text joins the texts of a content, which is a string, or a list of parts.
func text(content json.RawMessage) string {
	var plain string
	if json.Unmarshal(content, &plain) == nil {
		return plain
	}
	var parts []struct{ Text string }
	if json.Unmarshal(content, &parts) == nil {
		for _, p := range parts {
			plain += p.Text
		}
		return plain
	}
	var wrapped struct{ Content json.RawMessage }
	if json.Unmarshal(content, &wrapped) == nil && wrapped.Content != nil {
		return text(wrapped.Content)
	}
	return string(content)
}

// results returns the tool results in a request, the oldest first.
func (q request) results() (list []string) {
	var items []struct {
		Type   string
		Output json.RawMessage
	}
	_ = json.Unmarshal(q.Input, &items) // Input is a string in a request without results
	for _, item := range items {
		if item.Type == "function_call_output" {
			list = append(list, text(item.Output))
		}
	}
	for _, m := range q.Messages {
		if m.Role == "tool" {
			list = append(list, text(m.Content))
			continue
		}
		var parts []struct {
			Type    string
			Content json.RawMessage
		}
		_ = json.Unmarshal(m.Content, &parts) // a content without parts has no result
		for _, p := range parts {
			if p.Type == "tool_result" {
				list = append(list, text(p.Content))
			}
		}
	}
	return list
}

// event is one event of a stream.
type event struct {
	name string // "" for a stream without names
	data any
}

func (e *endpoint) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the host is gone
	}
	reply := func(v any) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(v) // a host that is gone reads nothing
	}
	var q request
	if len(body) > 0 && json.Unmarshal(body, &q) != nil {
		http.Error(w, "the body is not a request of a model API", http.StatusBadRequest)
		return
	}
	id := strconv.FormatInt(e.count.Add(1), 10)
	var events []event
	switch path := r.URL.Path; {
	case strings.HasSuffix(path, "/count_tokens"):
		reply(object{"input_tokens": 100})
		return
	case strings.HasSuffix(path, "/models"):
		reply(object{"object": "list", "data": []object{{"id": "scripted", "object": "model"}}, "models": []object{}})
		return
	case strings.HasSuffix(path, "/chat/completions"):
		events = completions(id, e.say(names(q.Tools, ""), q.results()))
	case strings.HasSuffix(path, "/responses"):
		events = responses(id, e.say(names(q.Tools, ""), q.results()))
	case strings.HasSuffix(path, "/messages") && !q.Stream:
		reply(object{"id": id, "type": "message", "role": "assistant", "model": "scripted", "stop_reason": "end_turn",
			"content": []object{{"type": "text", "text": "ok"}}, "usage": object{"input_tokens": 1, "output_tokens": 1}})
		return
	case strings.HasSuffix(path, "/messages"):
		events = messages(id, e.say(names(q.Tools, ""), q.results()))
	default:
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	for _, ev := range events {
		if ev.name != "" {
			fmt.Fprintf(w, "event: %s\n", ev.name)
		}
		data, isText := ev.data.(string)
		if !isText {
			data = compact(ev.data)
		}
		fmt.Fprintf(w, "data: %s\n\n", data)
	}
}

// completions are the chunks of a streamed chat completion.
func completions(id string, t turn) []event {
	chunk := func(delta object, finish any) event {
		return event{data: object{"id": id, "object": "chat.completion.chunk", "created": 1, "model": "scripted",
			"choices": []object{{"index": 0, "delta": delta, "finish_reason": finish}}}}
	}
	first, finish := object{"role": "assistant", "content": t.text}, "stop"
	if t.tool != "" {
		first, finish = object{"role": "assistant", "tool_calls": []object{{"index": 0, "id": "call_" + id, "type": "function",
			"function": object{"name": t.tool, "arguments": compact(t.args)}}}}, "tool_calls"
	}
	return []event{chunk(first, nil), chunk(object{}, finish), {data: "[DONE]"}}
}

// responses are the events of a streamed response.
func responses(id string, t turn) []event {
	item := object{"type": "message", "role": "assistant", "id": "msg_" + id, "content": []object{{"type": "output_text", "text": t.text}}}
	if t.tool != "" {
		item = object{"type": "function_call", "id": "fc_" + id, "call_id": "call_" + id, "name": t.tool, "arguments": compact(t.args)}
		if namespace, name, ok := strings.Cut(t.tool, "|"); ok {
			item["namespace"], item["name"] = namespace, name
		}
	}
	usage := object{"input_tokens": 1, "output_tokens": 1, "total_tokens": 2, "input_tokens_details": nil, "output_tokens_details": nil}
	list := []event{
		{data: object{"type": "response.created", "response": object{"id": "resp_" + id}}},
		{data: object{"type": "response.output_item.done", "output_index": 0, "item": item}},
		{data: object{"type": "response.completed", "response": object{"id": "resp_" + id, "usage": usage}}},
	}
	for i := range list {
		list[i].name = list[i].data.(object)["type"].(string)
	}
	return list
}

// messages are the events of a streamed message.
func messages(id string, t turn) []event {
	block, delta, stop := object{"type": "text", "text": ""}, object{"type": "text_delta", "text": t.text}, "end_turn"
	if t.tool != "" {
		block, stop = object{"type": "tool_use", "id": "toolu_" + id, "name": t.tool, "input": object{}}, "tool_use"
		delta = object{"type": "input_json_delta", "partial_json": compact(t.args)}
	}
	list := []event{
		{data: object{"type": "message_start", "message": object{"id": "msg_" + id, "type": "message", "role": "assistant", "model": "scripted",
			"content": []object{}, "stop_reason": nil, "stop_sequence": nil, "usage": object{"input_tokens": 1, "output_tokens": 1}}}},
		{data: object{"type": "content_block_start", "index": 0, "content_block": block}},
		{data: object{"type": "content_block_delta", "index": 0, "delta": delta}},
		{data: object{"type": "content_block_stop", "index": 0}},
		{data: object{"type": "message_delta", "delta": object{"stop_reason": stop, "stop_sequence": nil}, "usage": object{"output_tokens": 1}}},
		{data: object{"type": "message_stop"}},
	}
	for i := range list {
		list[i].name = list[i].data.(object)["type"].(string)
	}
	return list
}
