package llmcall

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"strings"

	"github.com/sashabaranov/go-openai"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/activities/chat"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// nothing replaces an empty content, which providers reject.
const nothing = "(nothing)"

// chatRequest makes the request of a conversation. The form of a message depends only on the messages before it, so that a
// longer conversation begins with the same bytes: providers' caches need that. The error is a Failure with code LLM_CONFIG_INVALID.
func chatRequest(req chat.Request) (openai.ChatCompletionRequest, error) {
	var none openai.ChatCompletionRequest
	if strings.TrimSpace(req.Model) == "" || len(req.Messages) == 0 {
		return none, invalidChat("a request to a model needs the name of the model and a message")
	}
	if t := req.Temperature; t != nil && !(*t >= 0 && *t <= math.MaxFloat32) {
		return none, invalidChat("the temperature %v of model %q is negative or no number", *t, req.Model)
	}
	if p := req.TopP; p != nil && !(*p >= 0 && *p <= 1) {
		return none, invalidChat("the top_p %v of model %q is not between 0 and 1", *p, req.Model)
	}
	r := openai.ChatCompletionRequest{Model: req.Model, Temperature: sampling(req.Temperature), TopP: sampling(req.TopP), Seed: req.Seed, Stop: req.Stop}
	ids := callIDs{used: map[string]bool{}}
	for i, m := range req.Messages {
		wire := openai.ChatCompletionMessage{Role: string(m.Role), Content: m.Text}
		switch m.Role {
		case chat.System:
			if strings.TrimSpace(m.Text) == "" {
				continue
			}
		case chat.User:
		case chat.Assistant:
			wire.ToolCalls = ids.begin(m.Calls)
		case chat.Result:
			wire.ToolCallID = ids.of(m.CallID)
		default:
			return none, invalidChat("message %d of the conversation with model %q has the role %q", i+1, req.Model, m.Role)
		}
		if strings.TrimSpace(m.Text) == "" {
			if wire.Content = nothing; len(wire.ToolCalls) > 0 {
				wire.Content = ""
			}
		}
		r.Messages = append(r.Messages, wire)
	}
	if len(r.Messages) == 0 {
		return none, invalidChat("the conversation with model %q is empty", req.Model)
	}
	names := map[string]bool{}
	for _, t := range req.Tools {
		if t.Name == "" || t.Name != allowedName(t.Name) || names[t.Name] {
			return none, invalidChat("the tools for model %q have a name twice, or one that providers do not take: %q", req.Model, excerpt(t.Name))
		}
		names[t.Name] = true
		r.Tools = append(r.Tools, openai.Tool{Type: openai.ToolTypeFunction, Function: &openai.FunctionDefinition{
			Name: t.Name, Description: t.Description, Parameters: json.RawMessage(jsonvalue.Canonical(objectSchema(t.Parameters))),
		}})
	}
	return limited(r, max(req.MaxTokens, 0), "agent")
}

func invalidChat(format string, args ...any) error {
	return activities.Fail(problem.LLMConfigInvalid, format, args...)
}

// chatSchema is the schema of the answer, nil for free text.
func chatSchema(req chat.Request) *schema {
	if req.Schema == nil {
		return nil
	}
	return &schema{name: "answer", text: jsonvalue.Canonical(req.Schema)}
}

// objectSchema returns the schema of a tool's arguments with the members that providers insist on.
func objectSchema(parameters map[string]any) map[string]any {
	s := map[string]any{"type": "object", "properties": map[string]any{}}
	maps.Copy(s, parameters)
	return s
}

// callIDs gives the calls of a conversation ids that occur once in it. A provider's are unique within a reply only, and where it gives
// none, those of two replies are the same.
type callIDs struct {
	used map[string]bool
	// newest are the ids of the newest message with calls, by those that the conversation has.
	newest map[string]string
}

// begin returns the calls of a message as they are sent back: with names and arguments that providers take, whatever the model wrote.
func (c *callIDs) begin(calls []chat.Call) []openai.ToolCall {
	if len(calls) == 0 {
		return nil
	}
	c.newest = make(map[string]string, len(calls))
	wire := make([]openai.ToolCall, len(calls))
	for i, call := range calls {
		id := call.ID
		for n := 2; id == "" || c.used[id]; n++ {
			id = fmt.Sprintf("%s_%d", call.ID, n)
		}
		c.used[id], c.newest[call.ID] = true, id
		wire[i] = openai.ToolCall{ID: id, Type: openai.ToolTypeFunction, Function: openai.FunctionCall{
			Name: allowedName(call.Name), Arguments: objectText(call.Arguments),
		}}
	}
	return wire
}

// of is the id of the call that a result answers.
func (c *callIDs) of(id string) string {
	if sent, ok := c.newest[id]; ok {
		return sent
	}
	return id
}

// objectText returns the arguments of a call if they are a JSON object, else an object that has them: many servers read the arguments
// of earlier calls, and refuse the conversation where they cannot.
func objectText(arguments string) string {
	text := strings.TrimSpace(arguments)
	switch {
	case text == "":
		return "{}"
	case strings.HasPrefix(text, "{") && json.Valid([]byte(text)):
		return arguments
	}
	return string(jsonvalue.Canonical(map[string]any{"invalid_arguments": strings.ToValidUTF8(arguments, "\uFFFD")}))
}
