package process

import (
	"context"
	"errors"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/internal/run"
	"github.com/workflows-engine/workflows-engine/graph/internal/work"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
)

// runProcess is the Process as its runs see it.
type runProcess struct{ p *Process }

func (r runProcess) Hold(ctx context.Context) (string, error) { return r.p.lease.Hold(ctx) }

func (r runProcess) Alive(process string) context.Context { return r.p.lease.Alive(process) }

// Owns makes the table keep an owned run: a second *Run with the same id would repeat all attempts.
func (r runProcess) Owns(x *run.Run, process string, owns bool) {
	if owns {
		r.p.Runs.Retain(x)
	}
	r.p.lease.Owns(x, process, owns)
	if !owns {
		r.p.Runs.Drop(x)
	}
}

func (r runProcess) PresentSince() time.Time { return r.p.presence.Since(r.p.Now()) }

func (r runProcess) Recorded(x *run.Run, records []history.Record) {
	r.p.notifier.Recorded(x.ID(), x.Seq(), x.Machine().Visits(), records)
}

func (r runProcess) Changed(x *run.Run) { r.p.notifier.Changed(x.ID()) }

func (r runProcess) Timers(x *run.Run, ts []machine.Timer) { r.p.timers.Set(x, ts) }

// driver drives the runs that a Lease, a Queue or a Search finds. The Process implements it.
type driver interface {
	// look is called from time to time for an owned run; see run.Run.Look.
	look(x *run.Run, seq int64)
	// loseLease is called for an owned run when the lease of its owner's name is lost.
	loseLease(x *run.Run, process string)
	// takeBack is called for a run that the process owns in the store, but does not drive.
	takeBack(executionID, process string)
	// takeOrphan claims one orphaned run, and reports whether it did.
	takeOrphan(ctx context.Context, executionID string) (took bool, err error)
	// takeReady continues a ready run that the process has claimed. r is the run as the claim has read it, zero if it has not.
	takeReady(executionID, process string, r history.ReadyRun)
	// giveAway gives a run away that waits here, if that is still possible.
	giveAway(executionID string)
	// reconsider looks up, in the background, the unknown workflows of runs that were left to others. The returned function waits for
	// that, and reports whether a workflow has become known.
	reconsider(ctx context.Context) (learned func() bool)
	// fire is called, in a goroutine of its own, for a due timer.
	fire(Timer)
}

func (p *Process) reconsider(ctx context.Context) (learned func() bool) {
	return p.Library.Reconsider(ctx, p.Go)
}

func (p *Process) loseLease(x *run.Run, process string) {
	x.Lock()
	defer x.Unlock()
	x.LoseLease(process)
}

// look checks a run that this process owns.
func (p *Process) look(x *run.Run, seq int64) {
	p.Runs.Retain(x)
	defer p.Runs.Drop(x)
	ctx := work.Detached(p.Context)
	err := p.With(ctx, x, func(w *run.Work) error { return x.Look(ctx, seq, w) })
	if err != nil {
		p.Log.Warn("check of owned run failed", run.LogRun, x.ID(), run.LogError, err)
	}
}

// takeBack continues a run that this process owns only in the store.
func (p *Process) takeBack(id, process string) {
	ctx := work.Detached(p.Context)
	err := p.WithID(ctx, id, func(x *run.Run, w *run.Work) error { return x.TakeBack(ctx, process, w) })
	if err != nil && !errors.Is(err, problem.ExecutorNotConfigured) {
		p.Log.Warn("run not reclaimed", run.LogRun, id, run.LogError, err)
	}
}

// takeReady continues a ready run that this process has claimed.
func (p *Process) takeReady(id, process string, r history.ReadyRun) {
	ctx := work.Detached(p.Context)
	if err := p.WithID(ctx, id, func(x *run.Run, w *run.Work) error { return x.TakeReady(ctx, process, &r, w) }); err != nil {
		p.Log.Warn("ready run not continued", run.LogRun, id, run.LogError, err)
	}
}

// giveAway gives a run away that waits here, if that is still possible.
func (p *Process) giveAway(id string) {
	ctx := work.Detached(p.Context)
	_ = p.WithID(ctx, id, func(x *run.Run, _ *run.Work) error { x.Give(ctx); return nil })
}

// takeOrphan claims one orphaned run, and reports whether it did.
func (p *Process) takeOrphan(ctx context.Context, id string) (took bool, err error) {
	err = p.WithID(ctx, id, func(x *run.Run, w *run.Work) (err error) {
		took, err = x.TakeOrphan(ctx, false, w)
		return err
	})
	return took, err
}

// TakeOverChildren claims the orphaned subworkflows that a run waits for, and those below them; the run itself may need no owner. With
// retryUnknown, workflows known to be unknown are looked up again.
func (p *Process) TakeOverChildren(ctx context.Context, x *run.Run, retryUnknown bool) {
	x.Lock()
	children := x.AwaitedChildren()
	x.Unlock()
	for _, id := range children {
		c := p.Runs.Hold(id)
		err := p.With(ctx, c, func(w *run.Work) error {
			_, err := c.TakeOrphan(ctx, retryUnknown, w)
			return err
		})
		switch {
		case errors.Is(err, problem.ExecutionNotFound): // about to be started, or left to others
		case err != nil && !errors.Is(err, problem.ExecutorNotConfigured): // the answer reports it (Run.Lacks)
			p.Log.Warn("run not claimed", run.LogRun, id, run.LogError, err)
			fallthrough
		default:
			p.TakeOverChildren(ctx, c, retryUnknown)
		}
		p.Runs.Drop(c)
	}
}

// fire fires a run's due timers and dispatches the work.
func (p *Process) fire(t Timer) {
	ctx := work.Detached(p.Context)
	err := p.WithID(ctx, t.ExecutionID, func(x *run.Run, w *run.Work) error {
		err := x.Fire(ctx, t.Timer, w)
		if x.Machine() != nil {
			p.timers.Set(x, x.OpenTimers())
		}
		return err
	})
	if err != nil && !errors.Is(err, problem.ExecutionNotFound) {
		p.Log.Warn("timer not fired", run.LogRun, t.ExecutionID, run.LogError, err)
	}
}
