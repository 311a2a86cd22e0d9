package llmcall

import (
	"github.com/workflows-engine/workflows-engine/activities/chat"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// The fields of Failure.Repair and Request.Repair.
const (
	repairAnswer    = "answer"
	repairViolation = "violation"
)

// invalidAnswer is an answer that violates the output_schema, and the error in it.
type invalidAnswer struct {
	content string
	// value is the JSON value in the content, nil without one.
	value     any
	violation string
}

// repair returns the recorded data for the attempt that corrects the answer. An object or array is kept as a value, without the text around
// it, so that fields which are redacted by name are redacted in it too.
func (r invalidAnswer) repair() map[string]any {
	repair := map[string]any{repairAnswer: r.content, repairViolation: r.violation}
	switch r.value.(type) {
	case map[string]any, []any:
		repair[repairAnswer] = r.value
	}
	return repair
}

// invalidIn reads the result of repair; ok is false for other data, such as the repair of another executor.
func invalidIn(repair map[string]any) (r invalidAnswer, ok bool) {
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

// conversation continues the prompt with the answer and the error in it. It repeats the schema: a provider that ignores response_format has
// not shown it to the model yet.
func (n *node) conversation(prompt []chat.Message, r invalidAnswer) []chat.Message {
	return append(prompt[:len(prompt):len(prompt)],
		chat.Message{Role: chat.Assistant, Text: r.content},
		chat.Message{
			Role: chat.User,
			Text: "This cannot be used: " + r.violation + "\nAnswer again, with the corrected JSON value and nothing else. It has to satisfy this JSON Schema:\n" +
				string(jsonvalue.Canonical(n.rawSchema)),
		})
}
