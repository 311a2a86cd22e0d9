package run

import (
	"context"
	"errors"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/internal/work"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/history"
)

// A process has one lease, and a run names its owner. A process becomes the owner in the transaction that commits its first request, or
// by a claim; it disowns the run in the transaction that leaves nothing in flight. A run with an attempt in flight whose owner's lease
// has ended is an orphan.

// performs reports whether this process performs an effect when it owns the run. For a subworkflow, the attempt to begin it decides.
func (x *Run) performs(e machine.Effect) bool {
	return x.startedHere && !x.env.draining() && !x.leaves(x.prog.Node(e.Base().NodeID)) || x.canPerform(e)
}

// canPerform reports whether this process has the executor of an effect, and is not draining.
func (x *Run) canPerform(e machine.Effect) bool {
	if _, walk := e.(*machine.WalkEffect); walk {
		return !x.env.draining() || len(x.attempts) > 0 // the outcomes of attempts in flight wait for a walk
	}
	if _, child := e.(*machine.ChildEffect); !child && x.env.Sharing.None || x.env.draining() {
		return false
	}
	n := x.prog.Node(e.Base().NodeID)
	return !x.leaves(n) && x.LackOf(n) == nil
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

// mayOwn reports whether this process may become the owner with its next append. Attempts in flight elsewhere belong to the owner.
// Without any, the append decides: it fails if another process with a live lease owns the run, for example to start a subworkflow.
func (x *Run) mayOwn(ctx context.Context) (bool, error) {
	if x.Owned() || !x.inFlightElsewhere() {
		return true, nil
	}
	elsewhere, err := x.ownedElsewhere(ctx)
	return !elsewhere, err
}

// ownedElsewhere reports whether another process with a live lease owns the run, and sets lastDriven.
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

// claimInStore makes this process the owner, unless another process is.
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

// claim makes this process the owner of a loaded run, unless another process is; it checks that with a read. Effects in flight are then
// performed again. The last owner may have finished between the load and the claim, so claim refreshes the machine; ErrConflict reports
// that it has changed.
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

// disown gives the run up; other processes perform the effects left in flight.
func (x *Run) disown(ctx context.Context) {
	var ready *history.Ready
	if queue := x.env.Sharing.Queue; queue != nil && x.m != nil && (x.mayMove() || x.env.draining()) {
		ready = x.readyWith(&x.exec, x.m.InFlight())
	}
	var err error
	if ready != nil {
		err = x.env.Sharing.Queue.Offer(work.Detached(ctx), x.process, history.Offer{ExecutionID: x.id, Ready: *ready})
	} else {
		err = x.env.Store.Disown(work.Detached(ctx), x.process, x.id)
	}
	if err != nil {
		x.env.Log.Warn("run not disowned", LogRun, x.id, LogError, err)
	}
	if x.m == nil {
		x.become(Unloaded)
	} else {
		x.become(Following)
	}
}

// disownIfIdle disowns the run if no attempt is in flight here.
func (x *Run) disownIfIdle(ctx context.Context) {
	if x.Owned() && len(x.attempts) == 0 {
		x.disown(ctx)
	}
}

// Lose stops driving an owned run without a write: another process owns it, or claims it once the lease has ended. The attempts end with
// the cause, such as work.ErrLeaseLost.
func (x *Run) Lose(cause error) {
	if !x.Owned() {
		return
	}
	x.abortAll(cause)
	x.forget()
	x.become(Unloaded)
	x.env.Process.Changed(x)
}

// LoseLease is Lose for a run that this process owns under the name of a lost lease.
func (x *Run) LoseLease(process string) {
	if x.process == process {
		x.Lose(work.ErrLeaseLost)
	}
}

// rest disowns the run if no attempt is in flight any more. It then checks for a commit that another process left to the owner meanwhile.
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

// EndAttempt ends an attempt without an outcome, and disowns the run after the last one.
func (x *Run) EndAttempt(ctx context.Context, a *work.Attempt, w *Work) error {
	if x.performing(a) {
		delete(x.attempts, a.Key)
	}
	return x.rest(ctx, w)
}

// Look checks an owned run from time to time. seq is the run's last record in the store, 0 if the store names another owner. Look reads
// the writes of other processes, and acts for subworkflows that need their parent.
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

// NeedsLook reports whether Look may find something to do. seq is as for Look. It does not need the lock: a locked run is in use, and one
// that is always busy would otherwise never be checked.
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
