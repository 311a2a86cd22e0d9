package graph

import (
	"context"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// The causes with which an executor's context ends, besides errClosed; see context.Cause.
var (
	// errOver: the run has ended, was cancelled, or goes on without this outcome.
	errOver = problem.New(problem.ActivityCancelled, "the outcome is not wanted any more")
	// errDeposed: another process drives the run now.
	errDeposed = problem.New(problem.ActivityCancelled, "another process has taken the run over")
	// errLate: the attempt's deadline has passed.
	errLate = problem.New(problem.Timeout, "the attempt did not end by its deadline")
)

// fly notes that this process performs an effect. Its context is made here, so that whatever ends the effect from now
// on reaches the executor, even before it has been called.
func (x *run) fly(e machine.Effect) *flight {
	f := &flight{key: e.Key(), effect: e, config: x.m.Config(), started: x.started}
	f.ctx, f.cancel = context.WithCancelCause(x.r.ctx)
	if x.flights == nil {
		x.flights = map[string]*flight{}
	}
	x.flights[f.key] = f
	return f
}

// adopt takes over what is in flight and not performed here, as far as this process can perform it. An attempt has its full
// time then, since it is performed from its beginning.
func (x *run) adopt(y *yield) {
	x.adopting = false
	now, timed := x.r.now(), false
	for _, e := range x.m.InFlight() {
		if x.flights[e.Key()] == nil && x.flies(e) {
			if again := x.m.Restart(e.Key(), now); again != nil {
				e, timed = again, true
			}
			f := x.fly(e)
			f.adopted = now
			y.flights = append(y.flights, f)
		}
	}
	if timed {
		x.r.alarms.set(x, x.m.Timers())
	}
}

// abandon ends a flight whose outcome is not wanted any more, and notes a subworkflow to be cancelled.
func (x *run) abandon(key string, y *yield) {
	if f := x.flights[key]; f != nil {
		cause := errOver
		if f.late(x.r.now()) {
			cause = errLate
		}
		f.cancel(cause)
		delete(x.flights, key)
	}
	if child, ok := x.children[key]; ok {
		delete(x.children, key)
		y.orphans = append(y.orphans, child)
	}
}

// landAll ends all flights.
func (x *run) landAll(cause error) {
	for key, f := range x.flights {
		f.cancel(cause)
		delete(x.flights, key)
	}
}

// landOthers ends the flights that a freshly loaded machine does not wait for. Those that go on keep their deadlines.
func (x *run) landOthers() {
	if len(x.flights) == 0 {
		return
	}
	awaited := map[string]bool{}
	for _, e := range x.m.InFlight() {
		awaited[e.Key()] = true
	}
	for _, t := range x.m.Timers() {
		awaited[t.Key] = x.m.Poll(t.Key) != nil
	}
	for key, f := range x.flights {
		switch {
		case !awaited[key]:
			f.cancel(errOver)
			delete(x.flights, key)
		case !f.adopted.IsZero():
			x.m.Restart(key, f.adopted)
		}
	}
}

// effectBase gives what an activity or delegate effect has in common with all others.
func effectBase(e machine.Effect) *machine.EffectBase {
	switch e := e.(type) {
	case *machine.ActivityEffect:
		return &e.EffectBase
	case *machine.DelegateEffect:
		return &e.EffectBase
	case *machine.PollEffect:
		return &e.EffectBase
	case *machine.ChildEffect:
		return &e.EffectBase
	default:
		return &machine.EffectBase{EffectKey: e.Key()}
	}
}

// late reports whether the attempt's deadline has passed.
func (f *flight) late(now time.Time) bool {
	deadline := effectBase(f.effect).Deadline
	return !deadline.IsZero() && !now.Before(deadline)
}

// callContext is the context for the executor: it ends at the attempt's deadline too, by the engine's clock.
func (f *flight) callContext(now time.Time) (context.Context, context.CancelFunc) {
	deadline := effectBase(f.effect).Deadline
	if deadline.IsZero() {
		return f.ctx, func() {}
	}
	return context.WithDeadlineCause(f.ctx, time.Now().Add(deadline.Sub(now)), errLate)
}
