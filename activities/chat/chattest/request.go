package chattest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"

	"github.com/workflows-engine/workflows-engine/activities/chat"
)

// Request is a request that a server received.
type Request struct {
	chat.Request
	// Number counts the requests of a server from 1.
	Number int
	Path   string
	Header http.Header
	// Body is the body as received.
	Body []byte

	wantsUsage bool
}

// wire is the part of a request that this package reads.
type wire struct {
	Model     string
	Messages  []wireMessage
	Tools     []struct{ Function chat.Tool }
	MaxTokens int `json:"max_tokens"`
	// MaxCompletionTokens is the name of the limit for reasoning models.
	MaxCompletionTokens int `json:"max_completion_tokens"`
	Temperature         *float64
	Stream              bool
	StreamOptions       struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options"`
	ResponseFormat struct {
		JSONSchema struct{ Schema map[string]any } `json:"json_schema"`
	} `json:"response_format"`
}

type wireMessage struct {
	Role       chat.Role
	Content    *string
	ToolCalls  []wireCall `json:"tool_calls"`
	ToolCallID string     `json:"tool_call_id"`
}

type wireCall struct {
	ID       string
	Type     string
	Function struct{ Name, Arguments string }
}

// read reads a request. fault is the error of a strict provider, "" for a valid request.
func read(r *http.Request, body []byte) (request Request, fault string) {
	request = Request{Path: r.URL.Path, Header: r.Header.Clone(), Body: body}
	request.Key = r.Header.Get("Idempotency-Key")
	var w wire
	if err := json.Unmarshal(body, &w); err != nil {
		return request, "it is not a request for a chat completion: " + err.Error()
	}
	request.Model, request.MaxTokens, request.Temperature = w.Model, max(w.MaxTokens, w.MaxCompletionTokens), w.Temperature
	request.Stream, request.Schema, request.wantsUsage = w.Stream, w.ResponseFormat.JSONSchema.Schema, w.StreamOptions.IncludeUsage
	for _, t := range w.Tools {
		request.Tools = append(request.Tools, t.Function)
	}
	for _, m := range w.Messages {
		message := chat.Message{Role: m.Role, CallID: m.ToolCallID}
		if m.Content != nil {
			message.Text = *m.Content
		}
		for _, c := range m.ToolCalls {
			message.Calls = append(message.Calls, chat.Call{ID: c.ID, Name: c.Function.Name, Arguments: c.Function.Arguments})
		}
		request.Messages = append(request.Messages, message)
	}
	return request, w.fault()
}

var toolName = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

// fault returns the first error that a strict provider would report.
func (w wire) fault() string {
	if w.Model == "" || len(w.Messages) == 0 {
		return "the model or the messages are missing"
	}
	tools := map[string]bool{}
	for _, t := range w.Tools {
		f := t.Function
		if !toolName.MatchString(f.Name) || tools[f.Name] || f.Parameters["type"] != "object" || f.Parameters["properties"] == nil {
			return fmt.Sprintf("tool %q has an invalid or duplicate name, or parameters that are not an object", f.Name)
		}
		tools[f.Name] = true
	}
	used, open := map[string]bool{}, map[string]bool{}
	for i, m := range w.Messages {
		place := fmt.Sprintf("message %d (%s) ", i+1, m.Role)
		if m.Role != chat.Result && len(open) > 0 {
			return place + "comes before the results of all calls"
		}
		if (m.Content == nil || *m.Content == "") && len(m.ToolCalls) == 0 {
			return place + "has no content"
		}
		switch m.Role {
		case chat.System, chat.User:
		case chat.Assistant:
			for _, c := range m.ToolCalls {
				if c.ID == "" || used[c.ID] || c.Type != "function" || !toolName.MatchString(c.Function.Name) {
					return place + "has a call with an invalid or duplicate id or name: " + c.ID + " " + c.Function.Name
				}
				var arguments map[string]any
				if json.Unmarshal([]byte(c.Function.Arguments), &arguments) != nil {
					return place + "has a call with arguments that are not an object: " + c.Function.Arguments
				}
				used[c.ID], open[c.ID] = true, true
			}
		case chat.Result:
			if !open[m.ToolCallID] {
				return place + "is the result of no open call: " + m.ToolCallID
			}
			delete(open, m.ToolCallID)
		default:
			return place + "has an unknown role"
		}
	}
	if len(open) > 0 {
		return "it ends before the results of all calls"
	}
	return ""
}

// text returns a value of maps and texts as JSON.
func text(v any) string {
	b, _ := json.Marshal(v)
	return string(b)
}
