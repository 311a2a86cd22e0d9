package openaichat

import (
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/sashabaranov/go-openai"
)

// format is a way to ask a provider for an answer that satisfies a schema.
type format int

// The formats, from the best to the one that every model supports. The last two describe the schema in the system message.
const (
	schemaFormat format = iota
	objectFormat
	plainFormat
)

// String returns the name of the format in the usage.
func (f format) String() string { return [...]string{"json_schema", "json_object", "text"}[f] }

// schema is the schema of an answer: a name, and the canonical text of a JSON Schema.
type schema struct {
	name string
	text []byte
}

// apply returns a copy of a request with the format.
func (f format) apply(wanted *schema, r openai.ChatCompletionRequest) openai.ChatCompletionRequest {
	switch f {
	case schemaFormat:
		r.ResponseFormat = &openai.ChatCompletionResponseFormat{
			Type: openai.ChatCompletionResponseFormatTypeJSONSchema,
			// Strict accepts only a part of JSON Schema; the caller checks the answer anyway.
			JSONSchema: &openai.ChatCompletionResponseFormatJSONSchema{Name: allowedName(wanted.name), Schema: json.RawMessage(wanted.text)},
		}
		return r
	case objectFormat:
		r.ResponseFormat = &openai.ChatCompletionResponseFormat{Type: openai.ChatCompletionResponseFormatTypeJSONObject}
	}
	rule := "Answer with one JSON value that satisfies this JSON Schema, and with nothing else:\n" + string(wanted.text)
	messages := r.Messages
	if messages[0].Role == openai.ChatMessageRoleSystem {
		rule, messages = messages[0].Content+"\n\n"+rule, messages[1:]
	}
	system := openai.ChatCompletionMessage{Role: openai.ChatMessageRoleSystem, Content: rule}
	r.Messages = append([]openai.ChatCompletionMessage{system}, messages...)
	return r
}

// allowedName returns a name with the characters and the length that providers allow.
func allowedName(name string) string {
	name = strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '_', r == '-':
			return r
		}
		return '_'
	}, name)
	if name == "" {
		return "output"
	}
	return name[:min(len(name), maxName)]
}

// maxName is the longest name that providers allow.
const maxName = 64

// refused reports whether the provider does not support the format. schemaOnly means that it supports the format but rejects this schema;
// other schemas may work.
func (f format) refused(err error) (refused, schemaOnly bool) {
	status, ok := errors.AsType[*statusError](err)
	if !ok || f == plainFormat || !status.speaksOf("response_format", "json_schema", "json_object") {
		return false, false
	}
	return true, status.speaksOf("invalid schema")
}

// speaksOf reports whether the server rejected the request as invalid, and its answer has one of the words.
func (e *statusError) speaksOf(words ...string) bool {
	if e.status != http.StatusBadRequest && e.status != http.StatusUnprocessableEntity {
		return false
	}
	body := strings.ToLower(e.body)
	return slices.ContainsFunc(words, func(word string) bool { return strings.Contains(body, word) })
}

// maxRememberedModels limits modelMemory; the features of further models are tried each time.
const maxRememberedModels = 1000

// learnt holds the features that a model has turned out to support.
type learnt struct {
	// format is the best supported format.
	format format
	// newLimit is set if the model supports only the new name of the answer's limit.
	newLimit bool
}

// modelMemory remembers unsupported features of models, so that each is tried once per process.
type modelMemory struct {
	mu     sync.Mutex
	models map[string]learnt
}

func (m *modelMemory) of(model string) learnt {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.models[model]
}

func (m *modelMemory) learn(model string, news learnt) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.models == nil {
		m.models = map[string]learnt{}
	}
	if known, ok := m.models[model]; ok || len(m.models) < maxRememberedModels {
		m.models[model] = learnt{max(known.format, news.format), known.newLimit || news.newLimit}
	}
}
