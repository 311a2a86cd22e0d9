package run

import (
	"context"
	"errors"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/internal/work"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/history"
)

// A process has one lease, and a run names the process that owns it. A process becomes the owner in the very transaction that
// commits its first request, or by a claim; it disowns the run in the transaction in which the run comes to rest. A run with
// something in flight whose owner's lease has ended has lost its driver.

// performs reports whether this process performs an effect of the run when it drives it. Whether it can begin a subworkflow
// shows when it tries to.
func (x *Run) performs(e machine.Effect) bool {
	return x.startedHere && !x.env.draining() || x.canPerform(e)
}

// canPerform reports whether this process has what an effect takes, and begins anything new.
func (x *Run) canPerform(e machine.Effect) bool {
	if _, walk := e.(*machine.WalkEffect); walk {
		return !x.env.draining()
	}
	return !x.env.draining() && x.LackOf(x.prog.Node(e.Base().NodeID)) == nil
}

// inFlightElsewhere reports whether an activity or delegate is in flight that this process does not perform.
func (x *Run) inFlightElsewhere() bool {
	for _, e := range x.m.InFlight() {
		if _, isChild := e.(*machine.ChildEffect); !isChild && x.attempts[e.Key()] == nil {
			return true
		}
	}
	return false
}

// mayOwn reports whether this process may become the run's owner with its next append. What is in flight elsewhere belongs to the
// owner. If nothing is, the append decides: it fails if another process with a live lease owns the run, which may be bringing up
// a subworkflow or looking after one that has just ended.
func (x *Run) mayOwn(ctx context.Context) (bool, error) {
	if x.Owned() || !x.inFlightElsewhere() {
		return true, nil
	}
	elsewhere, err := x.ownedElsewhere(ctx)
	return !elsewhere, err
}

// ownedElsewhere reports whether another process with a live lease owns the run, and notes until when the run has been driven.
func (x *Run) ownedElsewhere(ctx context.Context) (bool, error) {
	owner, err := x.env.Store.Owner(ctx, x.id)
	if err != nil || x.Owned() {
		return false, err
	}
	x.lastDriven = time.Time{}
	if owner != (history.Owner{}) {
		x.lastDriven = x.env.Now().Add(owner.Left)
	}
	return owner.Live(), nil
}

// claimInStore makes this process the owner of the run, unless another one is.
func (x *Run) claimInStore(ctx context.Context) (bool, error) {
	process, err := x.env.Process.Hold(ctx)
	if err != nil {
		return false, err
	}
	claimed, err := x.env.Store.Claim(work.Detached(ctx), process, x.id)
	if err != nil || len(claimed) == 0 {
		return false, err
	}
	x.process = process
	x.become(Claimed)
	return true, nil
}

// claim makes this process the owner of a loaded run, unless another one is: that is only read. What is in flight is then to be
// performed again. Since the last owner may have finished its work between the look at the run and the claim, the machine is
// brought up to date: ErrConflict says that it has changed.
func (x *Run) claim(ctx context.Context) (won bool, err error) {
	if elsewhere, err := x.ownedElsewhere(ctx); err != nil || elsewhere {
		return false, err
	}
	if won, err := x.claimInStore(ctx); err != nil || !won {
		return false, err
	}
	x.startedHere = false
	before := x.m
	if err := x.Refresh(ctx); err != nil {
		return false, err
	}
	if x.Ended() || x.m != before {
		return false, ErrConflict
	}
	return true, nil
}

// disown gives the run up: what is left in flight is another process's.
func (x *Run) disown(ctx context.Context) {
	if err := x.env.Store.Disown(work.Detached(ctx), x.process, x.id); err != nil {
		x.env.Log.Warn("run not disowned", LogRun, x.id, LogError, err)
	}
	if x.m == nil {
		x.become(Unloaded)
	} else {
		x.become(Following)
	}
}

// HandOver has other processes notice within a second what a draining process has left in flight: they look at once for what belongs
// to a process that is gone, and the name under which the run is claimed here never had a lease.
func (x *Run) HandOver(ctx context.Context) {
	if x.env.ReadOnly || x.m == nil || x.Owned() || x.Ended() || len(x.m.InFlight()) == 0 {
		return
	}
	if _, err := x.env.Store.Claim(work.Detached(ctx), "left by "+x.process+": "+x.id, x.id); err != nil {
		x.env.Log.Warn("run not handed over: other processes find it within seconds", LogRun, x.id, LogError, err)
	}
}

// disownIfIdle gives the run up once nothing is in flight here any more.
func (x *Run) disownIfIdle(ctx context.Context) {
	if x.Owned() && len(x.attempts) == 0 {
		x.disown(ctx)
	}
}

// Lose stops driving a run that this process owns, without a word to the store: another process owns it, or claims it once the
// lease has ended. The attempts end with the cause; see work.ErrLeaseLost.
func (x *Run) Lose(cause error) {
	if !x.Owned() {
		return
	}
	x.abortAll(cause)
	x.forget()
	x.become(Unloaded)
	x.env.Process.Changed(x)
}

// LoseLease is Lose for a run that this process owns under a name whose lease has been lost.
func (x *Run) LoseLease(process string) {
	if x.process == process {
		x.Lose(work.ErrLeaseLost)
	}
}

// rest disowns the run once nothing is in flight any more, and then checks whether another process committed something meanwhile
// and left it to the owner.
func (x *Run) rest(ctx context.Context, w *Work) error {
	if !x.Owned() || len(x.attempts) > 0 {
		return nil
	}
	x.disown(ctx)
	seen := x.m
	if err := x.Refresh(ctx); err != nil {
		return err
	}
	if x.m == nil || x.m == seen {
		return nil
	}
	if abandoned, err := x.abandoned(ctx, false, w); err != nil || !abandoned {
		return err
	}
	return x.TakeOver(ctx, false, w)
}

// EndAttempt ends an attempt without an outcome, and disowns the run if it was the last one.
func (x *Run) EndAttempt(ctx context.Context, a *work.Attempt, w *Work) error {
	if x.performing(a) {
		delete(x.attempts, a.Key)
	}
	return x.rest(ctx, w)
}

// Look is called from time to time for a run that this process owns. seq is the run's last record in the store, 0 if the
// store says that the run is not this process's any more. Look takes in what other processes wrote, and sees to
// subworkflows for which nobody else does.
func (x *Run) Look(ctx context.Context, seq int64, w *Work) error {
	if !x.Owned() {
		return nil
	}
	if seq == 0 || seq > x.exec.Seq || x.state == Claimed {
		if err := x.Refresh(ctx); err != nil || x.Ended() {
			return err
		}
		if seq == 0 {
			if owner, err := x.env.Store.Owner(ctx, x.id); err != nil {
				return err
			} else if owner.Process != x.process {
				x.Lose(work.ErrLeaseLost)
				return nil
			}
		}
		if x.state == Claimed {
			if err := x.commitUnrecorded(ctx, w); err != nil && !errors.Is(err, ErrConflict) {
				return err
			}
			if x.m != nil {
				x.redispatch(w)
			}
		}
	}
	if err := x.beginNeededChildren(ctx, w); err != nil {
		return err
	}
	return x.rest(ctx, w)
}

// NeedsLook reports whether Look may have something to do, given the run's last record in the store, 0 for a run that the store
// says is not this process's. It does not need the lock. A run that is locked is in use and may need it: one that is busy all the
// time would never be looked at otherwise.
func (x *Run) NeedsLook(seq int64) bool {
	if seq == 0 || seq > x.Seq() {
		return true
	}
	if !x.lock.TryLock() {
		return true
	}
	defer x.lock.Unlock()
	return x.state == Claimed || len(x.children) > 0 || len(x.attempts) == 0
}
