package run

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
)

// Timers are rows in the store and outlive every process. A process wakes up for the timers of the runs that it has used. Others fire
// when a call asks about their run, or when a process finds them in the store.
//
//	timer of                              fired by                              when
//	a wait, an interrupt, a block         any process                           when due
//	an attempt in flight here             this process                          at its deadline
//	the wait of an attempt for its turn   any process                           when due
//	an unclaimed attempt                  any process that cannot perform it    TakeoverTime after it could have been claimed
//	a retry, a rest, the poll of a task   a process that can perform it         when due

// TakeoverTime is how long a process waits for a capable process to claim an unclaimed attempt; each search for orphans finds it well
// within. It is the same for all processes, whatever their leases.
const TakeoverTime = 40 * time.Second

// fireMine fires the due timers of the run that this process may fire. The run must be open. A timer that has just been closed is not an
// error.
func (x *Run) fireMine(ctx context.Context, w *Work) error {
	over := map[string]bool{}
	again := "" // the timer of the last conflict
	for {
		due, ok := x.nextDue(over)
		if !ok {
			return nil
		}
		over[due.Key] = true
		e := x.m.Queue(due.Key)
		if poll := x.m.Poll(due.Key); poll != nil {
			e = poll
		}
		if e != nil {
			if x.attempts[e.Key()] == nil && !x.env.draining() {
				x.begin(e, w)
			}
			continue
		}
		fenced := !x.Owned() && x.inFlightElsewhere()
		err := x.Apply(ctx, Input{Input: machine.TimerFired{Key: due.Key}, fenced: fenced, once: true, short: again == due.Key}, w)
		switch {
		case errors.Is(err, ErrConflict): // the attempt that follows has lost its reserved place
			if err := x.Open(ctx); err != nil {
				return err
			}
			delete(over, due.Key)
			again = due.Key
		case errors.Is(err, problem.LeaseHeld):
			return nil // another process has just claimed the run and its timers
		case err != nil && !errors.Is(err, problem.HistoryConflict):
			return err
		}
	}
}

// nextDue returns a due timer that this process may fire. During a walk there is no such timer.
func (x *Run) nextDue(except map[string]bool) (machine.Timer, bool) {
	if x.m == nil || x.m.Walking() {
		return machine.Timer{}, false
	}
	ts := x.m.Timers()
	if len(ts) == 0 {
		return machine.Timer{}, false
	}
	now := x.env.Now()
	for _, t := range ts {
		if t.Due.After(now) || except[t.Key] {
			continue
		}
		if at, mine := x.firesAt(t); mine && !at.After(now) {
			return t, true
		}
	}
	return machine.Timer{}, false
}

// due reports whether nextDue finds a timer.
func (x *Run) due() bool {
	_, due := x.nextDue(nil)
	return due
}

// firesAt returns when this process fires a timer, unless another process is first; mine is false if it never does. See the
// table above.
func (x *Run) firesAt(t machine.Timer) (at time.Time, mine bool) {
	w, ok := x.m.TimedWait(t.Key)
	switch {
	case !ok:
		return t.Due, true
	case (w.Kind == machine.WaitActivity || w.Kind == machine.WaitDelegate) && !w.Host && w.Task == nil:
		if x.attempts[w.Key] != nil {
			return t.Due, true
		}
		return x.unclaimedUntil(t.Due), true
	case x.leaves(x.prog.Node(w.NodeID)) && (w.Kind == machine.WaitBackoff || w.Rests() || x.m.Poll(t.Key) != nil):
		return time.Time{}, false
	case x.startedHere || x.LackFor(&w) == nil:
		return t.Due, true
	case w.Kind == machine.WaitBackoff || w.Rests() || x.m.Poll(t.Key) != nil:
		return time.Time{}, false
	default:
		return x.unclaimedUntil(t.Due), true
	}
}

// unclaimedUntil returns when any process that cannot perform an unclaimed attempt times it out, so that the author's
// timeout holds even without a capable process. The attempt waits while the run has an owner, which may perform it next, and until this
// process has been present for a while: before, there may have been no process at all.
func (x *Run) unclaimedUntil(deadline time.Time) time.Time {
	now := x.env.Now()
	since := deadline
	for _, t := range []time.Time{x.exec.UpdatedAt, x.lastDriven, x.env.Process.PresentSince()} {
		if t.After(since) {
			since = t
		}
	}
	if len(x.attempts) > 0 && now.After(since) {
		since = now
	}
	return since.Add(TakeoverTime)
}

// FireDue fires due timers when a call asks about an open run, unless another process owns it. If an effect was abandoned and this
// process can perform it, FireDue claims the run.
func (x *Run) FireDue(ctx context.Context, w *Work) error {
	if x.env.ReadOnly && w.preview == nil {
		return nil
	}
	if gone, err := x.endWithParent(ctx, w); gone || err != nil {
		return err
	}
	if !x.due() {
		return nil
	}
	if !x.Owned() && x.inFlightElsewhere() {
		if elsewhere, err := x.ownedElsewhere(ctx); err != nil || elsewhere {
			return err
		}
		if !x.due() {
			return nil // its owner has not been gone for long
		}
		if abandoned, err := x.abandoned(ctx, false, w); err != nil {
			return err
		} else if abandoned {
			return x.takeUp(ctx, w)
		}
		if w.dry() {
			return nil
		}
		// The previous owner may have moved the deadline of an attempt that it repeated, without a record.
		x.forget()
		if err := x.Open(ctx); err != nil {
			return err
		}
	}
	if w.dry() {
		return nil
	}
	return x.fireMine(ctx, w)
}

// Timer is a due timer of a run.
type Timer struct {
	// Own is set for a timer of a run that this process has used. StartedHere and Seq are then the run's values when the timer was set.
	Own         bool
	StartedHere bool
	Seq         int64
}

// Fire fires the due timers of the run.
func (x *Run) Fire(ctx context.Context, t Timer, w *Work) error {
	look := x.Open
	if !t.Own { // another process may have set the timer
		if left, err := x.leftToOwner(ctx); err != nil || left {
			return err
		}
		look = x.Refresh
	}
	if err := look(ctx); err != nil || x.Ended() {
		return err
	}
	x.startedHere = x.startedHere || t.StartedHere && t.Seq == x.exec.Seq // the table may have dropped the run
	if t.Own && (x.Owned() || !x.inFlightElsewhere()) {
		return x.fireMine(ctx, w)
	}
	return x.TakeOver(ctx, false, w)
}

// leftToOwner reports whether another process owns an unloaded run with attempts in process, and so its timers. It saves loading the run
// in each search that finds an overdue timer of it.
func (x *Run) leftToOwner(ctx context.Context) (bool, error) {
	if x.m != nil || x.Owned() {
		return false, nil
	}
	exec, err := x.env.Store.Execution(ctx, x.id)
	if err != nil || !slices.ContainsFunc(exec.Waits, func(w history.Wait) bool { return w.InProcess() }) {
		return false, err
	}
	return x.ownedElsewhere(ctx)
}

// OpenTimers returns the timers that this process will fire; a due timer that was not fired is left to others.
func (x *Run) OpenTimers() []machine.Timer {
	if x.m == nil {
		return nil
	}
	now := x.env.Now()
	var open []machine.Timer
	for _, t := range x.m.Timers() {
		if at, mine := x.firesAt(t); mine {
			t.Due = at
		}
		if t.Due.After(now) {
			open = append(open, t)
		}
	}
	return open
}
