package graph

import (
	"context"
	"errors"

	"github.com/workflows-engine/workflows-engine/graph/internal/admit"
	"github.com/workflows-engine/workflows-engine/graph/internal/process"
	"github.com/workflows-engine/workflows-engine/graph/internal/run"
	"github.com/workflows-engine/workflows-engine/graph/internal/work"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// pool performs attempts of a run.
func (r *Runner) pool(x *run.Run) *work.Pool {
	return &work.Pool{
		Performer: r.performer, ExecutionID: x.ID(),
		Go: func(f func()) { r.background(x, f) },
		Hold: func() (drop func()) {
			r.runs.Retain(x)
			return func() { r.runs.Drop(x) }
		},
		Perform: func(a *work.Attempt) []*work.Attempt { return r.perform(x, a) },
		Exited: func(a *work.Attempt) []*work.Attempt {
			defer r.inFlight.End(a)
			return r.finish(x, a, r.performer.Exited(x.ID(), a))
		},
	}
}

// perform performs one attempt, records its outcome and returns the attempts that follow. After Close nothing new is begun.
func (r *Runner) perform(x *run.Run, a *work.Attempt) []*work.Attempt {
	if a.Context.Err() != nil {
		return nil
	}
	if !r.inFlight.Begin(x.ID(), a) {
		r.endAttempt(detached(r.ctx), x, a)
		return nil
	}
	var next []*work.Attempt
	if e, isChild := a.Effect.(*machine.ChildEffect); isChild {
		next = r.performChild(x, a, e)
	} else if in, ok := r.performer.Perform(x.ID(), a); !ok {
	} else if r.performer.LeftToOthers(x.ID(), a, in) {
		r.endAttempt(detached(r.ctx), x, a)
	} else {
		next = r.finish(x, a, in)
	}
	r.inFlight.End(a) // not deferred: an executor that ends its goroutine has not been seen to yet
	return next
}

// finish records the outcome of an attempt and returns the attempts that follow.
func (r *Runner) finish(x *run.Run, a *work.Attempt, in machine.Input) []*work.Attempt {
	ctx := detached(r.ctx)
	for try := 0; ; try++ {
		var w run.Work
		err := locked(x, func() error { return x.Finish(ctx, a, in, &w) })
		next := w.Begin
		w.Begin = nil
		r.dispatch(ctx, x, &w)
		switch {
		case err == nil:
			return next
		case errors.Is(err, work.ErrUnwanted):
			r.cancelUnwantedTask(x, a, in)
			return next
		case admit.IsRefusal(err):
			r.cancelUnwantedTask(x, a, in)
			r.log.Warn("outcome refused", run.LogRun, x.ID(), run.LogKey, a.Key, run.LogError, err)
			r.endAttempt(ctx, x, a)
			return next
		case r.again(try):
			r.pool(x).Begin(next)
		default:
			r.log.Error("outcome not recorded", run.LogRun, x.ID(), run.LogKey, a.Key, run.LogError, err)
			r.lose(x, err)
			return nil
		}
	}
}

// endAttempt ends an attempt without an outcome.
func (r *Runner) endAttempt(ctx context.Context, x *run.Run, a *work.Attempt) {
	err := r.with(ctx, x, func(w *run.Work) error { return x.EndAttempt(ctx, a, w) })
	if err != nil {
		r.log.Warn("run not looked after", run.LogRun, x.ID(), run.LogError, err)
	}
}

// lose stops driving a run whose store has failed for good.
func (r *Runner) lose(x *run.Run, err error) {
	cause := problem.New(problem.Internal, "the run cannot be recorded here any more").WithCause(err)
	_ = locked(x, func() error { x.Lose(cause); return nil })
}

// cancelUnwantedTask tells the agent of a task that turned out to be unwanted while the agent was asked.
func (r *Runner) cancelUnwantedTask(x *run.Run, a *work.Attempt, in machine.Input) {
	if cause := context.Cause(a.Context); cause == errClosed || cause == work.ErrLeaseLost {
		return
	}
	e := r.performer.UnwantedTask(a, in)
	if e == nil {
		return
	}
	x.Lock()
	awaited := x.AwaitsTask(in.(machine.TaskUpdate).TaskID)
	x.Unlock()
	if !awaited {
		r.performer.CancelTasks(x.ID(), e)
	}
}

// alive reports a sign of life of an executor to who waits for the run.
func (r *Runner) alive(h work.Heartbeat) {
	r.notifier.Report(process.Progress{
		ExecutionID: h.ExecutionID, NodeID: h.NodeID, Branch: h.Branch, Kind: process.ExecutorAlive, Attempt: h.Attempt, Detail: h.Details,
	})
}
