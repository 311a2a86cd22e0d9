package delegate

import (
	"context"
	"time"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/graph/problem"
)

const (
	// maxPollFailures is how many polls in a row may fail with a transient error before the delegation is given up. The task
	// runs at the agent meanwhile, so that one unlucky poll must not lose it.
	maxPollFailures = 3
	// pollAtOnce is the Task.PollAfter of a task that is polled without a pause.
	pollAtOnce = time.Millisecond
)

// delegate hands a task over and waits for its end. A poll that fails with a transient error is repeated; the third such
// failure in a row ends the attempt.
func (c *A2AConfig) delegate(ctx context.Context, x activities.Tasks, req activities.Request) (activities.Result, error) {
	waiting := ctx
	if c.PollTimeout > 0 {
		var stop context.CancelFunc
		waiting, stop = context.WithTimeout(ctx, c.PollTimeout)
		defer stop()
	}
	task, err := x.Send(ctx, req)
	for ref, failures := (activities.TaskRef{}), 0; err == nil; ref.Polls++ {
		switch task.State {
		case activities.TaskCompleted:
			return activities.Result{Output: task.Output, ExternalTaskID: task.ID, Usage: task.Usage}, nil
		case activities.TaskAsks:
			return activities.Result{}, activities.Fail(problem.A2AProviderError, "agent %q asks for input, which cannot be given here: %s", req.AgentID, task.Prompt)
		}
		ref.ID, ref.ContextID = task.ID, task.ContextID
		if req.Heartbeat != nil {
			req.Heartbeat(map[string]any{"externalTaskId": task.ID, "status": task.Status})
		}
		if task.PollAfter > pollAtOnce {
			err = c.Wait(waiting, task.PollAfter)
			ref.Waited += task.PollAfter
		}
		var next activities.Task
		if err == nil {
			next, err = x.Poll(waiting, req, ref)
		}
		switch {
		case err == nil:
			task, failures = next, 0
		case ctx.Err() == nil && waiting.Err() != nil:
			err = tooLate(ref, c.PollTimeout, task.Status)
		case ctx.Err() == nil && transient(err) && failures+1 < maxPollFailures:
			task.PollAfter, err = max(task.PollAfter, c.PollInterval), nil
			failures++
		}
	}
	return activities.Result{}, explain(ctx, req, err)
}

func tooLate(ref activities.TaskRef, limit time.Duration, status string) error {
	return activities.Fail(problem.A2AProviderError, "task %q did not end within %v; its last status was %q", ref.ID, limit, status)
}
