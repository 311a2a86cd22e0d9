package graph

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/delegate"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// Delegates are performed like activities, unless their executor works with tasks (delegate.Tasks): then the flight ends
// as soon as the agent has taken the task, and polls of it are flights of their own, begun by a timer. A poll changes
// nothing at the agent, so it needs no lease.

// delegate hands a delegate's input to its agent, or delivers an answer to it.
func (r *Runner) delegate(ctx context.Context, x *run, f *flight, e *machine.DelegateEffect) (in machine.Input) {
	if r.opts.Delegates == nil {
		return keyed(e, failedOutcome(ctx, delegate.NotConfigured(e.Protocol, e.NodeID)))
	}
	defer r.recoveredDelegate(x, e, &in)
	req := *r.delegateRequest(x, f, e)
	tasks, _ := r.opts.Delegates.(delegate.Tasks)
	switch {
	case e.Task != nil:
		if tasks == nil {
			return keyed(e, noTasks(e))
		}
		req.IdempotencyKey = fmt.Sprintf("%s/%d", req.IdempotencyKey, e.Task.Round)
		task, err := tasks.Answer(ctx, req, r.taskRef(e.Task), copyState(e.Task.Answer))
		if task.ID == "" {
			task.ID, task.ContextID = e.Task.ID, e.Task.Context
		}
		return r.taken(ctx, e, task, err)
	case tasks != nil && tasks.HasTask(req):
		task, err := tasks.Send(ctx, req)
		if err == nil && task.ID == "" && task.State != delegate.TaskCompleted {
			err = activities.Fail(problem.DelegateProtocolError, "agent %q has taken the task without giving it an id", e.AgentID)
		}
		return r.taken(ctx, e, task, err)
	}
	res, err := r.opts.Delegates.Delegate(ctx, req)
	if err != nil {
		return keyed(e, failedOutcome(ctx, err))
	}
	out := r.outcome(res.Output, res.Usage)
	out.ExternalTaskID = res.ExternalTaskID
	return keyed(e, out)
}

func keyed(e *machine.DelegateEffect, out machine.Outcome) machine.Outcome {
	out.Key = e.EffectKey
	return out
}

func noTasks(e *machine.DelegateEffect) machine.Outcome {
	return refusedOutcome(problem.DelegateProtocolUnsupported,
		"what is configured for protocol %q does not serve tasks, and agent %q works on task %q", e.Protocol, e.AgentID, e.Task.ID)
}

// taken makes an input of what an agent said when it was handed a task or an answer.
func (r *Runner) taken(ctx context.Context, e *machine.DelegateEffect, task delegate.Task, err error) machine.Input {
	if err != nil {
		return keyed(e, failedOutcome(ctx, err))
	}
	return r.taskInput(e, task, 0)
}

// taskInput makes an input of how a task stands; polls is how often it was looked at without a change.
func (r *Runner) taskInput(e *machine.DelegateEffect, task delegate.Task, polls int) machine.Input {
	if task.State == delegate.TaskCompleted {
		out := r.outcome(task.Output, task.Usage)
		out.ExternalTaskID = task.ID
		return keyed(e, out)
	}
	u := machine.TaskUpdate{Key: e.EffectKey, TaskID: task.ID, ContextID: task.ContextID}
	after := task.PollAfter
	if task.State == delegate.TaskAsks {
		u.Asks, u.Prompt = true, firstRunes(task.Prompt, maxTaskPrompt)
		if u.Prompt == "" {
			u.Prompt = "The agent asks for input, without saying what for."
		}
		if after <= 0 {
			after = growing(askedPollPause, polls, maxAskedPollPause)
		}
	}
	if after <= 0 {
		after = growing(pollPause, polls, maxPollPause)
	}
	u.PollAt = r.now().Add(after)
	return u
}

// maxTaskPrompt is how many characters of an agent's question are kept.
const maxTaskPrompt = 4000

// The pauses between two polls of a task, where its executor leaves them to the engine: at first, and at most. An agent
// that asks is looked at too, since it may go on without an answer.
const (
	pollPause         = 500 * time.Millisecond
	maxPollPause      = 15 * time.Second
	askedPollPause    = 2 * time.Second
	maxAskedPollPause = 5 * time.Minute
)

// maxPollFailures is how many polls in a row may fail in a way that may pass before the attempt fails. With the pauses
// between them that takes about two minutes.
const maxPollFailures = 10

// growing doubles a pause n times, up to a bound.
func growing(pause time.Duration, n int, most time.Duration) time.Duration {
	for ; n > 0 && pause < most; n-- {
		pause *= 2
	}
	return min(pause, most)
}

// poll looks how a task stands at its agent.
func (r *Runner) poll(ctx context.Context, x *run, f *flight, p *machine.PollEffect) (in machine.Input) {
	e := &p.DelegateEffect
	defer r.recoveredDelegate(x, e, &in)
	tasks, ok := r.opts.Delegates.(delegate.Tasks)
	if !ok {
		return keyed(e, noTasks(e))
	}
	task, err := tasks.Poll(ctx, *r.delegateRequest(x, f, e), r.taskRef(e.Task))
	if err != nil {
		return r.pollFailed(ctx, x, f, e, err)
	}
	if task.ID == "" {
		task.ID, task.ContextID = e.Task.ID, e.Task.Context
	}
	polls := e.Task.Polls + 1
	if (task.State == delegate.TaskAsks) != e.Task.Asks {
		polls = 0
	}
	in = r.taskInput(e, task, polls)
	if u, ok := in.(machine.TaskUpdate); ok {
		u.Polled, u.Round = true, e.Task.Round
		return u
	}
	return in
}

// pollFailed decides whether a poll that failed is repeated or ends the attempt, of which the agent is told.
func (r *Runner) pollFailed(ctx context.Context, x *run, f *flight, e *machine.DelegateEffect, err error) machine.Input {
	if mayPass(err) && e.Task.Failures+1 < maxPollFailures {
		pause := growing(max(e.Task.Pause, time.Millisecond), e.Task.Failures, max(e.Task.Pause, 2*maxPollPause))
		if fail, ok := errors.AsType[*activities.Failure](err); ok {
			pause = max(pause, fail.RetryAfter)
		}
		r.log.Info("task not polled", logRun, x.id, logKey, e.EffectKey, logTask, e.Task.ID, logError, err)
		return machine.TaskUpdate{
			Key: e.EffectKey, Polled: true, Round: e.Task.Round, Failed: true, PollAt: r.now().Add(pause),
		}
	}
	out := keyed(e, failedOutcome(ctx, err))
	if f.ctx.Err() == nil && out.Code != string(problem.A2ATaskFailed) {
		r.tellAgents(x, []*machine.DelegateEffect{e}) // it may still work on it
	}
	return out
}

// mayPass reports whether asking an agent again may help.
func mayPass(err error) bool {
	fail, coded := errors.AsType[*activities.Failure](err)
	return !coded || fail.Retryable == activities.RetrySensible
}

func (r *Runner) taskRef(k *machine.Task) delegate.TaskRef {
	return delegate.TaskRef{ID: k.ID, ContextID: k.Context, Polls: k.Polls, Waited: r.now().Sub(k.Since), Asks: k.Asks}
}

func (r *Runner) delegateRequest(x *run, f *flight, e *machine.DelegateEffect) *delegate.Request {
	if f.delegate == nil {
		f.delegate = r.makeDelegateRequest(x, e)
	}
	return f.delegate
}

func (r *Runner) makeDelegateRequest(x *run, e *machine.DelegateEffect) *delegate.Request {
	return &delegate.Request{
		ExecutionID: x.id, NodeID: e.NodeID, AgentID: e.AgentID, Protocol: e.Protocol, Input: copyState(e.Input),
		CorrelationID: e.CorrelationID, IdempotencyKey: idempotencyKey(x.id, e.EffectKey), Visit: e.Visit,
		Attempt: e.Attempt, Deadline: e.Deadline, State: func() map[string]any { return copyState(e.State) },
		Heartbeat: r.heartbeat(x, &e.EffectBase),
	}
}

// recoveredDelegate turns an executor's panic into a failed attempt.
func (r *Runner) recoveredDelegate(x *run, e *machine.DelegateEffect, in *machine.Input) {
	out := machine.Outcome{}
	if v := recover(); v != nil {
		r.panicked(x, &e.EffectBase, v, &out)
		*in = keyed(e, out)
	}
}

// cancelTimeout bounds how long an agent may take to hear that a task is not wanted any more; cancelPauses are left
// before it is told again.
const cancelTimeout = 5 * time.Second

var cancelPauses = []time.Duration{200 * time.Millisecond, time.Second}

// tellAgents tells agents, in the background, that nobody waits for their tasks any more.
func (r *Runner) tellAgents(x *run, dropped []*machine.DelegateEffect) {
	for _, e := range dropped {
		r.tasks.Go(func() { r.tellAgent(x, e) })
	}
}

// tellAgent asks the stored run before, since it may have been ended by another process: one that keeps its tasks has
// them elsewhere.
func (r *Runner) tellAgent(x *run, e *machine.DelegateEffect) {
	defer func() {
		if v := recover(); v != nil {
			r.log.Error("executor panicked", logRun, x.id, logKey, e.EffectKey, logError, v)
		}
	}()
	ctx, stop := context.WithTimeout(lasting(r.ctx), cancelTimeout)
	defer stop()
	told := false
	tell := func() error {
		keep, err := r.keepsTasks(ctx, x.id)
		if err != nil || keep {
			return err
		}
		tasks, ok := r.opts.Delegates.(delegate.Tasks)
		if !ok {
			return activities.Fail(problem.ExecutorNotConfigured, "nothing is configured for it here")
		}
		told = true
		return tasks.Cancel(ctx, *r.makeDelegateRequest(x, e), r.taskRef(e.Task))
	}
	err := tell()
	for try := 0; err != nil && try < len(cancelPauses) && mayPass(err) && r.pause(cancelPauses[try]); try++ {
		err = tell()
	}
	switch {
	case err != nil:
		r.log.Warn("agent not told that its task is not wanted any more", logRun, x.id, logKey, e.EffectKey, logTask, e.Task.ID, logError, err)
	case told:
		r.log.Info("agent told that its task is not wanted any more", logRun, x.id, logKey, e.EffectKey, logTask, e.Task.ID)
	default:
		r.log.Info("task left to its agent", logRun, x.id, logKey, e.EffectKey, logTask, e.Task.ID)
	}
}

// tellUnwanted tells the agent of a task that turned out to run for nobody: the run ended, or went on, while the agent
// was asked.
func (r *Runner) tellUnwanted(x *run, f *flight, in machine.Input) {
	u, ok := in.(machine.TaskUpdate)
	if !ok || u.Failed {
		return
	}
	if cause := context.Cause(f.ctx); cause == errClosed || cause == errDeposed {
		return
	}
	var e machine.DelegateEffect
	switch effect := f.effect.(type) {
	case *machine.DelegateEffect:
		e = *effect
	case *machine.PollEffect:
		e = effect.DelegateEffect
	default:
		return
	}
	x.mu.Lock()
	wanted := x.m == nil && !x.ended() || x.m != nil && x.knowsTask(u.TaskID)
	x.mu.Unlock()
	if wanted {
		return
	}
	if e.Task == nil {
		e.Task = &machine.Task{ID: u.TaskID, Context: u.ContextID, Since: r.now()}
	}
	r.tellAgents(x, []*machine.DelegateEffect{&e})
}

// knowsTask reports whether the run waits for a task.
func (x *run) knowsTask(id string) bool {
	for _, w := range x.m.Pending() {
		if w.Task != nil && w.Task.ID == id {
			return true
		}
	}
	return false
}

// answerSchema is the schema of the answer to an agent's question: an object that says something.
func answerSchema() map[string]any {
	return map[string]any{
		"type": "object", "minProperties": 1.0,
		"properties": map[string]any{
			"text": map[string]any{"type": "string", "description": "The answer in words; other members go to the agent as data."},
		},
	}
}

// firstRunes cuts text to at most n characters, with a mark where something was cut.
func firstRunes(text string, n int) string {
	for i := range text {
		if n--; n < 0 {
			return text[:i] + "…"
		}
	}
	return text
}
