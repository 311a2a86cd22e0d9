package graph

import (
	"context"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/internal/run"
	"github.com/workflows-engine/workflows-engine/internal/wait"
)

// with calls f with the run locked, and dispatches what comes of it.
func (r *Runner) with(ctx context.Context, x *run.Run, f func(w *run.Work) error) error {
	var w run.Work
	err := locked(x, func() error { return f(&w) })
	r.dispatch(ctx, x, &w)
	return err
}

// first is with for what must not wait: behind others who want the run, or for what it computes.
func (r *Runner) first(ctx context.Context, x *run.Run, f func(w *run.Work) error) error {
	var w run.Work
	x.LockFirst()
	err := func() error { defer x.Unlock(); return f(&w) }()
	r.dispatch(ctx, x, &w)
	return err
}

// reading is with for a question: it does not wait for a run that computes. After until, unless that is zero, the answer is
// run.ErrBusy.
func (r *Runner) reading(ctx context.Context, x *run.Run, until time.Time, f func(x *run.Run, w *run.Work) error) error {
	var w run.Work
	x, err := r.runs.LockToRead(x, until)
	if err != nil {
		return err
	}
	err = func() error { defer x.Unlock(); return f(x, &w) }()
	r.dispatch(ctx, x, &w)
	return err
}

// locked calls f with the run locked.
func locked(x *run.Run, f func() error) error {
	x.Lock()
	defer x.Unlock()
	return f()
}

// withID is with for the run with an id.
func (r *Runner) withID(ctx context.Context, id string, f func(x *run.Run, w *run.Work) error) error {
	x := r.runs.Hold(id)
	defer r.runs.Drop(x)
	return r.with(ctx, x, func(w *run.Work) error { return f(x, w) })
}

// dispatch does what inputs have led to, after the run's lock has been given back: attempts are performed in the background,
// subworkflows that nobody waits for are cancelled, the parent is notified of the run's end. What fails or is cut short here
// is found again: a parent whose subworkflow has ended counts as an orphan, its owner looks after that too (run.Run.Look),
// and a subworkflow asks after its parent when it is next loaded.
func (r *Runner) dispatch(ctx context.Context, x *run.Run, w *run.Work) {
	r.runLog.Write(x.ID())
	r.records.Deliver(x.ID())
	if w.Changed {
		r.notifier.Changed(x.ID())
	}
	ctx = run.WithoutActor(ctx)
	w.Inherit(ctx)
	r.pool(x).Begin(w.Begin)
	ctx = detached(ctx)
	if r.inFlight.Draining() {
		_ = locked(x, func() error { x.HandOver(ctx); return nil })
	}
	r.performer.CancelTasks(x.ID(), w.DropTasks...)
	r.cancelChildren(ctx, x, w.CancelChildren)
	if parent := w.NotifyParent; parent != "" {
		r.persist(x, func() error { return r.notifyParent(ctx, x) }, func(err error) {
			r.log.Error("parent not notified", run.LogRun, parent, run.LogChild, x.ID(), run.LogError, err)
		})
	}
}

// retryPauses are left before something is recorded again after the store failed for a reason that may pass.
var retryPauses = []time.Duration{20 * time.Millisecond, 200 * time.Millisecond, time.Second}

// again waits before what has failed is done again; try is 0 for the first time. It is false if there is to be no other try.
func (r *Runner) again(try int) bool {
	return try < len(retryPauses) && wait.For(r.ctx, retryPauses[try]) == nil
}

// persist does something for a run, and tries again in the background while the store fails for a reason that may pass.
// failed is called if it was in vain.
func (r *Runner) persist(x *run.Run, do func() error, failed func(error)) {
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
func (r *Runner) background(x *run.Run, f func()) {
	r.runs.Retain(x)
	r.tasks.Go(func() {
		defer r.runs.Drop(x)
		f()
	})
}
