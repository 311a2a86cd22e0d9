package graph

import (
	"context"
	"errors"

	"github.com/workflows-engine/workflows-engine/graph/execution"
	"github.com/workflows-engine/workflows-engine/graph/notify"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/graph/runview"
	"github.com/workflows-engine/workflows-engine/graph/standing"
	"github.com/workflows-engine/workflows-engine/history"
)

// answer waits until the run rests, ends or the wait limit passes, and tells where it stands.
func (r *Runner) answer(ctx context.Context, x *execution.Run, w Wait) (*Run, error) {
	if !w.Set {
		w.Limit = r.opts.WaitLimit
	}
	if w.Applied != nil && w.Limit > 0 {
		w.Applied()
	}
	if err := r.waiting(x).For(ctx, w); err != nil {
		return nil, err
	}
	return r.view(detached(ctx), x)
}

// waiting is a call that waits for a run.
func (r *Runner) waiting(x *execution.Run) *notify.Waiting {
	return &notify.Waiting{
		Notifier: &r.notifier, Now: r.now, Closed: r.ctx.Done(), Watch: r.watch,
		Stand: func(ctx context.Context, upToDate bool, s *standing.Standing) error {
			return r.standings.Look(ctx, x, upToDate, s)
		},
	}
}

// watch notices from now on what other processes write, if the store can tell.
func (r *Runner) watch() {
	if s, ok := r.store.(history.Watcher); ok {
		r.watching.Do(func() { r.tasks.Go(func() { r.notifier.Watch(r.ctx, s, r.log) }) })
	}
}

// view tells where a run stands. What a subworkflow waits for, the run waits for.
func (r *Runner) view(ctx context.Context, x *execution.Run) (*Run, error) {
	var v *Run
	err := r.reading(ctx, x, func(x *execution.Run, _ *execution.Work) (err error) {
		v, err = x.View(ctx)
		return err
	})
	if err != nil {
		return nil, err
	}
	return v, runview.Compose(v, func(w *Pending) (*Run, error) { return r.viewChild(ctx, x, w) })
}

// viewChild is view for a subworkflow that a run waits for.
func (r *Runner) viewChild(ctx context.Context, x *execution.Run, w *Pending) (*Run, error) {
	c := r.runs.Hold(w.ChildExecutionID)
	defer r.runs.Drop(c)
	// Another process may have gone on with it. Nobody has looked yet if the run also waits for something else.
	err := r.reading(ctx, c, func(c *execution.Run, _ *execution.Work) error {
		if c.Attempts() > 0 {
			return nil
		}
		return c.Refresh(ctx)
	})
	var v *Run
	if err == nil || errors.Is(err, problem.DefinitionNotFound) {
		v, err = r.view(ctx, c)
	}
	if !errors.Is(err, problem.ExecutionNotFound) {
		if err != nil {
			return nil, err
		}
		return runview.Child(v), nil
	}
	v = runview.Child(nil)
	x.Lock()
	defer x.Unlock()
	if x.Program() == nil {
		return v, nil
	}
	n := x.Program().Node(w.NodeID)
	if n == nil || n.Subworkflow == nil {
		return v, nil
	}
	name := execution.WorkflowName{Ref: n.Subworkflow.WorkflowRef, Pin: n.Subworkflow.VersionPin}
	v.Lacks, err = x.UnlessOwned(ctx, r.library.Lack(x.ID(), n.ID, name))
	return v, err
}
