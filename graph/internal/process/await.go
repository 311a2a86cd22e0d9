package process

import (
	"context"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/internal/run"
	"github.com/workflows-engine/workflows-engine/graph/internal/work"
	"github.com/workflows-engine/workflows-engine/graph/view"
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

// Call is a call about a run: it applies an input, if it has one, and then looks where the run stands until that rests, ends or the wait
// limit passes.
type Call struct {
	// Stand, unless nil, looks where the run stands in place of Process.Look. upToDate says that the run was in hand just before.
	Stand func(ctx context.Context, upToDate bool, s *Standing) error
	// Until, unless nil, ends the waiting, too. was is where the run stood at first, nil at the first look. A call with Until asks where the
	// run stands and has not driven it.
	Until func(was, now *Standing) bool
	// AnyChange makes the call wait for a change of a run at rest, which another process may make.
	AnyChange bool

	p     *Process
	x     *run.Run
	wait  Wait
	began time.Time
	// first is the first look.
	first *Standing
}

// Call returns a call about a run.
func (p *Process) Call(x *run.Run, w Wait) *Call { return &Call{p: p, x: x, wait: w} }

// Apply calls apply with the run locked, looks where the run stands then, in the same lock cycle, and dispatches the resulting work. applied
// is false if the input is to be applied elsewhere.
func (c *Call) Apply(ctx context.Context, apply func(w *run.Work) (applied bool, err error)) error {
	return c.p.With(ctx, c.x, func(w *run.Work) error {
		applied, err := apply(w)
		if err != nil || !applied || c.x.Machine() == nil || c.x.HasChildren() {
			return err
		}
		c.began = time.Now()
		s := c.look()
		if s.addRun(work.Detached(ctx), c.x, true, c.p.Now, w) == nil { // what fails is found by the next look
			c.first = s
		}
		return nil
	})
}

// look is a look to be made.
func (c *Call) look() *Standing {
	s := &Standing{wantPlaces: c.wait.Progress != nil}
	if c.Stand == nil {
		s.enough = c.enough
	}
	return s
}

// enough reports whether the waiting ends with a look.
func (c *Call) enough(s *Standing) bool {
	left := c.left()
	goesOn := s.GoesOn(c.p.Now(), left) || c.AnyChange && !s.Status.Terminal()
	return left <= 0 || !goesOn || c.Until != nil && c.Until(c.first, s)
}

func (c *Call) left() time.Duration { return c.wait.Limit - time.Since(c.began) }

// Answer waits until the run rests, ends or the limit passes, and returns where it stands. The end of ctx ends only the waiting.
func (c *Call) Answer(ctx context.Context) (*view.Run, error) {
	s, err := c.await(ctx)
	switch {
	case err != nil:
		return nil, err
	case s.View != nil:
		return s.View, nil
	}
	return c.p.View(work.Detached(ctx), c.x)
}

// await returns the look with which the waiting has ended.
func (c *Call) await(ctx context.Context) (*Standing, error) {
	if c.began.IsZero() {
		c.began = time.Now()
	}
	stand := c.Stand
	if stand == nil {
		stand = func(ctx context.Context, upToDate bool, s *Standing) error { return c.p.Look(ctx, c.x, upToDate, s) }
	}
	pause := firstLook
	var w *Waiter
	var reported int64
	for s := c.first; ; s = nil {
		if s == nil {
			s = c.look()
			if c.first != nil {
				s.alive = c.first.alive
			}
			if err := stand(work.Detached(ctx), c.first == nil && c.Until == nil, s); err != nil {
				return nil, err
			}
		}
		if s.View != nil || c.enough(s) {
			return s, nil
		}
		if c.first == nil {
			c.first = s
		}
		c.first.alive = s.alive
		if c.wait.Applied != nil {
			c.wait.Applied()
			c.wait.Applied = nil
		}
		if w == nil {
			w = c.p.notifier.Waiter(c.wait.Progress != nil)
			defer w.Stop()
		}
		if w.Add(s.IDs) {
			continue // something may have happened before it was added
		}
		if c.wait.Progress != nil && s.Sum != reported && (s.Elsewhere || reported == 0) {
			for _, p := range s.places {
				c.wait.Progress(p)
			}
		}
		reported = s.Sum
		left, next := c.left(), s.Due.Sub(c.p.Now())
		switch {
		case s.Elsewhere || c.Until != nil || !s.Due.IsZero() && next <= 0:
			c.p.notifier.WatchOnce(&c.p.Env)
			sleep := pause
			pause = min(2*pause, max(lastLook, time.Since(c.began)/100))
			if c.p.notifier.Watched() {
				sleep = max(sleep, watchedLook)
			}
			if !s.Due.IsZero() && next > 0 {
				sleep = min(sleep, next)
			}
			left = min(left, sleep)
		case !s.Due.IsZero():
			left = min(left, next)
		}
		if s.Busy {
			left = min(left, firstLook)
		}
		if !c.sleep(ctx, w, left) {
			return s, nil
		}
	}
}

// sleep waits until it is time to look again, handing on progress. It is false if there is no use in looking.
func (c *Call) sleep(ctx context.Context, w *Waiter, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	for {
		select {
		case p := <-w.progress:
			c.wait.Progress(p)
			continue
		case <-c.wait.End:
			return false
		default:
		}
		select {
		case p := <-w.progress:
			c.wait.Progress(p)
		case <-c.wait.End:
			return false
		case <-w.signal:
			for { // what happened before the run changed
				select {
				case p := <-w.progress:
					c.wait.Progress(p)
					continue
				default:
				}
				return true
			}
		case <-t.C:
			return true
		case <-ctx.Done():
			return false
		case <-c.p.Context.Done():
			return false
		}
	}
}
