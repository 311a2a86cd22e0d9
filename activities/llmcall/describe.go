package llmcall

import (
	"encoding/json"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/activities/chat"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// describe returns the first request of an attempt: address, conversation and settings, without the key. It omits what the definition or the
// history has: of the output_schema it keeps only the name of the format, and it replaces a message that is the whole state by content_from.
func (e *Executor) describe(req activities.Request) map[string]any {
	if req.NodeType != "llm_call" {
		return nil
	}
	a, err := e.prepare(req)
	if err != nil || a.node.agent != "" {
		return nil
	}
	request := a.request(a.node.models[0])
	var d map[string]any
	if describer, ok := e.model.(chat.Describer); ok {
		d = describer.Describe(request)
	} else {
		d = plain(request)
	}
	if d == nil {
		return nil
	}
	if len(a.node.models) > 1 {
		d["models"] = a.node.models
	}
	// Counted from the end: a Model may leave out messages before it.
	if list, _ := d["messages"].([]any); a.stateMessage >= 0 {
		if at := len(list) - len(a.messages) + a.stateMessage; at >= 0 && at < len(list) {
			list[at] = map[string]any{"role": "user", "content_from": "state"}
		}
	}
	return d
}

// plain describes a request to a Model that is not a chat.Describer.
func plain(request chat.Request) map[string]any {
	request.Schema, request.SchemaName = nil, ""
	body, err := json.Marshal(request)
	if err != nil {
		return nil
	}
	v, err := jsonvalue.Decode(body)
	d, ok := v.(map[string]any)
	if err != nil || !ok {
		return nil
	}
	if request.MaxTokens == 0 {
		delete(d, "max_tokens")
	}
	if request.Stream {
		d["stream"] = true
	}
	return d
}
