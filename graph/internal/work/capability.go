package work

import (
	"fmt"
	"strings"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/graph/definition"
)

// Missing names the executor that this process lacks for a node, and the setting that provides it; "" if it has the executor. An executor
// may perform only some nodes: partial is true if it performs others.
func (p *Performer) Missing(n *definition.Node) (missing, setting string, partial bool) {
	if !n.Type.IsActivity() && n.Delegate == nil {
		return "", "", false
	}
	of := named(n.Type, n.Config)
	can, err := p.capabilities(portNode(n))
	setting = can.Setting
	if of.noun == nounAgent && n.Delegate == nil { // an llm_call by an agent
		setting = "Options.Activities"
		if agents, _ := p.capabilities(activities.Node{Type: delegateType, Protocol: "sdk"}); p.Delegates != nil {
			setting = agents.Setting
		}
	}
	switch {
	case err != nil:
		return "an executor that reports its capabilities: " + err.Error(), setting, false
	case can.Missing == activities.MissingNothing && !p.shows(n):
		return "", setting, false
	case n.Delegate != nil && can.Missing == activities.MissingType:
		return "an executor for delegates of protocol " + n.Delegate.Protocol, setting, false
	case n.Delegate != nil:
		return fmt.Sprintf("%s agent %q", strings.ToUpper(n.Delegate.Protocol), n.Delegate.AgentID), setting, true
	case can.Missing == activities.MissingType && of.noun != nounAgent:
		return "an executor for " + string(n.Type) + " nodes", setting, false
	case of.name != "":
		return fmt.Sprintf("%s %q", of.noun, of.name), setting, can.Missing == activities.MissingTarget
	}
	return "an executor for this " + string(n.Type) + " node", setting, can.Missing == activities.MissingTarget
}

// portNode returns a node as executors know it.
func portNode(n *definition.Node) activities.Node {
	if d := n.Delegate; d != nil {
		return activities.Node{ID: n.ID, Type: string(n.Type), Protocol: d.Protocol, AgentID: d.AgentID}
	}
	return activities.Node{ID: n.ID, Type: string(n.Type), Config: n.Config}
}

// Classes returns the limit classes of a node: its type, the handler, server or agent in its config, and the classes from its executor.
func (p *Performer) Classes(n *definition.Node) []string {
	classes := []string{string(n.Type)}
	class, name := n.Type.Info().Performer.Class, named(n.Type, n.Config).name
	if n.Delegate != nil {
		name = n.Delegate.AgentID // trimmed
	}
	if class != "" && name != "" {
		classes = append(classes, class+name)
	}
	can, _ := p.capabilities(portNode(n))
	return append(classes, can.Classes...)
}

// reference is a name in the config of an activity, and the kind of thing that it names.
type reference struct{ noun, name string }

// nounAgent is the noun of the agent of an llm_call.
const nounAgent = "agent"

// named returns the reference in the config of an activity, empty without one.
func named(nodeType definition.Type, config map[string]any) reference {
	p := nodeType.Info().Performer
	if name, _ := config[p.Field].(string); name != "" {
		return reference{p.Noun, name}
	}
	return reference{}
}
