package run

import (
	"context"
	"errors"

	"github.com/workflows-engine/workflows-engine/graph/internal/admit"
	"github.com/workflows-engine/workflows-engine/graph/internal/work"
	"github.com/workflows-engine/workflows-engine/graph/machine"
)

// Input is one input for a run.
type Input struct {
	machine.Input
	// Mode, if not "", is the run's mode from this input on, provided that it is accepted.
	Mode machine.Mode
	// Attempt is set for the outcome of an effect that this process performed: it counts only while it is in flight.
	Attempt *work.Attempt
	// fenced refuses the input if another process owns the run by the time it is recorded.
	fenced bool
	// short records the input before any of the walk that follows is made: that takes long.
	short bool
}

// ErrConflict says that another process wrote first: what was decided has to be decided again.
var ErrConflict = errors.New("another process wrote first")

// Apply hands an input to the machine and commits what comes of it, adding to w what is to be done then. It decides again
// whenever another process turns out to have written first. An error that is not the store's is the machine's refusal, decided
// on the newest history: then nothing has changed.
func (x *Run) Apply(ctx context.Context, in Input, w *Work) error {
	for {
		if err := x.Open(ctx); err != nil {
			return err
		}
		if x.Ended() {
			return admit.Ended(&x.exec, in.Input)
		}
		if in.Attempt != nil && !x.performing(in.Attempt) {
			return work.ErrUnwanted
		}
		err := x.commitUnrecorded(ctx, w)
		if err == nil {
			err = x.applyOnce(ctx, in, w)
		}
		switch {
		case errors.Is(err, machine.ErrWalking):
			if err = x.awaitWalk(ctx, in.Attempt != nil, w); err == nil {
				err = ErrConflict
			}
		case errors.Is(err, machine.ErrAbandoned):
			if err = x.afterAbandoning(); err == nil {
				err, in.short = ErrConflict, !machine.GoesOn(in.Input)
			}
		}
		x.noteWalk()
		if err == nil || !errors.Is(err, ErrConflict) {
			return err
		}
	}
}

func (x *Run) applyOnce(ctx context.Context, in Input, w *Work) error {
	mayOwn, err := x.mayOwn(ctx)
	if err != nil {
		return err
	}
	mode := x.m.Config().Mode
	if in.Mode != "" {
		x.m.SetMode(in.Mode)
	}
	var b machine.Batch
	handle := func() error { return x.m.Handle(in.Input, x.env.Now()) }
	if r, ok := in.Input.(machine.Resume); ok && !x.m.Walking() {
		err = x.env.CheckAnswer.Of(ctx, x.env.Store, x.id, x.m.Pending(), r)
	}
	switch {
	case err != nil:
	case machine.GoesOn(in.Input):
		err = x.compute(handle)
	default:
		err = x.decide(in.short, handle)
	}
	if err != nil {
		x.m.SetMode(mode)
	} else {
		b = x.m.Ready()
		SignInput(ctx, in.Input, b.Records)
		if err = admit.Room(&x.exec, x.m, x.env.Limits, in.Input, b.Records); err != nil {
			x.forget()
		}
	}
	if errors.Is(err, machine.ErrAbandoned) {
		return err
	}
	if err != nil {
		switch stale, failed := x.behind(ctx); {
		case failed != nil:
			return failed
		case stale:
			x.forget()
			return ErrConflict
		case x.m != nil && mayOwn:
			x.driveAbandoned(ctx, w)
		}
		return err
	}
	owned, answered := x.Owned(), x.answered(in)
	err = x.commit(ctx, b, intent{mayOwn: mayOwn, fenced: in.fenced}, w)
	switch {
	case err == nil || answered == nil:
	case owned && !x.Owned(): // the outcome is the new owner's to record
		answered.Cancel(work.ErrLeaseLost)
	default:
		x.attempts[answered.Key] = answered
	}
	return err
}

// driveAbandoned goes on with a run whose driver is gone, after an input that was refused.
func (x *Run) driveAbandoned(ctx context.Context, w *Work) {
	if x.Owned() || !x.inFlightElsewhere() {
		return
	}
	if err := x.TakeOver(ctx, false, w); err != nil {
		x.env.Log.Warn("run not taken over", LogRun, x.id, LogError, err)
	}
}

// answered takes the attempt that an input answers out of those in flight, before the commit decides whether any is left.
func (x *Run) answered(in Input) *work.Attempt {
	key := ""
	switch in := in.Input.(type) {
	case machine.Outcome:
		key = in.Key
	case machine.StepsRecorded:
		if !in.Rests() {
			return nil // it goes on
		}
	case machine.ChildEnded:
		key = in.Key
		delete(x.children, key)
	case machine.ChildRefused:
		key = in.Key
		delete(x.children, key)
	}
	if in.Attempt != nil {
		key = in.Attempt.Key
	}
	a := x.attempts[key]
	delete(x.attempts, key)
	return a
}
