package llmcall

import (
	"strings"

	"github.com/sashabaranov/go-openai"

	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// The members of Failure.Repair and Request.Repair.
const (
	repairAnswer    = "answer"
	repairViolation = "violation"
)

// refused is an answer that breaks the output_schema, and the error in it; both scrubbed.
type refused struct {
	content string
	// value is the JSON value in the content, nil without one.
	value     any
	violation string
}

// repair returns the recorded data for the attempt that is to correct the answer. An object or array is kept as such
// and not as the text around it, so that members which are redacted by name are redacted in it too.
func (r refused) repair() map[string]any {
	repair := map[string]any{repairAnswer: r.content, repairViolation: r.violation}
	switch r.value.(type) {
	case map[string]any, []any:
		repair[repairAnswer] = r.value
	}
	return repair
}

// refusedIn reads the result of repair; ok is false for anything else, such as the repair of another executor.
func refusedIn(repair map[string]any) (r refused, ok bool) {
	r.violation, ok = repair[repairViolation].(string)
	switch v := repair[repairAnswer].(type) {
	case string:
		r.content = v
	case map[string]any, []any:
		r.content, r.value = string(jsonvalue.Canonical(v)), v
	default:
		return r, false
	}
	return r, ok
}

// conversation continues the prompt with the answer and the error in it. It names the schema, which a provider that
// does not care for response_format has kept from the model until now.
func (n *node) conversation(prompt []openai.ChatCompletionMessage, r refused) []openai.ChatCompletionMessage {
	said := r.content
	if strings.TrimSpace(said) == "" {
		said = nothing
	}
	return append(prompt[:len(prompt):len(prompt)],
		openai.ChatCompletionMessage{Role: openai.ChatMessageRoleAssistant, Content: said},
		openai.ChatCompletionMessage{
			Role: openai.ChatMessageRoleUser,
			Content: "This cannot be used: " + r.violation + "\nAnswer again, with the corrected JSON value and nothing else. It has to satisfy this JSON Schema:\n" +
				string(n.schemaText),
		})
}
