package run

import (
	"context"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// A long walk is made in stretches (machine.WalkEffect): each is a commit, and between two of them the run's lock is free, so that
// calls see where the run stands and can cancel it. An evaluation cannot be cut into stretches; who cannot wait for it has it
// abandoned, and what led to it is decided again.

const (
	// walkPoll is how often a process looks whether a walk that another one makes is over.
	walkPoll = 100 * time.Millisecond
	// walkPatience is how long a call waits for a walk before it is refused.
	walkPatience = 5 * time.Second
)

// limits are those of the machine.
func (x *Run) limits() machine.Limits {
	l := x.env.Limits
	l.Short = func() bool { return x.short }
	l.Stop, l.Tree = x.stop, func(pending bool) string { return x.env.Tree.Reached(&x.exec, pending) }
	return l
}

// stop reports whether an evaluation under way is to be abandoned.
func (x *Run) stop() bool { return x.lock.Abandon(x.env.Context) }

// compute has the machine do something that may take long.
func (x *Run) compute(do func() error) error { return x.lock.Compute(x.env.Log, 0, do, LogRun, x.id) }

// decide has the machine take an input. With short, nothing of the walk that follows is made; else it is abandoned if it takes long.
func (x *Run) decide(short bool, do func() error) error {
	patience := LockPatience
	if x.short = short; short {
		patience = 0
	}
	defer func() { x.short = false }()
	return x.lock.Compute(x.env.Log, patience, do, LogRun, x.id)
}

// afterAbandoning follows an evaluation that was abandoned: what led to it is decided again once whoever waited has had the lock. The
// error is the reason why the process ends.
func (x *Run) afterAbandoning() error {
	x.forget()
	if x.env.Context.Err() != nil {
		return context.Cause(x.env.Context)
	}
	x.lock.Yield()
	return nil
}

// awaitWalk waits until no walk of the run is under way, here or elsewhere. It gives the lock back meanwhile. RUN_COMPUTING means that
// it takes too long; an outcome that this process brings waits as long as it takes.
func (x *Run) awaitWalk(ctx context.Context, patient bool, w *Work) error {
	begun := time.Now()
	for {
		if err := x.Open(ctx); err != nil || x.m == nil || !x.m.Walking() {
			return err
		}
		if x.walked == nil {
			x.walked = make(chan struct{})
		}
		over := x.walked
		x.lock.Unlock()
		select {
		case <-over:
		case <-time.After(walkPoll):
		case <-ctx.Done():
		case <-x.env.Context.Done():
		}
		x.lock.Lock()
		switch {
		case x.env.Context.Err() != nil:
			return context.Cause(x.env.Context)
		case ctx.Err() != nil:
			return ctx.Err()
		case !patient && time.Since(begun) > walkPatience:
			return problem.New(problem.RunComputing, "the run is computing and takes no input now").
				WithPlace(problem.Place{ExecutionID: x.id}).
				WithHint("Nothing was changed. Ask Runner.Status with a wait, and make the call again, or cancel the run.")
		}
		if !x.walksHere() {
			err := x.Refresh(ctx)
			if err == nil {
				err = x.TakeOver(ctx, false, w) // its driver may be gone
			}
			if err != nil {
				return err
			}
		}
	}
}

// AwaitWalk waits until no walk of the run is under way, for who has to know what the run waits for.
func (x *Run) AwaitWalk(ctx context.Context, w *Work) error {
	if x.m == nil || !x.m.Walking() {
		return nil
	}
	return x.awaitWalk(ctx, false, w)
}

// walksHere reports whether this process makes the run's walk.
func (x *Run) walksHere() bool {
	for _, a := range x.attempts {
		if _, walk := a.Effect.(*machine.WalkEffect); walk {
			return true
		}
	}
	return false
}

// noteWalk tells those who wait for the end of a walk that it is over.
func (x *Run) noteWalk() {
	if x.walked != nil && (x.m == nil || !x.m.Walking()) {
		close(x.walked)
		x.walked = nil
	}
}
