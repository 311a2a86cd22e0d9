// Package llmagent performs llm_call nodes that name an agent in their config: the node's prompts, model, sampling and output_schema stand
// over the agent's configuration, and its steps are recorded like those of any agent.
package llmagent

import (
	"context"
	"time"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/activities/llmcall"
	"github.com/workflows-engine/workflows-engine/delegate"
	"github.com/workflows-engine/workflows-engine/delegate/agent"
)

// Executor performs llm_call nodes: those with config.agent by agents, the others by the executor of models. It is safe for concurrent use.
type Executor struct {
	// Composite asks models, and says of other nodes what an executor says.
	activities.Composite
	agents *agent.Agents
	now    func() time.Time
}

// New makes an executor of llm_call nodes. agents and models may be nil: then nodes that need them are refused. now is the clock, nil for
// time.Now.
func New(agents *agent.Agents, models activities.Executor, now func() time.Time) *Executor {
	return &Executor{Composite: activities.Composite{LLMCall: models}, agents: agents, now: now}
}

// Performs reports whether there is anything that performs llm_call nodes.
func (e *Executor) Performs(nodeType string) bool {
	return nodeType == "llm_call" && (e.LLMCall != nil || e.agents != nil)
}

// PerformsNode reports whether the agent that a node names is configured, or else whether models are.
func (e *Executor) PerformsNode(nodeType string, config map[string]any) bool {
	if name, named := llmcall.NamesAgent(config); named {
		return name == "" || e.agents != nil && e.agents.PerformsAgent("sdk", name) // one that is no name fails when it is performed
	}
	return e.LLMCall != nil && e.Composite.PerformsNode(nodeType, config)
}

// Classes names the agent of a node, for limits, as of an agent_delegate.
func (e *Executor) Classes(nodeType string, config map[string]any) []string {
	if name, named := llmcall.NamesAgent(config); named {
		return []string{"agent:" + name}
	}
	return e.Composite.Classes(nodeType, config)
}

// Journals reports whether an agent performs the request.
func (e *Executor) Journals(req activities.Request) bool {
	_, named := llmcall.NamesAgent(req.Config)
	return named && e.agents != nil || !named && e.Composite.Journals(req)
}

// Work performs an attempt of an agent from where its journal ends.
func (e *Executor) Work(ctx context.Context, req activities.Request, j activities.Journal) (activities.End, error) {
	if _, named := llmcall.NamesAgent(req.Config); !named {
		return e.Composite.Work(ctx, req, j)
	}
	call, err := llmcall.ReadAgentCall(req, e.now)
	if err != nil {
		return activities.End{}, err
	}
	return e.agents.WorkWith(ctx, delegate.Request{
		ExecutionID: req.ExecutionID, NodeID: req.NodeID, AgentID: call.Agent, Protocol: "sdk", IdempotencyKey: req.IdempotencyKey,
		Visit: req.Visit, Attempt: req.Attempt, Deadline: req.Deadline, State: req.State, Heartbeat: req.Heartbeat, Metadata: req.Metadata,
	}, agent.Override{
		Task: call.Task, Instructions: call.System, Model: call.Model, Temperature: call.Temperature, TopP: call.TopP, MaxTokens: call.MaxTokens,
		Seed: call.Seed, Stop: call.Stop, Stream: call.Stream, Schema: call.Schema,
	}, j)
}

// Immediate is false for a request that an agent performs.
func (e *Executor) Immediate(req activities.Request) bool {
	return !e.Journals(req) && e.Composite.Immediate(req)
}

var (
	_ activities.Journaled     = (*Executor)(nil)
	_ activities.NodeSelective = (*Executor)(nil)
	_ activities.Classified    = (*Executor)(nil)
	_ activities.Describer     = (*Executor)(nil)
)
