package graph

import (
	"cmp"
	"context"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/internal/process"
	"github.com/workflows-engine/workflows-engine/graph/internal/run"
	"github.com/workflows-engine/workflows-engine/graph/view"
)

// answer waits until the run rests, ends or the wait limit passes, and tells where it stands.
func (r *Runner) answer(ctx context.Context, x *run.Run, w Wait) (*view.Run, error) {
	w.Limit = r.limit(w)
	if w.Applied != nil && w.Limit > 0 {
		w.Applied()
	}
	if err := r.waiting(x).For(ctx, w.waiting()); err != nil {
		return nil, err
	}
	return r.standings.View(detached(ctx), x)
}

// limit is how long a call waits.
func (r *Runner) limit(w Wait) time.Duration { return cmp.Or(w.Limit, r.opts.WaitLimit) }

// waiting is a call that waits for a run.
func (r *Runner) waiting(x *run.Run) *process.Waiting {
	return &process.Waiting{
		Notifier: &r.notifier, Now: r.now, Closed: r.ctx.Done(),
		Watch: func() { r.notifier.WatchOnce(r.ctx, r.store, r.tasks.Go, r.log) },
		Stand: func(ctx context.Context, upToDate bool, s *run.Standing) error {
			return r.standings.Look(ctx, x, upToDate, s)
		},
	}
}
