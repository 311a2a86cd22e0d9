package process

import (
	"context"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/internal/run"
	"github.com/workflows-engine/workflows-engine/graph/internal/work"
	"github.com/workflows-engine/workflows-engine/internal/guard"
	"github.com/workflows-engine/workflows-engine/internal/wait"
)

// With calls f with the run locked, and dispatches what comes of it.
func (p *Process) With(ctx context.Context, x *run.Run, f func(w *run.Work) error) error {
	var w run.Work
	err := locked(x, func() error { return f(&w) })
	p.dispatch(ctx, x, &w)
	return err
}

// First is With for what must not wait: behind others who want the run, or for what it computes.
func (p *Process) First(ctx context.Context, x *run.Run, f func(w *run.Work) error) error {
	var w run.Work
	x.LockFirst()
	err := func() error { defer x.Unlock(); return f(&w) }()
	p.dispatch(ctx, x, &w)
	return err
}

// reading is With for a question: it does not wait for a run that computes. After until, unless that is zero, the answer is
// run.ErrBusy.
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

// dispatch does what inputs have led to, after the run's lock has been given back: attempts are performed in the background,
// subworkflows that nobody waits for are cancelled, the parent is notified of the run's end. What fails or is cut short here
// is found again: a parent whose subworkflow has ended counts as an orphan, its owner looks after that too (run.Run.Look),
// and a subworkflow asks after its parent when it is next loaded.
func (p *Process) dispatch(ctx context.Context, x *run.Run, w *run.Work) {
	x.Tell(func(t run.Told) { p.told(x.ID(), t) })
	if w.Changed {
		p.notifier.Changed(x.ID())
	}
	ctx = run.WithoutActor(ctx)
	w.Inherit(ctx)
	p.pool(x).Begin(w.Begin)
	ctx = work.Detached(ctx)
	if p.Performer.InFlight.Draining() {
		_ = locked(x, func() error { x.HandOver(ctx); return nil })
	}
	p.Performer.CancelTasks(x.ID(), w.DropTasks...)
	p.cancelChildren(ctx, x, w.CancelChildren)
	if parent := w.NotifyParent; parent != "" {
		p.persist(x, func() error { return p.NotifyParent(ctx, x) }, func(err error) {
			p.Log.Error("parent not notified", run.LogRun, parent, run.LogChild, x.ID(), run.LogError, err)
		})
	}
}

// told writes the log lines of a commit and calls OnRecord.
func (p *Process) told(id string, t run.Told) {
	for _, line := range t.Lines {
		_ = p.Log.Handler().Handle(context.Background(), line) // as slog.Logger does
	}
	if hook := p.config.OnRecord; hook != nil {
		_ = guard.Call(p.Log.With(run.LogRun, id), "OnRecord", func() { hook(id, t.Records) })
	}
}

// retryPauses are left before something is recorded again after the store failed for a reason that may pass.
var retryPauses = []time.Duration{20 * time.Millisecond, 200 * time.Millisecond, time.Second}

// again waits before what has failed is done again; try is 0 for the first time. It is false if there is to be no other try.
func (p *Process) again(try int) bool {
	return try < len(retryPauses) && wait.For(p.Context, retryPauses[try]) == nil
}

// persist does something for a run, and tries again in the background while the store fails for a reason that may pass.
// failed is called if it was in vain.
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
