package work

import (
	"context"
	"fmt"
	"time"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/graph/view"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// Delegations are performed like other activities, unless their executor uses tasks (activities.Tasks). Then the attempt in flight ends when the
// agent has accepted the task, and each poll is an effect of its own, started by a timer. A poll changes nothing at the agent, so it
// needs no ownership of the run.

// delegate sends a delegation's input, or an answer, to its agent.
func (p *Performer) delegate(ctx context.Context, executionID string, a *Attempt, e *machine.DelegateEffect) (in machine.Input) {
	defer p.recoverExecutor(executionID, e, &in)
	req, can := a.watched(p.delegateRequest(executionID, e)), p.capabilitiesFor(a)
	switch {
	case p.Delegates == nil || e.Task == nil && (can.Work != nil || can.Tasks == nil):
		return p.call(ctx, executionID, a, e.Journal, req, can)
	case can.Tasks == nil:
		return keyed(e, noTasks(e))
	case e.Task != nil:
		req.IdempotencyKey = fmt.Sprintf("%s/%d", req.IdempotencyKey, e.Task.Round)
		task, err := can.Tasks.Answer(ctx, req, p.taskRef(e.Task), copyOf(e.Task.Answer))
		if task.ID == "" {
			task.ID, task.ContextID = e.Task.ID, e.Task.Context
		}
		return p.taken(ctx, e, task, err)
	}
	task, err := can.Tasks.Send(ctx, req)
	if err == nil && task.ID == "" && task.State != activities.TaskCompleted {
		err = activities.Fail(problem.DelegateProtocolError, "agent %q accepted the task without an id", e.AgentID)
	}
	return p.taken(ctx, e, task, err)
}

func (p *Performer) delegateRequest(executionID string, e *machine.DelegateEffect) activities.Request {
	return activities.Request{
		ExecutionID: executionID, NodeID: e.NodeID, NodeType: delegateType, AgentID: e.AgentID, Protocol: e.Protocol, Input: copyOf(e.Input),
		Metadata: jsonvalue.CloneMap(e.Metadata), CorrelationID: e.CorrelationID, IdempotencyKey: view.Key(executionID, e.EffectKey),
		Visit: e.Visit, Attempt: e.Attempt, RequestedAt: e.Requested, Deadline: e.Deadline, Silence: e.Heartbeat,
		State: func() map[string]any { return copyOf(e.State) }, Heartbeat: p.heartbeat(executionID, &e.EffectBase),
	}
}

// tasks returns the executor of a delegation's tasks, or nil.
func (p *Performer) tasks(e *machine.DelegateEffect) activities.Tasks {
	can, _ := p.capabilities(effectNode(e))
	return can.Tasks
}

func (p *Performer) taskRef(k *machine.Task) activities.TaskRef {
	return activities.TaskRef{ID: k.ID, ContextID: k.Context, Polls: k.Polls, Waited: p.Now().Sub(k.Since), Asks: k.Asks}
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
		Error: fmt.Sprintf("the executor for protocol %q does not support tasks, and agent %q works on task %q", e.Protocol, e.AgentID, e.Task.ID),
	}
}

// taken returns the input for an agent's response to a task or an answer.
func (p *Performer) taken(ctx context.Context, e *machine.DelegateEffect, task activities.Task, err error) machine.Input {
	if err != nil {
		return keyed(e, failedOutcome(ctx, err))
	}
	return p.taskInput(e, task, 0)
}

// taskInput returns the input for the state of a task; polls counts the polls without a change.
func (p *Performer) taskInput(e *machine.DelegateEffect, task activities.Task, polls int) machine.Input {
	if task.State == activities.TaskCompleted {
		out := p.outcome(task.Output, task.Usage)
		out.ExternalTaskID = task.ID
		return keyed(e, out)
	}
	u := machine.TaskUpdate{Key: e.EffectKey, TaskID: task.ID, ContextID: task.ContextID}
	after := task.PollAfter
	if task.State == activities.TaskAsks {
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

// maxTaskPrompt bounds an agent's question, in characters.
const maxTaskPrompt = 4000

// The default pauses between two polls of a task, the first and the longest. A task that asks is polled too, since it may continue
// without an answer.
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
