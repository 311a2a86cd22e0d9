package delegate

import (
	"context"
	"strings"
	"sync"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// A2AAgents sends each delegation of protocol a2a to the endpoint of its agent.
type A2AAgents struct {
	// Default serves the agents that Agents does not name; nil refuses them with DELEGATE_AGENT_NOT_FOUND.
	Default Tasks
	// Agents serves agents by id.
	Agents map[string]Tasks
}

// PerformsAgent reports whether there is an endpoint for the agent.
func (a *A2AAgents) PerformsAgent(protocol, agentID string) bool {
	return protocol == "a2a" && (a.Default != nil || a.Agents[strings.TrimSpace(agentID)] != nil)
}

// HasTask is always true.
func (a *A2AAgents) HasTask(Request) bool { return true }

// Delegate hands the request on.
func (a *A2AAgents) Delegate(ctx context.Context, req Request) (Result, error) {
	tasks, err := a.of(req)
	if err != nil {
		return Result{}, err
	}
	return tasks.Delegate(ctx, req)
}

// Send hands the task to its agent.
func (a *A2AAgents) Send(ctx context.Context, req Request) (Task, error) {
	tasks, err := a.of(req)
	if err != nil {
		return Task{}, err
	}
	return tasks.Send(ctx, req)
}

// Poll asks the task's agent.
func (a *A2AAgents) Poll(ctx context.Context, req Request, ref TaskRef) (Task, error) {
	tasks, err := a.of(req)
	if err != nil {
		return Task{}, err
	}
	return tasks.Poll(ctx, req, ref)
}

// Answer answers the task's agent.
func (a *A2AAgents) Answer(ctx context.Context, req Request, ref TaskRef, answer map[string]any) (Task, error) {
	tasks, err := a.of(req)
	if err != nil {
		return Task{}, err
	}
	return tasks.Answer(ctx, req, ref, answer)
}

// Cancel tells the task's agent.
func (a *A2AAgents) Cancel(ctx context.Context, req Request, ref TaskRef) error {
	tasks, err := a.of(req)
	if err != nil {
		return err
	}
	return tasks.Cancel(ctx, req, ref)
}

func (a *A2AAgents) of(req Request) (Tasks, error) {
	if tasks := a.Agents[strings.TrimSpace(req.AgentID)]; tasks != nil {
		return tasks, nil
	}
	if a.Default == nil {
		return nil, activities.Fail(problem.DelegateAgentNotFound, "agent %q is not one of the configured A2A agents", req.AgentID)
	}
	return a.Default, nil
}

// A2ADetect finds out by the agent's card which form it speaks: with a card the A2A protocol, without one the HTTP task
// form. What was found is kept.
type A2ADetect struct {
	rpc  *A2A
	http *A2AHTTP

	mu    sync.Mutex
	found Tasks
}

// NewA2ADetect checks the configuration. The error is *problem.Error with code A2A_CONFIG_INVALID.
func NewA2ADetect(c A2AConfig) (*A2ADetect, error) {
	rpc, err := NewA2A(c)
	if err != nil {
		return nil, err
	}
	form, err := NewA2AHTTP(c)
	if err != nil {
		return nil, err
	}
	return &A2ADetect{rpc: rpc, http: form}, nil
}

func (a *A2ADetect) form(ctx context.Context, req Request) (Tasks, error) {
	a.mu.Lock()
	found := a.found
	a.mu.Unlock()
	if found != nil {
		return found, nil
	}
	key, err := a.rpc.config.key(ctx, req)
	if err != nil {
		return nil, err
	}
	card, err := a.rpc.config.card(ctx, a.rpc.base, key)
	if err != nil {
		return nil, explain(ctx, req, err)
	}
	found = a.rpc
	if card == nil {
		found = a.http
	}
	a.mu.Lock()
	a.found = found
	a.mu.Unlock()
	return found, nil
}

// HasTask is always true.
func (a *A2ADetect) HasTask(Request) bool { return true }

// Delegate delegates in the form that the agent speaks.
func (a *A2ADetect) Delegate(ctx context.Context, req Request) (Result, error) {
	form, err := a.form(ctx, req)
	if err != nil {
		return Result{}, err
	}
	return form.Delegate(ctx, req)
}

// Send hands the task over in the form that the agent speaks.
func (a *A2ADetect) Send(ctx context.Context, req Request) (Task, error) {
	form, err := a.form(ctx, req)
	if err != nil {
		return Task{}, err
	}
	return form.Send(ctx, req)
}

// Poll asks in the form that the agent speaks.
func (a *A2ADetect) Poll(ctx context.Context, req Request, ref TaskRef) (Task, error) {
	form, err := a.form(ctx, req)
	if err != nil {
		return Task{}, err
	}
	return form.Poll(ctx, req, ref)
}

// Answer answers in the form that the agent speaks.
func (a *A2ADetect) Answer(ctx context.Context, req Request, ref TaskRef, answer map[string]any) (Task, error) {
	form, err := a.form(ctx, req)
	if err != nil {
		return Task{}, err
	}
	return form.Answer(ctx, req, ref, answer)
}

// Cancel ends the task in the form that the agent speaks.
func (a *A2ADetect) Cancel(ctx context.Context, req Request, ref TaskRef) error {
	form, err := a.form(ctx, req)
	if err != nil {
		return err
	}
	return form.Cancel(ctx, req, ref)
}

var (
	_ Tasks = (*A2AAgents)(nil)
	_ Tasks = (*A2ADetect)(nil)
)
