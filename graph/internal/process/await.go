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

// The pauses between two looks at a run that another process may change, while the store is not watched. They grow with waits of many
// minutes.
const (
	firstLook = 50 * time.Millisecond
	lastLook  = 250 * time.Millisecond
	// watchedLook is the pause while the store is watched: notifications may get lost.
	watchedLook = time.Second
)

// Call is a call about a run. It applies an input, if it has one, and then looks at the run until that waits or ends, or the time limit
// passes.
type Call struct {
	// Stand, unless nil, replaces Process.Look. upToDate reports that this process has just used the run.
	Stand func(ctx context.Context, upToDate bool, s *Standing) error
	// Until, unless nil, may end the wait early. was is the first look, nil during that one. A call with Until asks about the run and has
	// applied no input.
	Until func(was, now *Standing) bool
	// AnyChange makes the call wait for a change of a waiting run, too, which another process may make.
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

// Apply calls apply with the run locked, looks at the run in the same lock cycle, and dispatches the work. apply returns false if the
// input is to be applied elsewhere.
func (c *Call) Apply(ctx context.Context, apply func(w *run.Work) (applied bool, err error)) error {
	return c.p.With(ctx, c.x, func(w *run.Work) error {
		applied, err := apply(w)
		if err != nil || !applied || c.x.Machine() == nil || c.x.HasChildren() {
			return err
		}
		c.began = time.Now()
		s := c.look()
		if s.addRun(work.Detached(ctx), c.x, true, c.p.Now, w) == nil { // a failed look is repeated by Answer
			c.first = s
		}
		return nil
	})
}

// look returns an empty look.
func (c *Call) look() *Standing {
	s := &Standing{wantPlaces: c.wait.Progress != nil}
	if c.Stand == nil {
		s.enough = c.enough
	}
	return s
}

// enough reports whether the wait ends with a look.
func (c *Call) enough(s *Standing) bool {
	left := c.left()
	goesOn := s.GoesOn(c.p.Now(), left) || c.AnyChange && !s.Status.Terminal()
	return left <= 0 || !goesOn || c.Until != nil && c.Until(c.first, s)
}

func (c *Call) left() time.Duration { return c.wait.Limit - time.Since(c.began) }

// Answer waits until the run waits or ends, or the limit passes, and returns the view of the run. The end of ctx ends only the wait.
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

// await returns the last look of the wait.
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
			continue // the runs may have changed before they were added
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

// sleep waits until the next look, and passes progress on. It is false if the wait has ended.
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
			for { // pass on earlier progress first
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
