package process

import (
	"context"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/internal/run"
	"github.com/workflows-engine/workflows-engine/graph/machine"
)

// Wait is graph.Wait, which documents the fields. Limit is the longest wait, with the engine's default filled in.
type Wait struct {
	Limit    time.Duration
	Progress func(Progress)
	Applied  func()
	End      <-chan struct{}
}

// The pauses between two looks at a run that another process drives or may change, while the store is not watched. They grow with
// waits of many minutes.
const (
	firstLook = 50 * time.Millisecond
	lastLook  = 250 * time.Millisecond
	// watchedLook is the pause while the store is watched: a watch is a hint, which may be missing.
	watchedLook = time.Second
)

// Waiting is a call that waits for a run.
type Waiting struct {
	Notifier *Notifier
	// Now is the engine's clock.
	Now func() time.Time
	// Closed ends the waiting when the engine closes.
	Closed <-chan struct{}
	// Watch is called before the first sleep that another process's write may end.
	Watch func()
	// Stand looks where the run stands, firing what is due. upToDate says that the run was in hand just before.
	Stand func(ctx context.Context, upToDate bool, s *run.Standing) error
	// Until, if not nil, ends the waiting too, and says that the call asks where the run stands and has not driven it.
	Until func(*run.Standing) bool
	// AnyChange makes it wait for a change of a run at rest, which another process may make.
	AnyChange bool
}

// For waits until the run rests, ends or the limit passes. The end of ctx ends only the waiting.
func (c *Waiting) For(ctx context.Context, limit Wait) error {
	began := time.Now()
	look := firstLook
	var w *Waiter
	var reported int64
	var alive *machine.Machine
	for first := true; ; first = false {
		s := run.Standing{WantPlaces: limit.Progress != nil, Alive: alive}
		if err := c.Stand(context.WithoutCancel(ctx), first && c.Until == nil, &s); err != nil {
			return err
		}
		alive = s.Alive
		left := limit.Limit - time.Since(began)
		goesOn := s.GoesOn(c.Now(), left) || c.AnyChange && !s.Status.Terminal()
		if left <= 0 || !goesOn || c.Until != nil && c.Until(&s) {
			return nil
		}
		if w == nil {
			w = c.Notifier.Waiter(limit.Progress != nil)
			defer w.Stop()
		}
		if w.Add(s.IDs) {
			continue // something may have happened before it was added
		}
		if limit.Progress != nil && s.Sum != reported && (s.Elsewhere || reported == 0) {
			for _, p := range s.At {
				limit.Progress(Progress{
					ExecutionID: p.ExecutionID, NodeID: p.NodeID, Branch: p.Branch, NodeVisits: p.NodeVisits, Kind: NodeRuns, Attempt: p.Attempt,
				})
			}
		}
		reported = s.Sum
		next := s.Due.Sub(c.Now())
		switch {
		case s.Elsewhere || c.Until != nil || !s.Due.IsZero() && next <= 0:
			c.Watch()
			pause := look
			look = min(2*look, max(lastLook, time.Since(began)/100))
			if c.Notifier.Watched() {
				pause = max(pause, watchedLook)
			}
			if !s.Due.IsZero() && next > 0 {
				pause = min(pause, next)
			}
			left = min(left, pause)
		case !s.Due.IsZero():
			left = min(left, next)
		}
		if s.Busy {
			left = min(left, firstLook)
		}
		if !c.sleep(ctx, w, left, limit) {
			return nil
		}
	}
}

// sleep waits until it is time to look again, handing on progress. It is false if there is no use in looking.
func (c *Waiting) sleep(ctx context.Context, w *Waiter, d time.Duration, limit Wait) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	for {
		select {
		case p := <-w.progress:
			limit.Progress(p)
			continue
		case <-limit.End:
			return false
		default:
		}
		select {
		case p := <-w.progress:
			limit.Progress(p)
		case <-limit.End:
			return false
		case <-w.signal:
			for { // what happened before the run changed
				select {
				case p := <-w.progress:
					limit.Progress(p)
					continue
				default:
				}
				return true
			}
		case <-t.C:
			return true
		case <-ctx.Done():
			return false
		case <-c.Closed:
			return false
		}
	}
}
