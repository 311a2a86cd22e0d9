package work

import (
	"context"
	"fmt"
	"time"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/delegate"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/graph/view"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// Delegates are performed like activities, unless their executor works with tasks (delegate.Tasks): then the attempt in flight ends
// as soon as the agent has taken the task, and each poll of it is an effect of its own, begun by a timer. A poll changes nothing at
// the agent, so it needs no ownership of the run.

// delegate hands a delegate's input to its agent, or delivers an answer to it.
func (p *Performer) delegate(ctx context.Context, executionID string, a *Attempt, e *machine.DelegateEffect) (in machine.Input) {
	if p.Delegates == nil {
		return keyed(e, failedOutcome(ctx, delegate.NotConfigured(e.Protocol, e.NodeID, settingDelegates)))
	}
	defer p.recoverExecutor(executionID, e, &in)
	req := p.delegateRequest(executionID, e)
	tasks, _ := p.Delegates.(delegate.Tasks)
	journaled, _ := p.Delegates.(delegate.Journaled)
	switch {
	case e.Task != nil:
		if tasks == nil {
			return keyed(e, noTasks(e))
		}
		req.IdempotencyKey = fmt.Sprintf("%s/%d", req.IdempotencyKey, e.Task.Round)
		task, err := tasks.Answer(ctx, req, p.taskRef(e.Task), copyOf(e.Task.Answer))
		if task.ID == "" {
			task.ID, task.ContextID = e.Task.ID, e.Task.Context
		}
		return p.taken(ctx, e, task, err)
	case journaled != nil && journaled.Journals(req):
		return p.journaled(ctx, executionID, a, e.Journal, func(ctx context.Context, j activities.Journal) (activities.End, error) {
			return journaled.Work(ctx, req, j)
		})
	case tasks != nil && tasks.HasTask(req):
		task, err := tasks.Send(ctx, req)
		if err == nil && task.ID == "" && task.State != delegate.TaskCompleted {
			err = activities.Fail(problem.DelegateProtocolError, "agent %q has taken the task without giving it an id", e.AgentID)
		}
		return p.taken(ctx, e, task, err)
	}
	res, err := p.Delegates.Delegate(ctx, req)
	if err != nil {
		return keyed(e, failedOutcome(ctx, err))
	}
	out := p.outcome(res.Output, res.Usage)
	out.ExternalTaskID = res.ExternalTaskID
	return keyed(e, out)
}

func (p *Performer) delegateRequest(executionID string, e *machine.DelegateEffect) delegate.Request {
	return delegate.Request{
		ExecutionID: executionID, NodeID: e.NodeID, AgentID: e.AgentID, Protocol: e.Protocol, Input: copyOf(e.Input), Metadata: jsonvalue.CloneMap(e.Metadata),
		CorrelationID: e.CorrelationID, IdempotencyKey: view.Key(executionID, e.EffectKey), Visit: e.Visit,
		Attempt: e.Attempt, Deadline: e.Deadline, State: func() map[string]any { return copyOf(e.State) },
		Heartbeat: p.heartbeat(executionID, &e.EffectBase),
	}
}

func (p *Performer) taskRef(k *machine.Task) delegate.TaskRef {
	return delegate.TaskRef{ID: k.ID, ContextID: k.Context, Polls: k.Polls, Waited: p.Now().Sub(k.Since), Asks: k.Asks}
}

// recoverExecutor turns an executor's panic into a failed attempt.
func (p *Performer) recoverExecutor(executionID string, e machine.Effect, in *machine.Input) {
	if v := recover(); v != nil {
		*in = keyed(e, p.panicked(executionID, e.Base().EffectKey, v))
	}
}

func keyed(e machine.Effect, out machine.Outcome) machine.Outcome {
	out.Key = e.Base().EffectKey
	return out
}

func noTasks(e *machine.DelegateEffect) machine.Outcome {
	return machine.Outcome{
		Code: string(problem.DelegateProtocolUnsupported), Final: true,
		Error: fmt.Sprintf("what is configured for protocol %q does not serve tasks, and agent %q works on task %q", e.Protocol, e.AgentID, e.Task.ID),
	}
}

// taken makes an input of what an agent said when it was handed a task or an answer.
func (p *Performer) taken(ctx context.Context, e *machine.DelegateEffect, task delegate.Task, err error) machine.Input {
	if err != nil {
		return keyed(e, failedOutcome(ctx, err))
	}
	return p.taskInput(e, task, 0)
}

// taskInput makes an input of how a task stands; polls is how often it was polled without a change.
func (p *Performer) taskInput(e *machine.DelegateEffect, task delegate.Task, polls int) machine.Input {
	if task.State == delegate.TaskCompleted {
		out := p.outcome(task.Output, task.Usage)
		out.ExternalTaskID = task.ID
		return keyed(e, out)
	}
	u := machine.TaskUpdate{Key: e.EffectKey, TaskID: task.ID, ContextID: task.ContextID}
	after := task.PollAfter
	if task.State == delegate.TaskAsks {
		u.Asks, u.Prompt = true, problem.ClipRunes(task.Prompt, maxTaskPrompt)
		if u.Prompt == "" {
			u.Prompt = "The agent asks for input, without saying what for."
		}
		if after <= 0 {
			after = backOff(askedPollPause, polls, maxAskedPollPause)
		}
	}
	if after <= 0 {
		after = backOff(pollPause, polls, maxPollPause)
	}
	u.PollAt = p.Now().Add(after)
	return u
}

// maxTaskPrompt is how many characters of an agent's question are kept.
const maxTaskPrompt = 4000

// The pauses between two polls of a task, where its executor leaves them to the engine: at first, and at most. An agent
// that asks is polled too, since it may go on without an answer.
const (
	pollPause         = 500 * time.Millisecond
	maxPollPause      = 15 * time.Second
	askedPollPause    = 2 * time.Second
	maxAskedPollPause = 5 * time.Minute
)

// backOff doubles a pause n times, up to a bound.
func backOff(pause time.Duration, n int, most time.Duration) time.Duration {
	for ; n > 0 && pause < most; n-- {
		pause *= 2
	}
	return min(pause, most)
}
