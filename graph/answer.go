package graph

import (
	"cmp"
	"context"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/execution"
	"github.com/workflows-engine/workflows-engine/graph/notify"
	"github.com/workflows-engine/workflows-engine/graph/standing"
)

// answer waits until the run rests, ends or the wait limit passes, and tells where it stands.
func (r *Runner) answer(ctx context.Context, x *execution.Run, w Wait) (*Run, error) {
	w.Limit = r.limit(w)
	if w.Applied != nil && w.Limit > 0 {
		w.Applied()
	}
	if err := r.waiting(x).For(ctx, w); err != nil {
		return nil, err
	}
	return r.standings.View(detached(ctx), x)
}

// limit is how long a call waits.
func (r *Runner) limit(w Wait) time.Duration { return cmp.Or(w.Limit, r.opts.WaitLimit) }

// waiting is a call that waits for a run.
func (r *Runner) waiting(x *execution.Run) *notify.Waiting {
	return &notify.Waiting{
		Notifier: &r.notifier, Now: r.now, Closed: r.ctx.Done(),
		Watch: func() { r.notifier.WatchOnce(r.ctx, r.store, r.tasks.Go, r.log) },
		Stand: func(ctx context.Context, upToDate bool, s *standing.Standing) error {
			return r.standings.Look(ctx, x, upToDate, s)
		},
	}
}
