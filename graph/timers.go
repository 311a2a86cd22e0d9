package graph

import (
	"context"
	"errors"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// Timers are rows in the store and outlive every process. This process wakes up for those of the runs that it had in
// hand; others are fired when somebody asks about their run, or by Recover and Options.Background.

// fireDue fires the run's timers whose time has come and that are this process's to fire. The run must be open. A timer
// that turns out to be over is nothing to speak of.
func (x *run) fireDue(ctx context.Context, y *yield) error {
	over := map[string]bool{}
	for {
		due, ok := x.nextDue(over)
		if !ok {
			return nil
		}
		over[due.Key] = true
		if e := x.m.Poll(due.Key); e != nil {
			if x.flights[e.Key()] == nil {
				y.flights = append(y.flights, x.fly(e))
			}
			continue
		}
		err := x.apply(ctx, step{in: machine.TimerFired{Key: due.Key}}, y)
		if err != nil && !errors.Is(err, problem.HistoryConflict) {
			return err
		}
	}
}

// nextDue gives a timer whose time has come and that this process may fire.
func (x *run) nextDue(except map[string]bool) (machine.Timer, bool) {
	if x.m == nil {
		return machine.Timer{}, false
	}
	ts := x.m.Timers()
	if len(ts) == 0 {
		return machine.Timer{}, false
	}
	now := x.r.now()
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

// firesAt gives when this process fires a timer, unless somebody does so before; mine is false if it never does. An attempt
// in process is timed out at its deadline where it is performed. Elsewhere, and where the agent of a task cannot be reached,
// its deadline is that of an attempt which nobody has taken up. A back-off and the polls of a task are left to a process that
// can perform the next attempt, or ask the agent.
func (x *run) firesAt(t machine.Timer) (at time.Time, mine bool) {
	w, ok := x.m.TimedWait(t.Key)
	switch {
	case !ok:
		return t.Due, true
	case (w.Kind == machine.WaitActivity || w.Kind == machine.WaitDelegate) && !w.Host && w.Task == nil:
		if x.flights[w.Key] != nil {
			return t.Due, true
		}
		return x.untaken(t.Due), true
	case x.started || x.lack(&w) == nil:
		return t.Due, true
	case w.Kind == machine.WaitBackoff || x.m.Poll(t.Key) != nil:
		return time.Time{}, false
	default:
		return x.untaken(t.Due), true
	}
}

// untaken is when an attempt in process with a deadline counts as one that nobody takes up. Any process times it out then,
// unless it can perform it, so that the bound which the author of the workflow has set holds even if nobody can. While the
// run is driven the attempt waits for the driver to be done with its own, or to be missed, and before this Runner was there,
// or while its host slept, it may be that there was nobody at all.
func (x *run) untaken(deadline time.Time) time.Time {
	since := deadline
	for _, t := range []time.Time{x.exec.UpdatedAt, x.driven, x.r.wakeful.since(x.r.now())} {
		if t.After(since) {
			since = t
		}
	}
	if now := x.r.now(); len(x.flights) > 0 && now.After(since) {
		since = now
	}
	return since.Add(takeoverTime)
}

// takeoverTime is how long what has nobody who performs it is left to those who can: the next round of Options.Background,
// anywhere, finds it well within. It is the same for all processes, whatever their Options.LeaseTTL.
const takeoverTime = 40 * time.Second

// visit fires what is due when somebody asks about an open run, unless that is the business of the process that
// drives it. If an attempt is due that was abandoned, or another beside it, and this process can perform it, it does so.
func (x *run) visit(ctx context.Context, y *yield) error {
	if gone, err := x.leaveWithParent(ctx, y); gone || err != nil {
		return err
	}
	if _, due := x.nextDue(nil); !due {
		return nil
	}
	if !x.held && x.elsewhere() {
		if driven, err := x.drivenAfar(ctx); err != nil || driven {
			return err
		}
		if _, due := x.nextDue(nil); !due {
			return nil // its driver has not been gone for long
		}
		if abandoned, err := x.abandoned(ctx); err != nil {
			return err
		} else if abandoned {
			return x.takeUp(ctx, y)
		}
	}
	held := x.held
	drives, err := x.claim(ctx)
	switch {
	case errors.Is(err, errAgain): // fireDue decides again
	case err != nil || !drives:
		return err
	case x.held && !held:
		// The driver before may have moved the deadline of an attempt that it took up, without a record.
		x.forget()
		if err := x.open(ctx, nil); err != nil {
			return err
		}
	}
	err = x.fireDue(ctx, y)
	if x.m != nil {
		x.settleSeized(ctx, y)
	}
	return err
}
