package definition

import (
	"time"

	"github.com/workflows-engine/workflows-engine/graph/expr"
	"github.com/workflows-engine/workflows-engine/internal/jsonschema"
)

// InterruptConfig is the config of an interrupt.
type InterruptConfig struct {
	// Prompt in full, "" when only prompt_ref is given.
	Prompt       string
	PromptRef    string
	ResumeSchema *jsonschema.Schema
	// ResumeSchemaRaw is the schema as written, to be shown to the person who answers.
	ResumeSchemaRaw map[string]any
	// ResumeSchemaErr is set when the schema does not compile: every resume is then rejected.
	ResumeSchemaErr error
	// Template fills the prompt in, nil for a prompt sent as written. Show computes the value shown beside the question; may be
	// nil.
	Template *expr.Template
	Show     *expr.Program
	// Timeout is how long an answer may take, 0 without a limit. The reference engine never reads it.
	Timeout time.Duration
}

// interruptType is a node that asks a person.
func interruptType() NodeType {
	return NodeType{
		Name: Interrupt, Output: OutputDeclared, Schema: "resume_schema", Stub: StubAnswer, Figure: FigureQuestion,
		Example: `{"id": "approve", "type": "interrupt", "config": {"prompt": "Send the refund?", ` +
			`"resume_schema": {"type": "object", "properties": {"approved": {"type": "boolean"}}, "required": ["approved"]}}}`,
		description: "Stops the run until a person, or another caller, answers. The properties of the answer are set in the state. " +
			"Allowed on a parallel branch only with the extension interrupt_in_branch.",
		config: objectOf("",
			member{"resume_schema", schema("resume_schema").about("A JSON Schema for the answer.",
				`{"type": "object", "properties": {"approved": {"type": "boolean"}}, "required": ["approved"]}`), true},
			member{"prompt", filled("prompt").about("The question, shown as written; see prompt_templates."), false},
			member{"prompt_ref", filled("prompt_ref").obsolete().
				about("Accepted for older documents; nothing resolves it. Write the prompt itself."), false},
			member{"timeout", filled("the timeout of an interrupt").
				about("How long an answer may take, for example 24h; then the node fails with TIMEOUT."), false},
		).ruled(needsOneOf{"prompt", "prompt_ref"}).not(map[string]string{"assignee": "name the person in the prompt"}).
			about("The question, and the form of its answer."),
		extended: []extended{onTimeoutMember,
			{member{"prompt_templates", boolean("prompt_templates").called("prompt_templates").
				about("true if the prompt in the config is a template: ${ program } in it is replaced by the output of the jq program, null by \"(nothing)\". Extension templates."), false}, ExtensionTemplates},
			{member{"show", filled("show").or("write a jq program for the text beside the question").called("show").
				about("A jq program over the state: shown to the person beside the question, in the terminal and in the forms of hosts. They see the state so far if it is absent, nothing if its output is null. Extension templates.", `".draft"`), false}, ExtensionTemplates},
		},
		Fill: Fill{
			Fields: []string{"prompt"}, Hint: "only the prompt of an interrupt can be filled in",
			Off: `to have it filled in, name the extension "templates" and put "prompt_templates": true beside config`,
		},
		compile: (*config).interrupt,
	}
}

func (x *config) interrupt() {
	i := &InterruptConfig{Prompt: x.text("prompt"), PromptRef: x.text("prompt_ref")}
	i.ResumeSchemaRaw, _ = x.raw["resume_schema"].(map[string]any)
	i.ResumeSchema, i.ResumeSchemaErr = x.schema("resume_schema", checked)
	x.v.node.Interrupt = i
	if i.Prompt == "" {
		x.ignored("prompt_ref", "nothing resolves prompt_ref: whoever answers sees an empty prompt; write the prompt itself")
	} else {
		x.ignored("prompt_ref", "nothing resolves prompt_ref; the prompt is shown")
	}
	i.Timeout = x.timeout("the interrupt waits without a limit")
}
