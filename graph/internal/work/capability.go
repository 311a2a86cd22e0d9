package work

import (
	"fmt"
	"strings"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/delegate"
	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/internal/guard"
	"github.com/workflows-engine/workflows-engine/internal/port"
)

// What is set so that activities or delegates are performed, where an executor does not name its own settings.
const settingActivities, settingDelegates = "Options.Activities", "Options.Delegates"

// Missing names what this process lacks to perform a node, and the setting that provides it; "" if it lacks nothing. Executors
// say themselves if they perform some nodes only.
func (p *Performer) Missing(n *definition.Node) (missing, setting string) {
	ask := p.missingActivity
	switch {
	case n.Type.IsActivity():
		setting = port.Setting(p.Activities, string(n.Type), settingActivities)
		if named(n.Type, n.Config).noun == nounAgent {
			setting = port.Setting(p.Delegates, "sdk", settingActivities)
		}
	case n.Delegate != nil:
		ask, setting = p.missingDelegate, port.Setting(p.Delegates, n.Delegate.Protocol, settingDelegates)
	default:
		return "", ""
	}
	if err := guard.Call(p.Log, "an executor that was asked what it performs", func() { missing = ask(n) }); err != nil {
		missing = "an executor that says what it performs: " + err.Error()
	}
	return missing, setting
}

// Limited returns what says whether a limit bounds attempts of a node, nil if there is no limit.
func (p *Performer) Limited() func(*definition.Node) bool {
	if p.Turns.Unlimited() {
		return nil
	}
	return func(n *definition.Node) bool { return p.Turns.Limited(p.Classes(n)) }
}

// Classes returns the classes to which limits of attempts of a node may apply: its type, what it names, and what its executor
// says.
func (p *Performer) Classes(n *definition.Node) []string {
	classes := []string{string(n.Type)}
	if n.Delegate != nil {
		classes = append(classes, "agent:"+n.Delegate.AgentID)
		if e, ok := p.Delegates.(delegate.Classified); ok {
			classes = append(classes, e.Classes(n.Delegate.Protocol, n.Delegate.AgentID)...)
		}
		return classes
	}
	for _, named := range []struct{ member, class string }{{"handler", "step:"}, {"server", "mcp:"}} {
		if name, _ := n.Config[named.member].(string); name != "" {
			classes = append(classes, named.class+name)
		}
	}
	if e, ok := p.Activities.(activities.Classified); ok {
		classes = append(classes, e.Classes(string(n.Type), n.Config)...)
	}
	return classes
}

func (p *Performer) missingActivity(n *definition.Node) string {
	kind, of := string(n.Type), named(n.Type, n.Config)
	types, _ := p.Activities.(activities.Selective)
	nodes, _ := p.Activities.(activities.NodeSelective)
	switch {
	case (p.Activities == nil || types != nil && !types.Performs(kind)) && of.noun != nounAgent:
		return "an executor for " + kind + " nodes"
	case p.Activities != nil && (nodes == nil || nodes.PerformsNode(kind, n.Config)) && !p.shows(n):
		return ""
	case of.name != "":
		return fmt.Sprintf("%s %q", of.noun, of.name)
	}
	return "an executor for this " + kind + " node"
}

// reference is what the configuration of an activity names: the name, and what it is the name of.
type reference struct{ noun, name string }

// nounAgent is the noun of an agent that an llm_call names.
const nounAgent = "agent"

// named returns what the configuration of an activity names, empty if it names nothing.
func named(nodeType definition.Type, config map[string]any) reference {
	member, noun := "handler", "step handler"
	switch nodeType {
	case definition.LLMCall:
		member, noun = "agent", nounAgent
	case definition.ToolCall:
		member, noun = "server", "MCP server"
	}
	if name, _ := config[member].(string); name != "" {
		return reference{noun, name}
	}
	return reference{}
}

func (p *Performer) missingDelegate(n *definition.Node) string {
	protocol, agent := n.Delegate.Protocol, n.Delegate.AgentID
	protocols, _ := p.Delegates.(delegate.Selective)
	agents, _ := p.Delegates.(delegate.AgentSelective)
	switch {
	case p.Delegates == nil || protocols != nil && !protocols.Performs(protocol):
		return "an executor for delegates of protocol " + protocol
	case (agents == nil || agents.PerformsAgent(protocol, agent)) && !p.shows(n):
		return ""
	}
	return fmt.Sprintf("%s agent %q", strings.ToUpper(protocol), agent)
}
