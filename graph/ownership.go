package graph

import (
	"context"
	"errors"

	"github.com/workflows-engine/workflows-engine/graph/internal/process"
	"github.com/workflows-engine/workflows-engine/graph/internal/run"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
)

// ownership is the process's lease as runs see it. The table keeps a run that the process owns: another *Run of the same id would
// perform everything again.
type ownership struct{ r *Runner }

func (o ownership) Hold(ctx context.Context) (string, error) { return o.r.lease.Hold(ctx) }

func (o ownership) Alive(process string) context.Context { return o.r.lease.Alive(process) }

func (o ownership) Owns(x *run.Run, process string, owns bool) {
	if owns {
		o.r.runs.Retain(x)
	}
	o.r.lease.Owns(x, process, owns)
	if !owns {
		o.r.runs.Drop(x)
	}
}

// look looks after a run that this process owns.
func (r *Runner) look(x *run.Run, seq int64) {
	r.runs.Retain(x)
	defer r.runs.Drop(x)
	ctx := detached(r.ctx)
	err := r.with(ctx, x, func(w *run.Work) error { return x.Look(ctx, seq, w) })
	if err != nil {
		r.log.Warn("run not looked after", run.LogRun, x.ID(), run.LogError, err)
	}
}

// takeBack goes on with a run that this process owns in the store alone.
func (r *Runner) takeBack(id, process string) {
	ctx := detached(r.ctx)
	err := r.withID(ctx, id, func(x *run.Run, w *run.Work) error { return x.TakeBack(ctx, process, w) })
	if err != nil && !errors.Is(err, problem.ExecutorNotConfigured) {
		r.log.Warn("run not taken back", run.LogRun, id, run.LogError, err)
	}
}

// takeOrphan takes over one run without a driver, and reports whether it did.
func (r *Runner) takeOrphan(ctx context.Context, id string) (took bool, err error) {
	err = r.withID(ctx, id, func(x *run.Run, w *run.Work) (err error) {
		took, err = x.TakeOrphan(ctx, false, w)
		return err
	})
	return took, err
}

// takeOverChildren takes over the subworkflows that a run waits for, whose drivers may be gone though the run's own has
// nothing to do, and those below them. Workflows that have turned out to be unknown are tried again if retryUnknown is set.
func (r *Runner) takeOverChildren(ctx context.Context, x *run.Run, retryUnknown bool) {
	x.Lock()
	children := x.AwaitedChildren()
	x.Unlock()
	for _, id := range children {
		c := r.runs.Hold(id)
		err := r.with(ctx, c, func(w *run.Work) error {
			_, err := c.TakeOrphan(ctx, retryUnknown, w)
			return err
		})
		switch {
		case errors.Is(err, problem.ExecutionNotFound): // it is about to be begun, or left to others
		case err != nil && !errors.Is(err, problem.ExecutorNotConfigured): // the answer says so (Run.Lacks)
			r.log.Warn("run not taken over", run.LogRun, id, run.LogError, err)
			fallthrough
		default:
			r.takeOverChildren(ctx, c, retryUnknown)
		}
		r.runs.Drop(c)
	}
}

// fire fires a run's due timers and drives on what follows.
func (r *Runner) fire(t process.Timer) {
	ctx := detached(r.ctx)
	err := r.withID(ctx, t.ExecutionID, func(x *run.Run, w *run.Work) error {
		err := x.Fire(ctx, t.Timer, w)
		if x.Machine() != nil {
			r.timers.Set(x, x.OpenTimers())
		}
		return err
	})
	if err != nil && !errors.Is(err, problem.ExecutionNotFound) {
		r.log.Warn("timer not fired", run.LogRun, t.ExecutionID, run.LogError, err)
	}
}

// observer is notified by runs of what they have committed.
type observer struct{ r *Runner }

func (o observer) Recorded(id string, visits int, records []history.Record) (kept bool) {
	o.r.notifier.Recorded(id, visits, records)
	o.r.runLog.Note(id, records)
	return o.r.records.Queue(id, records)
}

func (o observer) Changed(id string) { o.r.notifier.Changed(id) }

func (o observer) Timers(x *run.Run, ts []machine.Timer) { o.r.timers.Set(x, ts) }
