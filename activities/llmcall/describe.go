package llmcall

import (
	"encoding/json"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// describe returns the first request of an attempt: the address, the conversation and the settings, without the key. Of response_format
// there is the name alone, since the definition has the schema. A user message that is the whole state is not repeated either: in
// place of its content stands content_from.
func (e *Executor) describe(req activities.Request) map[string]any {
	if req.NodeType != "llm_call" {
		return nil
	}
	c, messages, err := e.prepare(req)
	if err != nil || c.node.agent != "" {
		return nil
	}
	request, err := c.node.request(messages)
	if err != nil {
		return nil
	}
	body, err := json.Marshal(request)
	if err != nil {
		return nil
	}
	v, err := jsonvalue.Decode(body)
	d, ok := v.(map[string]any)
	if err != nil || !ok {
		return nil
	}
	d["endpoint"] = activities.Endpoint(e.config.BaseURL)
	if len(c.node.models) > 1 {
		d["models"] = c.node.models
	}
	if c.stream {
		d["stream"] = true
	}
	if c.node.schema != nil {
		d["response_format"] = e.models.of(c.model).format.String()
	}
	// The client writes a zero as the smallest number above it.
	for name, value := range map[string]*float64{"temperature": c.node.temperature, "top_p": c.node.topP} {
		if value != nil {
			d[name] = *value
		}
	}
	if list, _ := d["messages"].([]any); c.stateMessage > 0 && len(list) >= c.stateMessage {
		list[c.stateMessage-1] = map[string]any{"role": "user", "content_from": "state"}
	}
	return d
}
