package work

import (
	"fmt"
	"strings"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/graph/definition"
)

// Missing names what this process lacks to perform a node, and the setting that provides it; "" if it lacks nothing.
func (p *Performer) Missing(n *definition.Node) (missing, setting string) {
	if !n.Type.IsActivity() && n.Delegate == nil {
		return "", ""
	}
	of := named(n.Type, n.Config)
	can, err := p.capabilities(portNode(n))
	setting = can.Setting
	if of.noun == nounAgent { // an llm_call by an agent
		setting = "Options.Activities"
		if agents, _ := p.capabilities(activities.Node{Type: delegateType, Protocol: "sdk"}); p.Delegates != nil {
			setting = agents.Setting
		}
	}
	switch {
	case err != nil:
		return "an executor that says what it performs: " + err.Error(), setting
	case can.Missing == activities.MissingNothing && !p.shows(n):
		return "", setting
	case n.Delegate != nil && can.Missing == activities.MissingType:
		return "an executor for delegates of protocol " + n.Delegate.Protocol, setting
	case n.Delegate != nil:
		return fmt.Sprintf("%s agent %q", strings.ToUpper(n.Delegate.Protocol), n.Delegate.AgentID), setting
	case can.Missing == activities.MissingType && of.noun != nounAgent:
		return "an executor for " + string(n.Type) + " nodes", setting
	case of.name != "":
		return fmt.Sprintf("%s %q", of.noun, of.name), setting
	}
	return "an executor for this " + string(n.Type) + " node", setting
}

// portNode returns a node as executors know it.
func portNode(n *definition.Node) activities.Node {
	if d := n.Delegate; d != nil {
		return activities.Node{ID: n.ID, Type: string(n.Type), Protocol: d.Protocol, AgentID: d.AgentID}
	}
	return activities.Node{ID: n.ID, Type: string(n.Type), Config: n.Config}
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
	} else {
		for _, named := range []struct{ member, class string }{{"handler", "step:"}, {"server", "mcp:"}} {
			if name, _ := n.Config[named.member].(string); name != "" {
				classes = append(classes, named.class+name)
			}
		}
	}
	can, _ := p.capabilities(portNode(n))
	return append(classes, can.Classes...)
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
