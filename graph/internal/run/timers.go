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

// Timers are rows in the store and outlive every process. A process wakes up for those of the runs that it has had in hand; others
// are fired when somebody asks about their run, or by whoever searches the store.
//
//	timer of                              fired by                              when
//	a wait, an interrupt, a block         any process                           when due
//	an attempt in flight here             this process                          at its deadline
//	an attempt that nobody performs       any process that cannot perform it    TakeoverTime after it could have been claimed
//	a retry, a rest, the poll of a task   a process that can perform it         when due

// TakeoverTime is how long an attempt that nobody performs is left to processes that can: the next round of a search for orphans,
// anywhere, finds it well within. It is the same for all processes, whatever their leases.
const TakeoverTime = 40 * time.Second

// fireMine fires the run's timers that are due and that are this process's to fire. The run must be open. A timer that turns out
// to be over is no error.
func (x *Run) fireMine(ctx context.Context, w *Work) error {
	over := map[string]bool{}
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
		err := x.Apply(ctx, Input{Input: machine.TimerFired{Key: due.Key}, fenced: fenced}, w)
		switch {
		case errors.Is(err, problem.LeaseHeld):
			return nil // another process has just claimed the run: its timers are that one's
		case err != nil && !errors.Is(err, problem.HistoryConflict):
			return err
		}
	}
}

// nextDue returns a timer that is due and that this process may fire. Within a walk none is.
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

// due reports whether a timer is due that this process may fire.
func (x *Run) due() bool {
	_, due := x.nextDue(nil)
	return due
}

// firesAt returns when this process fires a timer, unless another one does so before; mine is false if it never does. See the table
// above.
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
	case x.startedHere || x.LackFor(&w) == nil:
		return t.Due, true
	case w.Kind == machine.WaitBackoff || w.Rests() || x.m.Poll(t.Key) != nil:
		return time.Time{}, false
	default:
		return x.unclaimedUntil(t.Due), true
	}
}

// unclaimedUntil returns when an attempt in process with a deadline counts as one that nobody performs. Any process times it out
// then, unless it can perform it, so that the bound which the author of the workflow has set holds even if nobody can. While
// the run is driven the attempt waits for the driver to be done with its own, or to be missed; and before this process was
// present there may have been nobody at all.
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

// FireDue does what is due when somebody asks about an open run, unless that is the business of the process that owns it. If an
// attempt of the run was abandoned and this process can perform it, it does so.
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
			return nil // its driver has not been gone for long
		}
		if abandoned, err := x.abandoned(ctx, false, w); err != nil {
			return err
		} else if abandoned {
			return x.takeUp(ctx, w)
		}
		if w.dry() {
			return nil
		}
		// The driver before may have moved the deadline of an attempt that it performed again, without a record.
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

// Timer is a timer of a run that has come due in this process.
type Timer struct {
	// Own is set for a timer of a run that this process had in hand. StartedHere and Seq are then the run's as of when the
	// timer was set.
	Own         bool
	StartedHere bool
	Seq         int64
}

// Fire does what a timer of the run stands for.
func (x *Run) Fire(ctx context.Context, t Timer, w *Work) error {
	look := x.Open
	if !t.Own { // another process has set the timer since the run was in hand here, if it ever was
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

// leftToOwner reports whether the timers of a run that is not in hand here are the business of another process, which performs
// something of it. It saves loading the run in each round in which a timer of it is overdue.
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

// OpenTimers returns the timers that this process fires later; one that is due and was not fired is left to others.
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
