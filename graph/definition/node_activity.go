package definition

import (
	"cmp"
	"slices"

	"github.com/workflows-engine/workflows-engine/graph/expr"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/jsonschema"
)

// ActivityConfig is the part of a step, llm_call or tool_call that the walker needs.
type ActivityConfig struct {
	// OutputSchema is set for an llm_call whose output_schema is checked at the boundary (spec: execution, 8.2:
	// model a non-blank string; prompts strings if present; output_schema an object).
	OutputSchema *jsonschema.Schema
	// OutputSchemaErr is set when that schema does not compile: the node fails when an output is to be checked.
	OutputSchemaErr error
}

// stepType is an activity that a handler of the operator performs.
func stepType() NodeType {
	return NodeType{
		Name: Step, Executor: ActivityExecutor, Stub: StubOutput, Output: OutputAny, Figure: FigureBox,
		Performer: Performer{
			Field: "handler", Noun: "step handler", Role: "handler", Class: "step:",
			Label: func(config map[string]any) string { return trimmed(config["handler"]) },
		},
		Example:     `{"id": "send", "type": "step", "config": {"handler": "send_invoice"}}`,
		description: "Runs code: a program of the operator, or a Go function of the embedding program. It gets the state. Its output, an object, is combined with the state.",
		config: free("").fields(
			member{"handler", anything().about("The name of the code, a string.", `"send_invoice"`), false},
			member{"code_ref", anything().obsolete().about("Accepted for older documents; nothing reads it."), false},
		).ruled(needsOneOf{"handler", "code_ref"}).
			about("The name of the handler; all other properties are passed to the handler."),
		extended: []extended{catchMember, compensateMember, mapMember, heartbeatMember, queueMember, queueTimeoutMember, deadlineMember},
		Misplaced: Misplaced{"the engine does not read %s in the config of a step, only its handler may", map[string]string{
			"output_schema": "no output of a step is checked: let the handler check it, or write output_schema into the config of an end node, for the result",
			"input":         "a handler gets the whole state as its input; prepare it in a set_state node",
			"input_mapping": "a handler gets the whole state as its input; prepare it in a set_state node",
		}},
		Fill:    Fill{Hint: "compute the value in a set_state node: a handler gets the config as written, and the state beside it"},
		compile: (*config).step,
	}
}

// llmCallType is an activity that a model, or an agent, performs.
func llmCallType() NodeType {
	option := func(name, description string) member { return member{name, anything().about(description), false} }
	return NodeType{
		Name: LLMCall, Executor: ActivityExecutor, Stub: StubOutput, Output: OutputDeclared, Schema: "output_schema", Figure: FigureBox,
		Performer: Performer{
			Field: "agent", Noun: "agent", Role: "model", Result: "the model's answer",
			Label: func(config map[string]any) string {
				model := config["model"]
				if list, _ := model.([]any); len(list) > 0 {
					model = list[0]
				}
				return cmp.Or(trimmed(config["agent"]), trimmed(model))
			},
		},
		Example: `{"id": "classify", "type": "llm_call", "config": {"model": "any", "system_prompt": "Name the intent.", ` +
			`"output_schema": {"type": "object", "properties": {"intent": {"type": "string"}}, "required": ["intent"]}}}`,
		description: "Asks a language model. Its output is combined with the state.",
		config: free("").fields(
			option("agent", "The name of an agent of the operator, a string. The agent performs the node with its tools; model and prompts are then optional."),
			option("model", "The name of the model, a string; or an array of names: each is asked in an outage of the one before it."),
			option("system_prompt", "The role of the model and the form of its answer, a string."),
			option("user_prompt", "The question, a string; the whole state as JSON if absent."),
			option("prompt", "Another name of user_prompt, a string."),
			option("output_schema", "A JSON Schema (an object) for the answer. The answer is then JSON and is checked; one that breaks the schema counts as a failed attempt, or is rejected if a host submits it."),
			option("stream", "Whether the answer is read as a stream, a boolean."),
			option("temperature", "The temperature, a number, passed to the model."),
			option("top_p", "The nucleus sampling bound, a number, passed to the model."),
			option("max_tokens", "The largest number of tokens of the answer, passed to the model."),
			option("seed", "The seed of sampling, a number, passed to the model."),
			option("stop", "The strings that end an answer, an array, passed to the model."),
		).about("The model and the prompts. Prompts are sent as written, unless prompt_templates in metadata is true. Other properties are passed to the executor."),
		extended: []extended{catchMember, compensateMember, mapMember, heartbeatMember, queueMember, queueTimeoutMember, deadlineMember},
		Misplaced: Misplaced{"nothing reads %s in the config of an llm_call", map[string]string{
			"input":         `write the values into the prompt, as "${ .name }" with prompt_templates in metadata`,
			"input_mapping": `write the values into the prompt, as "${ .name }" with prompt_templates in metadata`,
			"schema":        `write "output_schema"`, "response_format": `write "output_schema"`,
		}},
		Fill: Fill{
			Fields: []string{"system_prompt", "user_prompt", "prompt"}, Switch: PromptTemplates,
			Hint: `only the prompts of an llm_call can be filled in, by "metadata": {"prompt_templates": true}`,
			Off:  `to have it filled in, write "metadata": {"prompt_templates": true}, or compute the value in a set_state node`,
		},
		compile: (*config).llmCall,
	}
}

// toolCallType is an activity that a tool of an MCP server performs.
func toolCallType() NodeType {
	return NodeType{
		Name: ToolCall, Executor: ActivityExecutor, Stub: StubOutput, Output: OutputAny, Figure: FigureBox,
		Performer: Performer{
			Field: "server", Noun: "MCP server", Role: "tool", Class: "mcp:", Result: "the tool's result",
			Label: func(config map[string]any) string { return trimmed(config["server"]) + "/" + trimmed(config["tool"]) },
		},
		Example:     `{"id": "search", "type": "tool_call", "config": {"server": "library", "tool": "search", "arguments": {"limit": 5}}}`,
		description: "Calls a tool of an MCP server. Its output is combined with the state.",
		config: objectOf("",
			member{"server", filled("server").about("The name of the MCP server, as the operator has configured it."), true},
			member{"tool", filled("tool").about("The name of the tool on that server."), true},
			member{"arguments", free("arguments").
				about("The tool's arguments. They are sent as written, unless argument_templates in metadata is true."), false},
		).not(map[string]string{
			"input_mapping": "a tool_call sends its arguments literally; write them into arguments",
			"input":         "write arguments",
			"args":          "write arguments",
		}).about("The tool and its arguments."),
		extended: []extended{catchMember, compensateMember, mapMember, heartbeatMember, queueMember, queueTimeoutMember, deadlineMember},
		Fill: Fill{
			Fields: []string{"arguments"}, Deep: true, Switch: ArgumentTemplates,
			Hint: `only the arguments of a tool_call can be filled in, by "metadata": {"argument_templates": true}`,
			Off:  `to have it filled in, write "metadata": {"argument_templates": true}, or compute the value in a set_state node`,
		},
		compile: (*config).toolCall,
	}
}

func (x *config) toolCall() { x.v.node.Activity = &ActivityConfig{} }

// step warns of configs that the step executor rejects; a host that runs the step itself may read them.
func (x *config) step() {
	x.v.node.Activity = &ActivityConfig{}
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
	x.v.node.Activity = &ActivityConfig{}
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
	for _, name := range x.v.node.Type.Info().Fill.Fields {
		prompt, given := x.raw[name]
		_, text := prompt.(string)
		if given && !text && !(templates && isObject(prompt)) {
			unusable(name, name+" must be a string", "")
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
