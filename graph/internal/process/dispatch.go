package process

import (
	"context"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/internal/run"
	"github.com/workflows-engine/workflows-engine/graph/internal/work"
	"github.com/workflows-engine/workflows-engine/internal/guard"
	"github.com/workflows-engine/workflows-engine/internal/wait"
)

// With calls f with the run locked, then dispatches the work.
func (p *Process) With(ctx context.Context, x *run.Run, f func(w *run.Work) error) error {
	var w run.Work
	err := locked(x, func() error { return f(&w) })
	p.dispatch(ctx, x, &w)
	return err
}

// First is With before all other waiters. It makes a long computation of the run stop.
func (p *Process) First(ctx context.Context, x *run.Run, f func(w *run.Work) error) error {
	var w run.Work
	x.LockFirst()
	err := func() error { defer x.Unlock(); return f(&w) }()
	p.dispatch(ctx, x, &w)
	return err
}

// reading is With for a question: it does not wait for a run that computes. After until, unless that is zero, it returns run.ErrBusy.
func (p *Process) reading(ctx context.Context, x *run.Run, until time.Time, f func(x *run.Run, w *run.Work) error) error {
	var w run.Work
	x, err := p.Runs.LockToRead(x, until)
	if err != nil {
		return err
	}
	err = func() error { defer x.Unlock(); return f(x, &w) }()
	p.dispatch(ctx, x, &w)
	return err
}

// locked calls f with the run locked.
func locked(x *run.Run, f func() error) error {
	x.Lock()
	defer x.Unlock()
	return f()
}

// WithID is With for the run with an id.
func (p *Process) WithID(ctx context.Context, id string, f func(x *run.Run, w *run.Work) error) error {
	x := p.Runs.Hold(id)
	defer p.Runs.Drop(x)
	return p.With(ctx, x, func(w *run.Work) error { return f(x, w) })
}

// dispatch follows inputs after the run was unlocked: it begins attempts in the background, cancels unwanted subworkflows and notifies
// the parent of the run's end. A part that fails or is interrupted is found again: a parent whose subworkflow has ended counts as an
// orphan, and its owner checks for that too (run.Run.Look); a subworkflow checks its parent when it is next loaded.
func (p *Process) dispatch(ctx context.Context, x *run.Run, w *run.Work) {
	x.Tell(func(n run.News) { p.publish(x.ID(), n) })
	if w.Changed {
		p.notifier.Changed(x.ID())
	}
	ctx = run.WithoutActor(ctx)
	w.Inherit(ctx)
	p.pool(x).Begin(w.Begin)
	ctx = work.Detached(ctx)
	p.Performer.CancelTasks(x.ID(), w.DropTasks...)
	p.cancelChildren(ctx, x, w.CancelChildren)
	if parent := w.NotifyParent; parent != "" {
		p.persist(x, func() error { return p.NotifyParent(ctx, x) }, func(err error) {
			p.Log.Error("parent not notified", run.LogRun, parent, run.LogChild, x.ID(), run.LogError, err)
		})
	}
}

// publish writes the log lines of a commit and calls OnRecord.
func (p *Process) publish(id string, n run.News) {
	for _, line := range n.Lines {
		_ = p.Log.Handler().Handle(context.Background(), line) // as slog.Logger does
	}
	if hook := p.config.OnRecord; hook != nil {
		_ = guard.Call(p.Log.With(run.LogRun, id), "OnRecord", func() { hook(id, n.Records) })
	}
}

// retryPauses are the pauses between attempts to record something while the store fails. Together they are shorter than a lease.
var retryPauses = []time.Duration{20 * time.Millisecond, 200 * time.Millisecond, time.Second, 5 * time.Second, 15 * time.Second}

// again waits before a retry; try is 0 for the first one. It is false after the last try.
func (p *Process) again(try int) bool {
	return try < len(retryPauses) && wait.For(p.Context, retryPauses[try]) == nil
}

// persist calls do, and retries in the background while the store fails. It calls failed after the last try.
func (p *Process) persist(x *run.Run, do func() error, failed func(error)) {
	err := do()
	if err == nil {
		return
	}
	p.background(x, func() {
		for try := 0; err != nil && p.again(try); try++ {
			err = do()
		}
		if err != nil {
			failed(err)
		}
	})
}

// background calls f in a goroutine of its own, which holds the run.
func (p *Process) background(x *run.Run, f func()) {
	p.Runs.Retain(x)
	p.Go(func() {
		defer p.Runs.Drop(x)
		f()
	})
}
