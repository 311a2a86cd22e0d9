package agentfile

import (
	"strings"

	"github.com/workflows-engine/workflows-engine/delegate/agent"
	"github.com/workflows-engine/workflows-engine/internal/jsonschema"
)

var stepKind = kind{field: "step", tool: func() Tool { return &stepTool{} }}

// stepTool is a step as a tool, which the model knows by Name.
type stepTool struct {
	// Step is the handler of the step.
	Step        string         `json:"step"`
	Name        string         `json:"name,omitempty"`
	Description string         `json:"description,omitempty"`
	InputSchema map[string]any `json:"inputSchema,omitempty"`
	Options
}

func (t *stepTool) String() string { return t.Name }

func (t *stepTool) names() []string { return []string{t.Name} }

func (t *stepTool) check(p *parser, _, at string) {
	t.Step = strings.TrimSpace(t.Step)
	p.configured(at+"/step", "step handler", t.Step, p.Steps, p.NoSteps)
	if t.InputSchema != nil && p.d.Intact(at+"/inputSchema") {
		if _, err := jsonschema.Compile(t.InputSchema); err != nil {
			p.d.Fail(at+"/inputSchema", "format", "the schema does not compile: %v", err)
		}
	}
}

func (t *stepTool) add(to *agent.Agent, r Runtime, _ any) error {
	to.Tools = append(to.Tools, agent.NewStepTool(r.Steps, t.Step, t.Name, t.Description, t.InputSchema, t.list()...))
	return nil
}
