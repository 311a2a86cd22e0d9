// Package llmagent performs llm_call nodes that name an agent in their config. The node's prompts, model, sampling and output_schema override
// the agent's, and the agent's journal is recorded like any agent's.
package llmagent

import (
	"context"
	"time"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/activities/llmcall"
	"github.com/workflows-engine/workflows-engine/delegate/agent"
)

// Executor performs llm_call nodes: agents perform nodes with config.agent, the executor of models performs the others. It is safe for concurrent
// use.
type Executor struct {
	agents *agent.Agents
	models activities.Executor
	now    func() time.Time
}

// New returns an executor of llm_call nodes. agents and models may be nil: nodes that need them are then rejected. now is the clock; nil
// means time.Now.
func New(agents *agent.Agents, models activities.Executor, now func() time.Time) *Executor {
	if models == nil {
		models = activities.Composite{}
	}
	return &Executor{agents: agents, models: models, now: now}
}

// Execute performs nodes without an agent; Capabilities.Work performs the others.
func (e *Executor) Execute(ctx context.Context, req activities.Request) (activities.Result, error) {
	return e.models.Execute(ctx, req)
}

// Capabilities returns the capabilities of the agent that a node names, or else of the executor of models. An agent has the same class as in
// an agent_delegate node.
func (e *Executor) Capabilities(n activities.Node) activities.Capabilities {
	can := activities.CapabilitiesOf(e.models, n)
	can.Targets = e.targets
	name, named := llmcall.NamesAgent(n.Config)
	if n.Type != "llm_call" || !named {
		return can
	}
	can.Missing, can.Classes = activities.MissingNothing, []string{"agent:" + name}
	if name != "" && (e.agents == nil || !e.agents.Has(name)) { // a blank name fails in work
		can.Missing = activities.MissingTarget
	}
	if e.agents != nil {
		can.Work, can.Immediate = e.work, false
	}
	return can
}

// targets returns the names of the agents, sorted. The first one is "", for nodes without an agent, if there are models.
func (e *Executor) targets() (names []string) {
	if activities.CapabilitiesOf(e.models, activities.Node{Type: "llm_call"}).Missing == activities.MissingNothing {
		names = append(names, "")
	}
	if e.agents != nil {
		names = append(names, e.agents.Names()...)
	}
	return names
}

// work performs an attempt of an agent from the end of its journal.
func (e *Executor) work(ctx context.Context, req activities.Request, j activities.Journal) (activities.End, error) {
	call, err := llmcall.ReadAgentCall(req, e.now)
	if err != nil {
		return activities.End{}, err
	}
	req.AgentID, req.Protocol = call.Agent, "sdk"
	return e.agents.WorkWith(ctx, req, agent.Override{
		Task: call.Task, Instructions: call.System, Model: call.Model, Temperature: call.Temperature, TopP: call.TopP, MaxTokens: call.MaxTokens,
		Seed: call.Seed, Stop: call.Stop, Stream: call.Stream, Schema: call.Schema,
	}, j)
}
