package definition

import (
	"slices"

	"github.com/workflows-engine/workflows-engine/graph/expr"
	"github.com/workflows-engine/workflows-engine/graph/problem"
)

func (x *config) activity() {
	x.v.node.Activity = &ActivityConfig{}
	x.c.lintMetadata(x.v)
	switch x.v.node.Type {
	case Step:
		x.step()
		x.misplaced("the engine does not read %s in the config of a step, only its handler may")
		x.unfilled("compute the value in a set_state: a handler gets the state beside its config, and the config as it is written")
	case LLMCall:
		x.llmCall()
		x.unfilled(`only the prompts of an llm_call can be filled in, by "metadata": {"prompt_templates": true}`, "system_prompt", "user_prompt", "prompt")
		x.misplaced("nothing reads %s in the config of an llm_call")
	case ToolCall:
		x.unfilled(`only the arguments of a tool_call can be filled in, by "metadata": {"argument_templates": true}`, "arguments")
		arguments := x.json.Get("arguments")
		switch {
		case arguments == nil:
		case x.v.node.Metadata["argument_templates"] == true:
			// The tool executor fills the arguments in.
			x.c.lintArguments(arguments, x.at.member("arguments"), x.v)
		default:
			x.c.lintLiterals(arguments, x.at.member("arguments"), x.v, `have it filled in by "metadata": {"argument_templates": true}, or compute the value in a set_state`)
		}
	}
	x.c.lintDemo(x.v)
}

// step warns of what the step executor refuses; a host that runs the step itself may read it.
func (x *config) step() {
	handler, isText := x.raw["handler"].(string)
	switch {
	case x.json.Get("handler") == nil:
		x.ignored("code_ref", "nothing reads code_ref; a step needs a handler")
	case !isText || expr.TrimSpace(handler) == "":
		x.c.refuse(problem.ConfigInvalid, x.json.Get("handler"), x.at.member("handler"), x.v, "the handler of a step is a name that is not blank", "")
	default:
		x.ignored("code_ref", "nothing reads code_ref")
	}
}

func isObject(v any) bool {
	_, ok := v.(map[string]any)
	return ok
}

// llmCall compiles the output_schema where outputs are checked against it (spec: execution, 8.2); a schema beside an
// unusable config is silently left out by the protocol, which is worth a warning.
func (x *config) llmCall() {
	usable := true
	unusable := func(name, message, hint string) {
		usable = false
		n, at := x.json.Get(name), x.at.member(name)
		if n == nil {
			n, at = x.json, x.at
		}
		x.c.refuse(problem.ConfigInvalid, n, at, x.v, message, hint)
	}
	agent, named := x.raw["agent"]
	if name, ok := agent.(string); named && (!ok || expr.TrimSpace(name) == "") {
		unusable("agent", "agent is the name of an agent that is not blank", "leave it out to ask the model alone")
	}
	switch model, ok := x.raw["model"].(string); {
	case named && x.raw["model"] == nil: // the agent has one
	case !named && isModelList(x.raw["model"]):
	case !ok || expr.TrimSpace(model) == "":
		unusable("model", "an llm_call needs the name of a model", `add "model": "<name>", or a list of names`)
	}
	templates := x.v.node.Metadata["prompt_templates"] == true
	for _, name := range []string{"system_prompt", "user_prompt", "prompt"} {
		if prompt, given := x.raw[name]; given {
			switch _, text := prompt.(string); {
			case templates && (text || isObject(prompt)):
				// The model executor fills it in.
				x.c.lintPrompt(x.json.Get(name), x.at.member(name), x.v)
			case !text:
				unusable(name, name+" must be a text", "")
			default:
				x.c.lintLiterals(x.json.Get(name), x.at.member(name), x.v, `have it filled in by "metadata": {"prompt_templates": true}, or compute the value in a set_state`)
			}
		}
	}
	schema := x.json.Get("output_schema")
	if schema == nil {
		return
	}
	if _, ok := x.raw["output_schema"].(map[string]any); !ok {
		x.c.refuse(problem.ConfigInvalid, schema, x.at.member("output_schema"), x.v, "output_schema must be an object; outputs are not checked", "")
		return
	}
	use := checked
	if !usable {
		use = unused
	}
	compiled, err := x.schema("output_schema", use)
	if usable {
		x.v.node.Activity.OutputSchema, x.v.node.Activity.OutputSchemaErr = compiled, err
	}
}

// isModelList reports whether a model is a list of names, which are asked in turn.
func isModelList(v any) bool {
	list, ok := v.([]any)
	return ok && len(list) > 0 && !slices.ContainsFunc(list, func(e any) bool {
		name, ok := e.(string)
		return !ok || expr.TrimSpace(name) == ""
	})
}
