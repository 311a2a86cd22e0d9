package execution

import (
	"cmp"
	"context"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/graph/runstate"
	"github.com/workflows-engine/workflows-engine/graph/trace"
)

// The causes with which the context of an attempt ends, besides that of Environment.Context; see context.Cause.
var (
	// ErrUnwanted: the run has ended, was cancelled, or goes on without this outcome.
	ErrUnwanted = problem.New(problem.ActivityCancelled, "the outcome is not wanted any more")
	// ErrLeaseLost: another process drives the run now, or may.
	ErrLeaseLost = problem.New(problem.ActivityCancelled, "another process has taken the run over")
	// ErrDeadline: the attempt's deadline has passed.
	ErrDeadline = problem.New(problem.Timeout, "the attempt did not end by its deadline")
)

// Attempt is one effect that this process performs: an attempt in flight.
type Attempt struct {
	Key    string
	Effect machine.Effect
	// Config is the run's as of the request.
	Config machine.Config
	// StartedHere is the run's as of when the attempt was begun.
	StartedHere bool
	// Context ends when the outcome is not wanted any more.
	Context context.Context
	cancel  context.CancelCauseFunc
	// Done, if not nil, gives back the turn that the attempt has had.
	Done func()
	// restarted is when an attempt that another process had begun was begun again here; zero for what was requested here.
	restarted time.Time
}

// Release frees the attempt's context once it is over.
func (a *Attempt) Release() {
	a.cancel(ErrUnwanted)
	if a.Done != nil {
		a.Done()
	}
}

// Repeated reports whether another flight of the attempt may have come before this one.
func (a *Attempt) Repeated() bool { return !a.restarted.IsZero() }

// late reports whether the attempt's deadline has passed.
func (a *Attempt) late(now time.Time) bool {
	deadline := a.Effect.Base().Deadline
	return !deadline.IsZero() && !now.Before(deadline)
}

// begin notes that this process performs an effect. The context is made here, so that whatever ends the attempt from now on
// reaches the executor, even before it has been called.
func (x *Run) begin(e machine.Effect, w *Work) *Attempt {
	a := &Attempt{Key: e.Key(), Effect: e, Config: x.m.Config(), StartedHere: x.startedHere}
	// A subworkflow has these from its parent, also where the parent was loaded again since it began.
	a.Config.Title, a.Config.Labels, a.Config.Notify = x.exec.Title, x.exec.Labels, x.exec.Notify
	parent := x.env.Context
	if x.Owned() {
		parent = x.env.Lease.Alive(x.process)
	}
	a.Context, a.cancel = context.WithCancelCause(trace.With(parent, a.Config.TraceParent))
	if x.attempts == nil {
		x.attempts = map[string]*Attempt{}
	}
	x.attempts[a.Key] = a
	w.Begin = append(w.Begin, a)
	return a
}

// abort ends an attempt whose outcome is not wanted any more, and notes a subworkflow to be cancelled.
func (x *Run) abort(key string, w *Work) {
	if a := x.attempts[key]; a != nil {
		cause := ErrUnwanted
		if a.late(x.env.Now()) {
			cause = ErrDeadline
		}
		a.cancel(cause)
		delete(x.attempts, key)
	}
	if child, ok := x.children[key]; ok {
		delete(x.children, key)
		w.CancelChildren = append(w.CancelChildren, child)
	}
}

// abortAll ends all attempts.
func (x *Run) abortAll(cause error) {
	for key, a := range x.attempts {
		a.cancel(cause)
		delete(x.attempts, key)
	}
}

// abortUnawaited ends the attempts that a freshly loaded machine does not wait for. Those that go on keep their deadlines.
func (x *Run) abortUnawaited() {
	if len(x.attempts) == 0 {
		return
	}
	awaited := map[string]bool{}
	for _, e := range x.m.InFlight() {
		awaited[e.Key()] = true
	}
	for _, t := range x.m.Timers() {
		awaited[t.Key] = x.m.Poll(t.Key) != nil
	}
	for key, a := range x.attempts {
		switch {
		case !awaited[key] && x.queueAgain(a):
		case !awaited[key]:
			a.cancel(ErrUnwanted)
			delete(x.attempts, key)
		case !a.restarted.IsZero():
			x.m.Restart(key, a.restarted)
		}
	}
}

// queueAgain makes a freshly loaded machine wait for the turn for which an attempt waits here, and reports whether it does. What
// another process owns has been begun there.
func (x *Run) queueAgain(a *Attempt) bool {
	e, ok := a.Effect.(*machine.TurnEffect)
	if !ok || e.Timer == "" && !x.Owned() {
		return false
	}
	turn := x.m.Queue(cmp.Or(e.Timer, e.EffectKey))
	return turn != nil && turn.Key() == a.Key
}

// redispatch begins what is in flight and not performed here, as far as this process can perform it. Such an attempt has its
// full time again, since it is performed from its beginning.
func (x *Run) redispatch(w *Work) {
	if x.state != runstate.Claimed {
		return
	}
	x.become(runstate.Driving)
	now := x.env.Now()
	for _, e := range x.m.InFlight() {
		if x.attempts[e.Key()] != nil || !x.performs(e) {
			continue
		}
		if turn := x.m.Queue(e.Key()); turn != nil {
			e = turn
		} else if again := x.m.Restart(e.Key(), now); again != nil {
			e = again
		}
		x.begin(e, w).restarted = now
	}
	// Other processes leave the run's timers to its owner from now on, those that were set before too.
	x.env.Observer.Timers(x, x.m.Timers())
}

// Attempts returns the number of attempts in flight here.
func (x *Run) Attempts() int { return len(x.attempts) }

// Performing reports whether an attempt is in flight here, and its outcome wanted.
func (x *Run) Performing(a *Attempt) bool { return x.attempts[a.Key] == a }

// StartsChild reports whether a subworkflow is about to be started here.
func (x *Run) StartsChild() bool {
	for _, a := range x.attempts {
		if _, isChild := a.Effect.(*machine.ChildEffect); isChild {
			return true
		}
	}
	return false
}
