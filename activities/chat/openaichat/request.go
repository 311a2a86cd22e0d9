package openaichat

import (
	"cmp"
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

// nothing replaces a blank content, which providers reject.
const nothing = "(nothing)"

// newRequest makes the body of a request. The form of a message depends only on the messages before it, so that a longer conversation begins
// with the same bytes: providers' caches need that. The error is a Failure with code LLM_CONFIG_INVALID.
func newRequest(req chat.Request) (openai.ChatCompletionRequest, error) {
	var none openai.ChatCompletionRequest
	if strings.TrimSpace(req.Model) == "" || len(req.Messages) == 0 {
		return none, invalid("a request to a model must have the name of the model and a message")
	}
	if t := req.Temperature; t != nil && !(*t >= 0 && *t <= math.MaxFloat32) {
		return none, invalid("the temperature %v of model %q must be a number from 0", *t, req.Model)
	}
	if p := req.TopP; p != nil && !(*p >= 0 && *p <= 1) {
		return none, invalid("the top_p %v of model %q must be between 0 and 1", *p, req.Model)
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
			return none, invalid("message %d of the conversation with model %q has the invalid role %q", i+1, req.Model, m.Role)
		}
		if strings.TrimSpace(m.Text) == "" {
			if wire.Content = nothing; len(wire.ToolCalls) > 0 {
				wire.Content = ""
			}
		}
		r.Messages = append(r.Messages, wire)
	}
	if len(r.Messages) == 0 {
		return none, invalid("the conversation with model %q is empty", req.Model)
	}
	names := map[string]bool{}
	for _, t := range req.Tools {
		if t.Name == "" || t.Name != allowedName(t.Name) || names[t.Name] {
			return none, invalid("the tools for model %q have a duplicate or invalid name: %q", req.Model, excerpt(t.Name))
		}
		names[t.Name] = true
		r.Tools = append(r.Tools, openai.Tool{Type: openai.ToolTypeFunction, Function: &openai.FunctionDefinition{
			Name: t.Name, Description: t.Description, Parameters: json.RawMessage(jsonvalue.Canonical(objectSchema(t.Parameters))),
		}})
	}
	return limited(r, max(req.MaxTokens, 0))
}

func invalid(format string, args ...any) error {
	return activities.Fail(problem.LLMConfigInvalid, format, args...)
}

// schemaOf returns the schema of the answer, nil for free text.
func schemaOf(req chat.Request) *schema {
	if req.Schema == nil {
		return nil
	}
	return &schema{name: cmp.Or(req.SchemaName, "answer"), text: jsonvalue.Canonical(req.Schema)}
}

// sampling returns a setting for the client, which omits zero: the smallest number above it means the same to a model.
func sampling(v *float64) float32 {
	switch {
	case v == nil:
		return 0
	case float32(*v) == 0:
		return math.SmallestNonzeroFloat32
	}
	return float32(*v)
}

// objectSchema returns the schema of a tool's arguments with the fields that providers require.
func objectSchema(parameters map[string]any) map[string]any {
	s := map[string]any{"type": "object", "properties": map[string]any{}}
	maps.Copy(s, parameters)
	return s
}

// callIDs assigns unique ids to the calls of a conversation. A provider's ids are unique only within a reply, and generated ids repeat in the
// next reply.
type callIDs struct {
	used map[string]bool
	// newest maps the ids of the newest message with calls to the ids that are sent.
	newest map[string]string
}

// begin returns the calls of a message as they are sent back, with valid names and arguments, whatever the model wrote.
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

// of returns the id, as sent, of the call that a result answers.
func (c *callIDs) of(id string) string {
	if sent, ok := c.newest[id]; ok {
		return sent
	}
	return id
}

// objectText returns the arguments of a call if they are a JSON object, else an object that contains them: many servers parse the arguments
// of earlier calls, and reject the conversation if they cannot.
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
