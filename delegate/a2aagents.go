package delegate

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// A2AAgents sends each delegation of protocol a2a to the endpoint of its agent.
type A2AAgents struct {
	// Default performs delegations to agents that Agents does not name; nil rejects them with DELEGATE_AGENT_NOT_FOUND.
	Default activities.Executor
	// Agents performs delegations by agent id.
	Agents map[string]activities.Executor
}

// Execute passes the request to the endpoint of its agent.
func (a *A2AAgents) Execute(ctx context.Context, req activities.Request) (activities.Result, error) {
	return a.of(req.AgentID).Execute(ctx, req)
}

// Capabilities returns those of the endpoint of the agent.
func (a *A2AAgents) Capabilities(n activities.Node) activities.Capabilities {
	can := activities.CapabilitiesOf(a.of(n.AgentID), n)
	if can.Missing == activities.MissingType || n.Protocol != "a2a" {
		can.Missing = activities.MissingTarget
	}
	can.Targets = nil
	if a.Default == nil {
		can.Targets = func() []string { return slices.Sorted(maps.Keys(a.Agents)) }
	}
	return can
}

// of returns the endpoint of an agent; without one, an executor that fails.
func (a *A2AAgents) of(agentID string) activities.Executor {
	if x := a.Agents[strings.TrimSpace(agentID)]; x != nil {
		return x
	}
	if a.Default == nil {
		return activities.Refuse(activities.Fail(problem.DelegateAgentNotFound, "agent %q is not one of the configured A2A agents", agentID))
	}
	return a.Default
}
