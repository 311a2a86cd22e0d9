package agentfile

import "github.com/workflows-engine/workflows-engine/delegate/agent"

var personKind = kind{field: "builtin", tool: func() Tool { return &personTool{} }}

// personTool is the tool ask_person.
type personTool struct {
	Builtin string `json:"builtin"`
}

func (t *personTool) String() string { return t.Builtin }

func (t *personTool) names() []string { return []string{t.Builtin} }

func (t *personTool) check(*parser, string, string) {}

func (t *personTool) add(to *agent.Agent, _ Runtime, _ any) error {
	to.AskPerson = true
	return nil
}
