package definition

import (
	"maps"

	"github.com/workflows-engine/workflows-engine/graph/expr"
	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// Prompts and Arguments are the members of a node's metadata that, when true, ask for its prompts or its arguments to be filled in. Without
// them they are sent as written, which is the protocol's rule (spec: activities, 5.2 and 6.2).
const (
	PromptTemplates   = "prompt_templates"
	ArgumentTemplates = "argument_templates"
)

// Templates is a node as its definition has it.
type Templates struct {
	ID, Type         string
	Config, Metadata map[string]any
}

// Asks reports whether anything of the node is to be filled in.
func (n Templates) Asks() bool {
	name := Type(n.Type).Info().Fill.Switch
	return name != "" && n.Metadata[name] == true
}

// Values returns the members of the node's config that are filled in, with their values, or nil. state is called once at most,
// and only if a program needs it; nil is no state. The error is a *problem.Error.
func (n Templates) Values(state func() map[string]any, env expr.Env) (map[string]any, error) {
	if !n.Asks() {
		return nil, nil
	}
	if env.Budget == nil {
		env.Budget = &expr.Budget{}
	}
	var known map[string]any
	once := func() map[string]any {
		if known == nil && state != nil {
			known = state()
		}
		return known
	}
	if Type(n.Type).Info().Fill.Deep {
		return n.arguments(once, env)
	}
	return n.prompts(once, env)
}

// prompts fills in the system prompt, and user_prompt or else prompt.
func (n Templates) prompts(state func() map[string]any, env expr.Env) (map[string]any, error) {
	user := "user_prompt"
	if _, given := n.Config[user]; !given {
		user = "prompt"
	}
	var filled map[string]any
	for _, name := range []string{"system_prompt", user} {
		v, given := n.Config[name]
		if !given {
			continue
		}
		text, known, err := prompt(v, state, env)
		switch {
		case !known:
			return nil, problem.New(problem.LLMConfigInvalid, `the %s of llm_call %q is not a text or {"jq": "<program>"}`, name, n.ID)
		case err != nil:
			return nil, problem.New(problem.LLMConfigInvalid, "the %s of llm_call %q cannot be filled in", name, n.ID).WithCause(err)
		}
		if filled == nil {
			filled = map[string]any{}
		}
		filled[name] = text
	}
	return filled, nil
}

// prompt evaluates a prompt over the state: a text is an expr.Template, {"jq": program} is one program as a whole,
// {"literal": text} a text as it is. known is false for other forms of values.
func prompt(v any, state func() map[string]any, env expr.Env) (text string, known bool, err error) {
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

// arguments evaluates {"jq": …}, {"literal": …} and "${ … }" over the state, at any depth, by the rules of input_mapping.
func (n Templates) arguments(state func() map[string]any, env expr.Env) (map[string]any, error) {
	const member = "arguments"
	raw, given := n.Config[member]
	if !given {
		return nil, nil
	}
	parts := map[string]any{}
	collect(raw, "", parts)
	mapping, _ := expr.CompileMapping(parts) // what does not compile fails in EvalAt
	var root map[string]any
	if len(mapping.Programs()) > 0 {
		root = state()
	}
	values, err := mapping.EvalAt(root, env)
	if err != nil {
		failed := problem.New(problem.ExpressionFailed, "the arguments of %q", n.ID).WithCause(err)
		if e, ok := problem.As(err); ok {
			failed.Code = e.Code
		}
		return nil, failed
	}
	return map[string]any{member: substitute(raw, "", values)}, nil
}

// OverlayConfig returns a node's config with the values that were filled in. It shares their values.
func OverlayConfig(config, filled map[string]any) map[string]any {
	if len(filled) == 0 {
		return config
	}
	config = maps.Clone(config)
	maps.Copy(config, filled)
	return config
}
