package run

import (
	"context"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// A long walk is made in stretches (machine.WalkEffect). Each is a commit, and the run is unlocked between two of them, so that calls can
// ask about the run and cancel it. An evaluation cannot be divided; a caller in a hurry makes it stop, and the input is decided again.

const (
	// walkPoll is the interval of checks for the end of another process's walk.
	walkPoll = 100 * time.Millisecond
	// walkPatience is how long a call waits for a walk before it is rejected.
	walkPatience = 5 * time.Second
)

// limits returns the machine's limits.
func (x *Run) limits() machine.Limits {
	l := x.env.Limits
	l.Queued = x.queued
	l.Short = func() bool { return x.short }
	l.Stop, l.Tree = x.stop, func(pending bool) string { return x.env.Tree.Reached(&x.exec, pending) }
	return l
}

// stop reports whether the current evaluation must stop.
func (x *Run) stop() bool { return x.lock.Abandon(x.env.Context) }

// compute calls do, a step of the machine that may take long.
func (x *Run) compute(do func() error) error { return x.lock.Compute(x.env.Log, 0, do, LogRun, x.id) }

// decide passes an input to the machine. With short, it skips the walk that follows; otherwise it stops a long walk.
func (x *Run) decide(short bool, do func() error) error {
	patience := LockPatience
	if x.short = short; short {
		patience = 0
	}
	defer func() { x.short = false }()
	return x.lock.Compute(x.env.Log, patience, do, LogRun, x.id)
}

// afterAbandoning follows a stopped evaluation: it lets the waiters have the lock, so that the caller can decide again. The error is the
// reason why the process ends.
func (x *Run) afterAbandoning() error {
	x.forget()
	if x.env.Context.Err() != nil {
		return context.Cause(x.env.Context)
	}
	x.lock.Yield()
	return nil
}

// awaitWalk waits for the end of the run's walk, here or elsewhere, and unlocks the run meanwhile. RUN_COMPUTING reports that it takes
// too long; a patient caller, with an outcome of this process, waits without a limit.
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
			return problem.New(problem.RunComputing, "the run is busy with a long computation").
				WithPlace(problem.Place{ExecutionID: x.id}).
				WithHint("Nothing was changed. Wait with Runner.Status and repeat the call, or cancel the run.")
		}
		if !x.walksHere() {
			err := x.Refresh(ctx)
			if err == nil {
				err = x.TakeOver(ctx, false, w) // its owner may be gone
			}
			if err != nil {
				return err
			}
		}
	}
}

// AwaitWalk waits for the end of the run's walk, for callers that need to know its waits.
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

// noteWalk wakes the waiters at the end of a walk.
func (x *Run) noteWalk() {
	if x.walked != nil && (x.m == nil || !x.m.Walking()) {
		close(x.walked)
		x.walked = nil
	}
}
