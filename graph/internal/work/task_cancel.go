package work

import (
	"cmp"
	"context"
	"time"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/guard"
	"github.com/workflows-engine/workflows-engine/internal/wait"
)

// cancelTimeout bounds an agent's time to end a task; cancelPauses separate the requests.
const cancelTimeout = 5 * time.Second

var cancelPauses = []time.Duration{200 * time.Millisecond, time.Second}

// CancelTasks asks agents, in the background, to end unwanted tasks of a run.
func (p *Performer) CancelTasks(executionID string, tasks ...*machine.DelegateEffect) {
	for _, e := range tasks {
		p.Go(func() { p.cancelTask(executionID, e) })
	}
}

func (p *Performer) cancelTask(executionID string, e *machine.DelegateEffect) {
	log := p.Log.With(logRun, executionID, logKey, e.EffectKey, logTask, e.Task.ID)
	ctx, stop := context.WithTimeout(context.WithoutCancel(p.Context), cancelTimeout)
	defer stop()
	cancelled := false
	cancel := func() error {
		if keeps, err := p.Runs.KeepsTasks(ctx, executionID); err != nil || keeps {
			return err
		}
		var err error
		failed := guard.Call(log, "an executor that cancels a task", func() {
			tasks := p.tasks(e)
			if tasks == nil {
				err = activities.Fail(problem.ExecutorNotConfigured, "no executor configured for it")
				return
			}
			cancelled = true
			err = tasks.Cancel(ctx, p.delegateRequest(executionID, e), p.taskRef(e.Task))
		})
		return cmp.Or(failed, err)
	}
	err := cancel()
	for try := 0; err != nil && try < len(cancelPauses) && isTransient(err) && wait.For(p.Context, cancelPauses[try]) == nil; try++ {
		err = cancel()
	}
	switch {
	case err != nil:
		log.Warn("task at agent not cancelled", logError, err)
	case cancelled:
		log.Info("task at agent cancelled")
	default:
		log.Info("task left to its agent")
	}
}

// UnwantedTask returns the task in an outcome that is not wanted any more, because the run ended or continued meanwhile. It is nil
// without a task to cancel.
func (p *Performer) UnwantedTask(a *Attempt, in machine.Input) *machine.DelegateEffect {
	u, ok := in.(machine.TaskUpdate)
	if !ok || u.Failed {
		return nil
	}
	var e machine.DelegateEffect
	switch effect := a.Effect.(type) {
	case *machine.DelegateEffect:
		e = *effect
	case *machine.PollEffect:
		e = effect.DelegateEffect
	default:
		return nil
	}
	if e.Task == nil {
		e.Task = &machine.Task{ID: u.TaskID, Context: u.ContextID, Since: p.Now()}
	}
	return &e
}
