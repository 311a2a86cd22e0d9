package agentfile

import (
	"fmt"
	"maps"
	"slices"

	"github.com/workflows-engine/workflows-engine/delegate/agent"
	"github.com/workflows-engine/workflows-engine/internal/document"
)

var agentKind = kind{field: "agent", tool: func() Tool { return &agentTool{} }}

// agentTool is another agent of the list as a tool.
type agentTool struct {
	Agent    string `json:"agent"`
	Parallel bool   `json:"parallel,omitempty"`
	Gate     string `json:"gate,omitempty"`
}

func (t *agentTool) String() string { return "agent " + t.Agent }

func (t *agentTool) names() []string { return []string{"agent__" + t.Agent} }

func (t *agentTool) check(p *parser, agent, at string) {
	p.calls[agent] = append(p.calls[agent], call{t.Agent, at + "/agent"})
	if _, known := p.list.Agents[t.Agent]; !known && p.d.Intact(document.At("agents", t.Agent)) {
		p.unknown(at+"/agent", fmt.Sprintf("there is no agent %q", t.Agent), t.Agent, slices.Sorted(maps.Keys(p.list.Agents)))
	}
}

func (t *agentTool) add(to *agent.Agent, _ Runtime, _ any) error {
	to.Agents = append(to.Agents, agent.SubAgent{Name: t.Agent, Parallel: t.Parallel, Gate: t.Gate})
	return nil
}
