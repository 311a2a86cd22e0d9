package run

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"

	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/internal/admit"
	"github.com/workflows-engine/workflows-engine/graph/internal/work"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
)

// Input is one input for a run.
type Input struct {
	machine.Input
	// Mode, if not "", is the run's mode from this input on, if the input is accepted.
	Mode machine.Mode
	// Attempt is set for the outcome of an effect that this process performed. The outcome counts only while the attempt is in flight.
	Attempt *work.Attempt
	// fenced rejects the input if another process owns the run when it is recorded.
	fenced bool
	// short records the input before the walk that follows it, which takes long.
	short bool
	// once returns ErrConflict instead of deciding again.
	once bool
}

// ErrConflict reports that another process wrote first, so that the caller has to decide again.
var ErrConflict = errors.New("another process wrote first")

// Apply passes an input to the machine, commits the resulting records and adds the consequences to w. It decides again whenever another
// process wrote first. An error other than the store's is the machine's rejection, decided on the newest history; then nothing has
// changed.
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
		if err == nil || in.once || !errors.Is(err, ErrConflict) {
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
	case owned && !x.Owned(): // the new owner records the outcome
		answered.Cancel(work.ErrLeaseLost)
	default:
		x.attempts[answered.Key] = answered
	}
	return err
}

// driveAbandoned continues a run whose owner is gone, after an input was rejected.
func (x *Run) driveAbandoned(ctx context.Context, w *Work) {
	if x.Owned() || !x.inFlightElsewhere() {
		return
	}
	if err := x.TakeOver(ctx, false, w); err != nil {
		x.env.Log.Warn("run not claimed", LogRun, x.id, LogError, err)
	}
}

// answered removes the attempt that an input answers, before the commit checks whether attempts are left.
func (x *Run) answered(in Input) *work.Attempt {
	key := ""
	switch in := in.Input.(type) {
	case machine.Outcome:
		key = in.Key
	case machine.StepsRecorded:
		if !in.Rests() {
			return nil // the attempt continues
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

// Finish applies the outcome of an attempt. work.ErrUnwanted reports that the outcome comes too late.
func (x *Run) Finish(ctx context.Context, a *work.Attempt, in machine.Input, w *Work) error {
	if x.performing(a) && a.Late(x.env.Now()) && (x.m == nil || !x.m.Walking()) {
		if err := x.fireMine(ctx, w); err != nil {
			return err
		}
	}
	if !x.performing(a) {
		if x.env.Context.Err() == nil {
			x.env.Log.Info("late outcome dropped", LogRun, x.id, LogKey, a.Key)
		}
		return work.ErrUnwanted
	}
	err := x.Apply(ctx, Input{Input: in, Attempt: a}, w)
	if errors.Is(err, work.ErrUnwanted) && x.m != nil {
		// The outcome is recorded already, but its consequences are not performed yet.
		if e := x.commitUnrecorded(ctx, w); e != nil && !errors.Is(e, ErrConflict) {
			return e
		}
		if x.m != nil {
			x.redispatch(w)
		}
	}
	return err
}

// AwaitsTask reports whether the run waits for a task at an agent. It assumes so for a run that is not loaded.
func (x *Run) AwaitsTask(id string) bool {
	if x.m == nil {
		return !x.Ended()
	}
	return slices.ContainsFunc(x.m.Pending(), func(w machine.Wait) bool { return w.Task != nil && w.Task.ID == id })
}

// Beginning describes a new run.
type Beginning struct {
	Program *definition.Program
	// Children are the definitions of its subworkflows.
	Children []history.StoredDefinition
	Config   machine.Config
	Input    map[string]any
	// StartedHere makes the run fail here if it needs an executor that this process lacks.
	StartedHere bool
	// Signal, unless nil, is applied before the first commit. If the run rejects it, nothing is stored.
	Signal *machine.Signal
}

// Begin writes the first records of a new run, and stores its definition and those of its subworkflows. ErrConflict reports that a run with
// this id exists.
func (x *Run) Begin(ctx context.Context, n Beginning, w *Work) error {
	if x.exec.Seq > 0 {
		// The run is known here. If it is gone from the store, forget it.
		switch _, err := x.behind(ctx); {
		case err == nil:
			return ErrConflict
		case !errors.Is(err, problem.ExecutionNotFound):
			return err
		}
		x.forget()
	}
	config := n.Config
	x.setExecution(history.Execution{ID: x.id, Parent: config.Parent, Queue: config.Queue})
	x.prior = history.Prior{}
	x.prog, x.unstored, x.unstoredChildren = n.Program, admit.StoredForm(n.Program), n.Children
	config.Limits = x.limits()
	if n.Signal != nil {
		config.Limits.StretchUnits = math.MaxInt // up to the first wait, which may be for the signal
	}
	var rejection error
	begin := func() error {
		now := x.env.Now()
		x.m = machine.Start(n.Program, config, n.Input, now)
		if n.Signal != nil && !x.m.Stopped() {
			rejection = x.m.Handle(*n.Signal, now)
		}
		return nil
	}
	if _ = x.decide(false, begin); x.m.Stopped() && x.env.Context.Err() == nil {
		_ = x.decide(true, begin)
	}
	if n.Signal != nil {
		rejection = NotStarted(rejection)
		x.m.SetLimits(config.MaxVisits, x.limits())
	}
	x.lastStatus, x.sincePosition, x.startedHere = "", 0, n.StartedHere
	x.become(Following)
	b := x.m.Ready()
	Sign(ctx, b.Records)
	if n.Signal != nil {
		b.Effects = slices.DeleteFunc(b.Effects, func(e machine.Effect) bool { return slices.Contains(b.Abandoned, e.Key()) })
	}
	err := cmp.Or(rejection, admit.RoomToStart(&x.exec, x.env.Limits, "input", n.Input, b.Records))
	if x.m.Stopped() {
		err = context.Cause(x.env.Context)
	}
	if err == nil {
		err = x.commit(ctx, b, intent{mayOwn: true}, w)
	} else {
		x.forget()
	}
	if err != nil {
		x.setExecution(history.Execution{})
		x.unstored, x.unstoredChildren, x.startedHere = nil, nil, false
	}
	return err
}

// NotStarted returns the error of a start whose signal was rejected, nil without a rejection.
func NotStarted(rejection error) error {
	if errors.Is(rejection, machine.ErrWalking) {
		rejection = problem.New(problem.RunComputing, "it computes for too long before its first wait")
	}
	p, ok := problem.As(rejection)
	if !ok {
		return rejection
	}
	told := *p
	told.Message = "the new run would reject the signal: " + p.Message
	return told.WithHint("Nothing was started. A run takes the signal if it awaits it at its first wait, or keeps early signals of its name (extension early_signals).")
}
