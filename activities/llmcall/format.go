package llmcall

import (
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/sashabaranov/go-openai"
)

// format is how a provider is asked for an answer that fits an output_schema.
type format int

// The formats, from the best to what every model understands. The last two describe the schema in the system message.
const (
	schemaFormat format = iota
	objectFormat
	plainFormat
)

// String names the format as it stands in the usage.
func (f format) String() string { return [...]string{"json_schema", "json_object", "text"}[f] }

// apply puts the format into a request.
func (f format) apply(n *node, r *openai.ChatCompletionRequest) {
	switch f {
	case schemaFormat:
		r.ResponseFormat = &openai.ChatCompletionResponseFormat{
			Type: openai.ChatCompletionResponseFormatTypeJSONSchema,
			// Strict accepts only a part of JSON Schema; the answer is checked here anyway.
			JSONSchema: &openai.ChatCompletionResponseFormatJSONSchema{Name: schemaName(n.id), Schema: json.RawMessage(n.schemaText)},
		}
		return
	case objectFormat:
		r.ResponseFormat = &openai.ChatCompletionResponseFormat{Type: openai.ChatCompletionResponseFormatTypeJSONObject}
	}
	rule := "Answer with one JSON value that satisfies this JSON Schema, and with nothing else:\n" + string(n.schemaText)
	messages := r.Messages
	if messages[0].Role == openai.ChatMessageRoleSystem {
		rule, messages = messages[0].Content+"\n\n"+rule, messages[1:]
	}
	system := openai.ChatCompletionMessage{Role: openai.ChatMessageRoleSystem, Content: rule}
	r.Messages = append([]openai.ChatCompletionMessage{system}, messages...)
}

// schemaName is a node's id in the letters that providers allow.
func schemaName(id string) string {
	name := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '_', r == '-':
			return r
		}
		return '_'
	}, id)
	if name == "" {
		return "output"
	}
	return name[:min(len(name), 64)]
}

// refused reports whether an error says that the provider does not support the format. schemaOnly means that it supports
// the format but rejects this schema, which says nothing about other schemas.
func (f format) refused(err error) (refused, schemaOnly bool) {
	status, ok := errors.AsType[*statusError](err)
	if !ok || f == plainFormat || !status.speaksOf("response_format", "json_schema", "json_object") {
		return false, false
	}
	return true, status.speaksOf("invalid schema")
}

// speaksOf reports whether the server rejected the request as invalid, with one of the words in its answer.
func (e *statusError) speaksOf(words ...string) bool {
	if e.status != http.StatusBadRequest && e.status != http.StatusUnprocessableEntity {
		return false
	}
	body := strings.ToLower(e.body)
	return slices.ContainsFunc(words, func(word string) bool { return strings.Contains(body, word) })
}

// maxRememberedModels bounds formatMemory; the models of further nodes are asked anew each time.
const maxRememberedModels = 1000

// formatMemory remembers which models do not support the best format, so that each is tried once per process.
type formatMemory struct {
	mu     sync.Mutex
	models map[string]format
}

func (m *formatMemory) best(model string) format {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.models[model]
}

func (m *formatMemory) learn(model string, f format) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.models == nil {
		m.models = map[string]format{}
	}
	if _, known := m.models[model]; known || len(m.models) < maxRememberedModels {
		m.models[model] = max(m.models[model], f)
	}
}
