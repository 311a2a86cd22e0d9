package llmcall

import (
	"fmt"
	"strings"

	"github.com/workflows-engine/workflows-engine/activities/chat"
	"github.com/workflows-engine/workflows-engine/internal/jsonschema"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// output reads a model's answer (spec: activities, 5.5). Without an output_schema a JSON object is the output, and any other content is
// {"text": content}. With one the content must contain a JSON value that satisfies it (chat.ReadJSON). Otherwise, or if the value cannot be
// kept, violation describes the error, and output is the value, if any.
func (n *node) output(content string) (output any, violation string) {
	if n.schema == nil {
		if text := strings.Trim(content, "\ufeff\u200b \t\r\n"); strings.HasPrefix(text, "{") && !jsonvalue.TooDeep([]byte(text), jsonvalue.MaxDepth) {
			if v, losses, err := jsonvalue.DecodeUnique([]byte(text)); err == nil {
				return v, changed(losses)
			}
		}
		if strings.TrimSpace(content) == "" {
			content = ""
		}
		return map[string]any{"text": content}, ""
	}
	return chat.ReadJSON(content, n.read, jsonvalue.Equal)
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

// changed returns the violation of an answer with values that cannot be kept exactly, "" without such values.
func changed(losses []jsonvalue.SyntaxError) string {
	if len(losses) == 0 {
		return ""
	}
	return fmt.Sprintf("the answer cannot be kept: %q: %s", losses[0].Pointer, losses[0].Message)
}

// maxViolation limits the text of violations that is sent to the model and recorded, in bytes: one invalid array can have thousands.
const maxViolation = 4000
