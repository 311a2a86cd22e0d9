package graph

import (
	"context"
	"errors"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/actor"
	"github.com/workflows-engine/workflows-engine/graph/admit"
	"github.com/workflows-engine/workflows-engine/graph/attempt"
	"github.com/workflows-engine/workflows-engine/graph/execution"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/perform"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/graph/recorded"
	"github.com/workflows-engine/workflows-engine/internal/wait"
)

// with calls f with the run locked, and dispatches what comes of it.
func (r *Runner) with(ctx context.Context, x *execution.Run, f func(w *execution.Work) error) error {
	var w execution.Work
	err := locked(x, func() error { return f(&w) })
	r.dispatch(ctx, x, &w)
	return err
}

// reading is with for a question: it does not wait for a run that computes.
func (r *Runner) reading(ctx context.Context, x *execution.Run, f func(x *execution.Run, w *execution.Work) error) error {
	var w execution.Work
	x = r.runs.LockToRead(x)
	err := func() error { defer x.Unlock(); return f(x, &w) }()
	r.dispatch(ctx, x, &w)
	return err
}

// locked calls f with the run locked.
func locked(x *execution.Run, f func() error) error {
	x.Lock()
	defer x.Unlock()
	return f()
}

// withID is with for the run with an id.
func (r *Runner) withID(ctx context.Context, id string, f func(x *execution.Run, w *execution.Work) error) error {
	x := r.runs.Hold(id)
	defer r.runs.Drop(x)
	return r.with(ctx, x, func(w *execution.Work) error { return f(x, w) })
}

// dispatch does what inputs have led to, after the run's lock has been given back: attempts are performed in the background,
// subworkflows that nobody waits for are cancelled, the parent is notified of the run's end. What fails or is cut short here
// is found again: a parent whose subworkflow has ended counts as an orphan, its owner looks after that too (execution.Run.Look),
// and a subworkflow asks after its parent when it is next loaded.
func (r *Runner) dispatch(ctx context.Context, x *execution.Run, w *execution.Work) {
	r.runLog.Write(x.ID())
	r.records.Deliver(x.ID())
	if w.Changed {
		r.notifier.Changed(x.ID())
	}
	ctx = actor.Without(ctx)
	w.Inherit(ctx)
	r.pool(x).Begin(w.Begin)
	ctx = detached(ctx)
	if r.inFlight.Draining() {
		_ = locked(x, func() error { x.HandOver(ctx); return nil })
	}
	r.cancelTasks(x.ID(), w.DropTasks)
	for _, child := range w.CancelChildren {
		r.persist(x, func() error { return r.cancelChild(ctx, child, x.ID()) }, func(err error) {
			r.log.Error("subworkflow not cancelled", execution.LogRun, x.ID(), execution.LogChild, child, execution.LogError, err)
		})
	}
	if parent := w.NotifyParent; parent != "" {
		r.persist(x, func() error { return r.notifyParent(ctx, x) }, func(err error) {
			r.log.Error("parent not notified", execution.LogRun, parent, execution.LogChild, x.ID(), execution.LogError, err)
		})
	}
}

// retryPauses are left before something is recorded again after the store failed for a reason that may pass.
var retryPauses = []time.Duration{20 * time.Millisecond, 200 * time.Millisecond, time.Second}

// again waits before something that has failed once more than after try others is tried again. It is false if it is not to be.
func (r *Runner) again(try int) bool {
	return try < len(retryPauses) && wait.For(r.ctx, retryPauses[try]) == nil
}

// persist does something for a run, and tries again in the background while the store fails for a reason that may pass.
// failed is called if it was in vain.
func (r *Runner) persist(x *execution.Run, do func() error, failed func(error)) {
	err := do()
	if err == nil {
		return
	}
	r.background(x, func() {
		for try := 0; err != nil && r.again(try); try++ {
			err = do()
		}
		if err != nil {
			failed(err)
		}
	})
}

// background calls f in a goroutine of its own, which holds the run.
func (r *Runner) background(x *execution.Run, f func()) {
	r.runs.Retain(x)
	r.tasks.Go(func() {
		defer r.runs.Drop(x)
		f()
	})
}

// pool performs attempts of a run.
func (r *Runner) pool(x *execution.Run) *perform.Pool {
	return &perform.Pool{
		Go: func(f func()) { r.background(x, f) },
		AwaitTurn: func(a *attempt.Attempt, begin func()) {
			r.runs.Retain(x)
			r.performer.AwaitTurn(x.ID(), a, begin, func() { r.runs.Drop(x) })
		},
		Immediate: func(a *attempt.Attempt) bool { return r.performer.Immediate(x.ID(), a) },
		Perform:   func(a *attempt.Attempt) []*attempt.Attempt { return r.perform(x, a) },
		Exited: func(a *attempt.Attempt) []*attempt.Attempt {
			defer r.inFlight.End(a)
			return r.finish(x, a, r.performer.Exited(x.ID(), a))
		},
	}
}

// perform performs one attempt, records its outcome and returns the attempts that follow. After Close nothing new is begun.
func (r *Runner) perform(x *execution.Run, a *attempt.Attempt) []*attempt.Attempt {
	if a.Context.Err() != nil {
		return nil
	}
	if !r.inFlight.Begin(x.ID(), a) {
		r.endAttempt(detached(r.ctx), x, a)
		return nil
	}
	var next []*attempt.Attempt
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
func (r *Runner) finish(x *execution.Run, a *attempt.Attempt, in machine.Input) []*attempt.Attempt {
	ctx := detached(r.ctx)
	for try := 0; ; try++ {
		var w execution.Work
		err := locked(x, func() error { return x.Finish(ctx, a, in, &w) })
		next := w.Begin
		w.Begin = nil
		r.dispatch(ctx, x, &w)
		switch {
		case err == nil:
			return next
		case errors.Is(err, attempt.ErrUnwanted):
			r.cancelUnwantedTask(x, a, in)
			return next
		case admit.IsRefusal(err):
			r.cancelUnwantedTask(x, a, in)
			r.log.Warn("outcome refused", execution.LogRun, x.ID(), execution.LogKey, a.Key, execution.LogError, err)
			r.endAttempt(ctx, x, a)
			return next
		case r.again(try):
			r.pool(x).Begin(next)
		default:
			r.log.Error("outcome not recorded", execution.LogRun, x.ID(), execution.LogKey, a.Key, execution.LogError, err)
			r.lose(x, err)
			return nil
		}
	}
}

// endAttempt ends an attempt without an outcome.
func (r *Runner) endAttempt(ctx context.Context, x *execution.Run, a *attempt.Attempt) {
	err := r.with(ctx, x, func(w *execution.Work) error { return x.EndAttempt(ctx, a, w) })
	if err != nil {
		r.log.Warn("run not looked after", execution.LogRun, x.ID(), execution.LogError, err)
	}
}

// lose stops driving a run whose store has failed for good.
func (r *Runner) lose(x *execution.Run, err error) {
	cause := problem.New(problem.Internal, "the run cannot be recorded here any more").WithCause(err)
	_ = locked(x, func() error { x.Lose(cause); return nil })
}

// cancelTasks tells agents, in the background, that nobody waits for their tasks any more.
func (r *Runner) cancelTasks(id string, dropped []*machine.DelegateEffect) {
	for _, e := range dropped {
		r.tasks.Go(func() {
			keep := func(ctx context.Context) (bool, error) { return recorded.KeepsTasks(ctx, r.store, id) }
			r.performer.CancelTask(detached(r.ctx), id, e, keep, r.pause)
		})
	}
}

// cancelUnwantedTask tells the agent of a task that turned out to be unwanted while the agent was asked.
func (r *Runner) cancelUnwantedTask(x *execution.Run, a *attempt.Attempt, in machine.Input) {
	if cause := context.Cause(a.Context); cause == errClosed || cause == attempt.ErrLeaseLost {
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
		r.cancelTasks(x.ID(), []*machine.DelegateEffect{e})
	}
}

// alive reports a sign of life of an executor to who waits for the run.
func (r *Runner) alive(h perform.Heartbeat) {
	r.notifier.Report(Progress{
		ExecutionID: h.ExecutionID, NodeID: h.NodeID, Branch: h.Branch, Kind: ExecutorAlive, Attempt: h.Attempt, Detail: h.Details,
	})
}
