package work

import (
	"context"
	"errors"
	"time"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// maxPollFailures is the number of consecutive transient failures of polls after which the attempt fails. With the pauses that takes
// about two minutes.
const maxPollFailures = 10

// poll asks an agent for the state of a task.
func (p *Performer) poll(ctx context.Context, executionID string, a *Attempt, poll *machine.PollEffect) (in machine.Input) {
	e := &poll.DelegateEffect
	defer p.recoverExecutor(executionID, e, &in)
	tasks := p.tasks(e)
	if tasks == nil {
		return keyed(e, noTasks(e))
	}
	task, err := tasks.Poll(ctx, p.delegateRequest(executionID, e), p.taskRef(e.Task))
	if err != nil {
		return p.pollFailed(ctx, executionID, a, e, err)
	}
	if task.ID == "" {
		task.ID, task.ContextID = e.Task.ID, e.Task.Context
	}
	polls := e.Task.Polls + 1
	if (task.State == activities.TaskAsks) != e.Task.Asks {
		polls = 0
	}
	in = p.taskInput(e, task, polls)
	if u, ok := in.(machine.TaskUpdate); ok {
		u.Polled, u.Round = true, e.Task.Round
		return u
	}
	return in
}

// pollFailed decides whether a failed poll is repeated or ends the attempt.
func (p *Performer) pollFailed(ctx context.Context, executionID string, a *Attempt, e *machine.DelegateEffect, err error) machine.Input {
	if isTransient(err) && e.Task.Failures+1 < maxPollFailures {
		pause := backOff(max(e.Task.Pause, time.Millisecond), e.Task.Failures, max(e.Task.Pause, 2*maxPollPause))
		if fail, ok := errors.AsType[*activities.Failure](err); ok {
			pause = max(pause, fail.RetryAfter)
		}
		p.Log.Info("task not polled", logRun, executionID, logKey, e.EffectKey, logTask, e.Task.ID, logError, err)
		return machine.TaskUpdate{
			Key: e.EffectKey, Polled: true, Round: e.Task.Round, Failed: true, PollAt: p.Now().Add(pause),
		}
	}
	out := keyed(e, failedOutcome(ctx, err))
	if a.Context.Err() == nil && out.Code != string(problem.A2ATaskFailed) {
		p.CancelTasks(executionID, e) // the agent may still work on it
	}
	return out
}

// isTransient reports whether a repeated request to an agent may succeed.
func isTransient(err error) bool {
	fail, coded := errors.AsType[*activities.Failure](err)
	return !coded || fail.Retryable == activities.RetrySensible
}
