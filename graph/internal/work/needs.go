package work

import (
	"math"
	"strings"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/graph/definition"
)

// Needs names the executor that performs a node: its type or protocol and, after ":", the handler, server or agent that the node names. It is
// "" for a node without such a need.
func Needs(n *definition.Node) string {
	if n == nil || !n.Type.Info().Attempted() {
		return ""
	}
	c := nodeTakes(n)
	if c.name == "" {
		return c.kind
	}
	return c.kind + ":" + c.name
}

// Serves reports whether this process has the executor with a name from Needs.
func (p *Performer) Serves(needs string) bool {
	if needs == "" {
		return true
	}
	missing, _, _ := p.Missing(nodeOf(needs))
	return missing == ""
}

// Room returns the number of attempts that need the executor with a name from Needs, and that the limits of this process let begin soon.
func (p *Performer) Room(needs string) int {
	if needs == "" || p.Turns.Unlimited() {
		return math.MaxInt
	}
	return p.Turns.Room(p.Classes(nodeOf(needs)))
}

// nodeOf returns a node that needs the executor with a name from Needs.
func nodeOf(needs string) *definition.Node {
	kind, name, _ := strings.Cut(needs, ":")
	n := &definition.Node{ID: "any", Type: definition.Type(kind)}
	if !n.Type.IsActivity() {
		n.Type, n.Delegate = definition.AgentDelegate, &definition.DelegateConfig{Protocol: kind, AgentID: name}
	} else if name != "" {
		n.Config = map[string]any{n.Type.Info().Performer.Field: name}
	}
	return n
}

// Performs lists the executors of this process by the names of Needs, in order. A name without ":" stands for all of its kind, a name that ends in ":"
// for nodes of this kind that name no handler, server or agent.
func (p *Performer) Performs() (names []string) {
	list := func(kind string, n activities.Node) {
		can, err := p.capabilities(n)
		switch {
		case err != nil || can.Missing == activities.MissingType && can.Targets == nil:
		case can.Targets == nil:
			names = append(names, kind)
		default:
			for _, target := range can.Targets() {
				names = append(names, kind+":"+target)
			}
		}
	}
	for _, kind := range activityKinds {
		list(kind, activities.Node{ID: "any", Type: kind})
	}
	for _, protocol := range protocols {
		list(protocol, activities.Node{ID: "any", Type: delegateType, Protocol: protocol})
	}
	return names
}

// activityKinds are the types of activities, protocols those of agent_delegate nodes.
var (
	activityKinds = []string{string(definition.LLMCall), string(definition.Step), string(definition.ToolCall)}
	protocols     = []string{"a2a", "mcp", "sdk"}
)

// Reserve reserves a place for an attempt of a node; see Queue.Reserve.
func (p *Performer) Reserve(n *definition.Node) (release func(), ok bool) {
	if p.Turns.Unlimited() {
		return p.Turns.Reserve(nil)
	}
	return p.Turns.Reserve(p.Classes(n))
}
