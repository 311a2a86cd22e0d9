package llmcall

import (
	"github.com/workflows-engine/workflows-engine/graph/expr"
)

// fill evaluates a prompt over the state: a text is an expr.Template, {"jq": program} is one program as a whole,
// {"literal": text} a text as it is. known is false for other forms of values.
func fill(v any, state func() map[string]any, env expr.Env) (text string, known bool, err error) {
	var t *expr.Template
	switch v := v.(type) {
	case string:
		t, err = expr.ParseTemplate(v)
	case map[string]any:
		if len(v) != 1 {
			return "", false, nil
		}
		if literal, ok := v["literal"].(string); ok {
			return literal, true, nil
		}
		src, ok := v["jq"].(string)
		if !ok {
			return "", false, nil
		}
		t, err = expr.TemplateProgram(src)
	default:
		return "", false, nil
	}
	if err == nil {
		text, err = t.EvalAt(state, env)
	}
	return text, true, err
}
