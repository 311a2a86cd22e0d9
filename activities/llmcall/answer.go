package llmcall

import (
	"fmt"
	"strings"

	"github.com/workflows-engine/workflows-engine/activities/chat"
	"github.com/workflows-engine/workflows-engine/internal/jsonschema"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// output reads a model's answer (spec: activities, 5.5). Without an output_schema a JSON object is the output, and
// anything else is {"text": content}. With one the content has to hold a JSON value that satisfies it (chat.ReadJSON);
// otherwise, and where the value cannot be kept, violation describes the error in a sentence, and output is the value
// if there is one.
func (n *node) output(r *reply) (output any, violation string) {
	if n.schema == nil {
		if content := strings.Trim(r.content, "\ufeff\u200b \t\r\n"); strings.HasPrefix(content, "{") && !jsonvalue.TooDeep([]byte(content), jsonvalue.MaxDepth) {
			if v, losses, err := jsonvalue.DecodeUnique([]byte(content)); err == nil {
				return v, changed(losses)
			}
		}
		text := r.content
		if strings.TrimSpace(text) == "" {
			text = ""
		}
		return map[string]any{"text": text}, ""
	}
	return chat.ReadJSON(r.content, n.read, jsonvalue.Equal)
}

// read reads a part of an answer as strictly as any input.
func (n *node) read(text string) (v any, violation string, isJSON bool) {
	if jsonvalue.TooDeep([]byte(text), jsonvalue.MaxDepth) {
		return nil, fmt.Sprintf("the answer cannot be kept: it is nested more than %d levels deep", jsonvalue.MaxDepth), true
	}
	v, losses, err := jsonvalue.DecodeUnique([]byte(text))
	if err != nil {
		return nil, "the answer is not JSON: " + err.Error(), false
	}
	if violation := changed(losses); violation != "" {
		return nil, violation, true
	}
	if violations := n.schema.Validate(v); len(violations) > 0 {
		return v, "the answer breaks output_schema: " + jsonschema.Text(violations), true
	}
	return v, "", true
}

// changed is the violation of an answer with values that cannot be kept, "" without such.
func changed(losses []jsonvalue.SyntaxError) string {
	if len(losses) == 0 {
		return ""
	}
	return fmt.Sprintf("the answer cannot be kept: %q: %s", losses[0].Pointer, losses[0].Message)
}

// unfenced takes away white space, and the code fence that models like to put around JSON.
func unfenced(content string) string {
	text := strings.TrimSpace(content)
	const fence = "```"
	body, ok := strings.CutPrefix(text, fence)
	if !ok {
		return text
	}
	_, body, ok = strings.Cut(body, "\n") // the first line may name the language
	if !ok {
		return text
	}
	if body, ok = strings.CutSuffix(body, fence); !ok {
		return text
	}
	return strings.TrimSpace(body)
}

// maxViolation bounds the violations that are sent to the model and recorded, in bytes: one wrong array can have
// thousands.
const maxViolation = 4000
