package graph

import (
	"context"
	"errors"

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
		if !t.Due.After(now) && !except[t.Key] && x.mayFire(t.Key) {
			return t, true
		}
	}
	return machine.Timer{}, false
}

// mayFire reports whether a timer is this process's to fire. An attempt in process is timed out where it is performed: while
// nobody performs it its time does not run (see adopt). A back-off and the polls of a task are left to a process that can
// perform the next attempt, or ask the agent.
func (x *run) mayFire(key string) bool {
	w, ok := x.m.TimedWait(key)
	switch {
	case !ok:
		return true
	case (w.Kind == machine.WaitActivity || w.Kind == machine.WaitDelegate) && !w.Host && w.Task == nil:
		return x.flights[w.Key] != nil
	default:
		return x.started || x.lack(&w) == nil
	}
}

// visit fires what is due when somebody asks about an open run, unless that is the business of the process that
// drives it.
func (x *run) visit(ctx context.Context, y *yield) error {
	if gone, err := x.leaveWithParent(ctx, y); gone || err != nil {
		return err
	}
	if _, due := x.nextDue(nil); !due {
		return nil
	}
	drives, err := x.claim(ctx)
	switch {
	case errors.Is(err, errAgain): // fireDue decides again
	case err != nil || !drives:
		return err
	}
	err = x.fireDue(ctx, y)
	if x.m != nil {
		x.settleSeized(ctx, y)
	}
	return err
}
