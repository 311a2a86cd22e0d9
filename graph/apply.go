package graph

import (
	"context"
	"errors"

	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// step is one input for a machine.
type step struct {
	in machine.Input
	// mode, if not "", is the run's mode from this input on, provided that it is accepted.
	mode machine.Mode
	// flight is set for the outcome of an effect that this process performed: it counts only while the flight is on.
	flight *flight
}

// apply hands an input to the machine and commits what comes of it, adding to y what is to be done then. It decides
// again whenever another process turns out to have written first. An error that is not the store's is the machine's
// refusal, decided on the newest history: then nothing has changed.
func (x *run) apply(ctx context.Context, s step, y *yield) error {
	for {
		if err := x.open(ctx, nil); err != nil {
			return err
		}
		if x.ended() {
			return refuseEnded(x, s.in)
		}
		if s.flight != nil && x.flights[s.flight.key] != s.flight {
			return errOver
		}
		err := x.commitLeft(ctx, y)
		if err == nil {
			err = x.applyOnce(ctx, s, y)
		}
		if err == nil {
			return nil
		}
		if !errors.Is(err, errAgain) {
			return err
		}
	}
}

// errAgain says that another process wrote first: what was decided has to be decided again.
var errAgain = errors.New("decide again")

func (x *run) applyOnce(ctx context.Context, s step, y *yield) error {
	mode := x.m.Config().Mode
	drives, err := x.claim(ctx)
	if err != nil {
		return err
	}
	if s.mode != "" {
		x.m.SetMode(s.mode)
	}
	var b machine.Batch
	if err = x.m.Handle(s.in, x.r.now()); err != nil {
		x.m.SetMode(mode)
	} else {
		b = x.m.Ready()
		if err = x.refuseFull(s.in, b); err != nil {
			x.forget()
		}
	}
	if err != nil {
		switch stale, serr := x.behind(ctx); {
		case serr != nil:
			return serr
		case stale:
			x.forget()
			return errAgain
		case x.m != nil:
			x.settleSeized(ctx, y)
		}
		return err
	}
	held := x.held
	answered := x.land(s)
	if err := x.commit(ctx, b, drives, y); err != nil {
		if held && !x.held { // deposed: the outcome is the other process's to record
			if answered != nil {
				answered.cancel(errDeposed)
			}
			return err
		}
		x.relaunch(answered)
		return err
	}
	return nil
}

// settleSeized goes on with a run whose lease was taken from a driver that is gone for an input that then changed nothing.
func (x *run) settleSeized(ctx context.Context, y *yield) {
	if !x.adopting {
		return
	}
	if x.adopt(y); len(x.flights) == 0 {
		x.giveBackAsOf(lasting(ctx), x.driven)
	}
}

// land takes the flight that an input answers out of those in the air, before the commit decides whether any is left.
func (x *run) land(s step) *flight {
	key := ""
	switch in := s.in.(type) {
	case machine.Outcome:
		key = in.Key
	case machine.ChildEnded:
		key = in.Key
		delete(x.children, key)
	case machine.ChildRefused:
		key = in.Key
		delete(x.children, key)
	}
	if s.flight != nil {
		key = s.flight.key
	}
	f := x.flights[key]
	delete(x.flights, key)
	return f
}

// relaunch puts a flight back whose answer could not be committed.
func (x *run) relaunch(f *flight) {
	if f != nil {
		x.flights[f.key] = f
	}
}

// refuseEnded is the refusal of an input to a run that has ended, by the kind of the input.
func refuseEnded(x *run, in machine.Input) error {
	code := problem.HistoryConflict
	what := "takes no input"
	switch in := in.(type) {
	case machine.Outcome:
		code, what = problem.SubmitNotAwaiting, "awaits no activity"
	case machine.Resume:
		return problem.New(problem.InvalidResumePayload, "cannot resume: the run is %s", x.exec.Phase).
			WithPlace(problem.Place{ExecutionID: x.id}).WithHint(hintStatus)
	case machine.Signal:
		code, what = problem.SignalNotAwaiting, "awaits no signal"
	case machine.Cancel:
		code, what = problem.CancelNotAllowed, "cannot be cancelled"
	default:
		_ = in
	}
	return problem.New(code, "the run is %s and %s", x.exec.Phase, what).
		WithPlace(problem.Place{ExecutionID: x.id}).WithHint(hintStatus)
}

const hintStatus = "Ask workflow_status for its outcome."
