package run

import (
	"cmp"

	"github.com/workflows-engine/workflows-engine/graph/internal/work"
	"github.com/workflows-engine/workflows-engine/graph/machine"
)

// begin adds an attempt of an effect to those that this process performs.
func (x *Run) begin(e machine.Effect, w *Work) *work.Attempt {
	parent := x.env.Context
	if x.Owned() {
		parent = x.env.Process.Alive(x.process)
	}
	config := x.m.Config()
	// A subworkflow inherits these from its parent, which may have been reloaded since the request.
	config.Title, config.Labels, config.Notify, config.Queue = x.exec.Title, x.exec.Labels, x.exec.Notify, x.exec.Queue
	a := work.NewAttempt(parent, e, config, x.startedHere)
	switch e.(type) {
	case *machine.ActivityEffect, *machine.DelegateEffect:
		a.Done = x.place()
	}
	if x.attempts == nil {
		x.attempts = map[string]*work.Attempt{}
	}
	x.attempts[a.Key] = a
	w.Begin = append(w.Begin, a)
	return a
}

// abort ends an attempt whose outcome is not wanted any more. For a subworkflow, it requests a cancel.
func (x *Run) abort(key string, w *Work) {
	if a := x.attempts[key]; a != nil {
		cause := work.ErrUnwanted
		if a.Late(x.env.Now()) {
			cause = work.ErrDeadline
		}
		a.Cancel(cause)
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
		a.Cancel(cause)
		delete(x.attempts, key)
	}
}

// abortUnawaited ends the attempts that a freshly loaded machine does not wait for. The others keep their deadlines.
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
			a.Cancel(work.ErrUnwanted)
			delete(x.attempts, key)
		case a.Repeated():
			x.m.Restart(key, a.Restarted)
		}
	}
}

// queueAgain restores a freshly loaded machine's wait for a turn that an attempt here still waits for, and reports whether it did. The
// owner has already begun the attempts of a run owned elsewhere.
func (x *Run) queueAgain(a *work.Attempt) bool {
	e, ok := a.Effect.(*machine.TurnEffect)
	if !ok || e.Timer == "" && !x.Owned() {
		return false
	}
	turn := x.m.Queue(cmp.Or(e.Timer, e.EffectKey))
	return turn != nil && turn.Key() == a.Key
}

// redispatch begins the effects in flight that this process can perform and does not perform yet. Each has its full time again, since it
// starts over. Requests that are not recorded yet come first: their attempts begin with the commit.
func (x *Run) redispatch(w *Work) {
	if x.state != Claimed || len(x.unrecorded.Records) > 0 {
		return
	}
	x.become(Driving)
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
		x.begin(e, w).Restarted = now
	}
	// From now on, other processes leave all timers of the run to its owner.
	x.env.Process.Timers(x, x.m.Timers())
}

// Attempts returns the number of attempts in flight here.
func (x *Run) Attempts() int { return len(x.attempts) }

// performing reports whether an attempt is in flight here, and its outcome wanted.
func (x *Run) performing(a *work.Attempt) bool { return x.attempts[a.Key] == a }

// StartsChild reports whether this process is about to start a subworkflow.
func (x *Run) StartsChild() bool {
	for _, a := range x.attempts {
		if _, isChild := a.Effect.(*machine.ChildEffect); isChild {
			return true
		}
	}
	return false
}
