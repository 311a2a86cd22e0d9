package graph

import (
	"context"
	"errors"
	"strings"

	"github.com/workflows-engine/workflows-engine/graph/admit"
	"github.com/workflows-engine/workflows-engine/graph/execution"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/graph/runview"
)

// delivery is what submit, resume and signal have in common: an input from outside for a run that waits for it.
type delivery struct {
	id     string
	caller Caller
	// signal is the name of a signal, which a run may keep until it waits for it; kept is how well that fits the run itself.
	signal string
	kept   admit.Fit
	// input makes the input for the run that takes it: the one with the id above, or a subworkflow below it.
	input func(target string) machine.Input
	// fit says how well a wait of a run fits the input.
	fit func(id string, w machine.Wait) admit.Fit
	// invalid is the code for arguments that do not belong to the run, unknown that for unknown runs.
	invalid, unknown problem.Code
	// repeated returns the error of a refused call, nil if the same input was taken before.
	repeated func(context.Context, error) error
	// before, unless nil, reports whether the same input was taken before, where nothing else would refuse it.
	before func(context.Context, *execution.Run) (taken bool, err error)
}

// deliver applies an input to a run, or to the subworkflow of it that waits for it, and answers where the run stands.
func (r *Runner) deliver(ctx context.Context, d delivery) (*Run, error) {
	if err := r.enterToWrite(ctx); err != nil {
		return nil, err
	}
	defer r.tasks.Done()
	if strings.TrimSpace(d.id) == "" {
		return nil, problem.New(d.invalid, "the execution id is missing")
	}
	if err := admit.Mode(d.caller.Mode, d.invalid); err != nil {
		return nil, err
	}
	x := r.runs.Hold(d.id)
	defer r.runs.Drop(x)
	var again bool
	var err error
	if d.before != nil {
		again, err = d.before(ctx, x)
	}
	if err == nil && !again {
		again, err = r.deliverOnce(ctx, x, d)
	}
	if err != nil {
		return nil, admit.UnreadableAs(admit.NotFoundAs(err, d.unknown, d.id), d.invalid)
	}
	run, err := r.answer(ctx, x, d.caller.Wait)
	if run != nil {
		run.Repeated = again
		runview.ModeKept(run, d.caller.Mode)
	}
	return run, err
}

// deliverOnce applies the input to the run or a subworkflow. again says that it was refused because it was taken before.
func (r *Runner) deliverOnce(ctx context.Context, x *execution.Run, d delivery) (again bool, err error) {
	done := false
	err = r.with(ctx, x, func(w *execution.Work) (err error) {
		done, err = d.deliverHere(ctx, x, w)
		return err
	})
	if err == nil && !done {
		err = r.deliverBelow(ctx, x, d)
	}
	if err == nil || !admit.MayRepeat(err) {
		return false, err
	}
	err = d.repeated(ctx, err)
	return err == nil, err
}

// deliverHere applies the input to the run itself, unless it may be for a subworkflow.
func (d *delivery) deliverHere(ctx context.Context, x *execution.Run, w *execution.Work) (done bool, err error) {
	if err := x.Admit(ctx, d.caller.verified(), d.invalid, false); err != nil {
		return false, err
	}
	if !x.Ended() {
		if err := x.FireDue(ctx, w); err != nil {
			return false, err
		}
	}
	if x.Machine() != nil && x.HasChildren() && !d.awaitedBy(x) {
		d.kept = admit.KeptFit(d.signal, x.Machine())
		return false, nil
	}
	err = d.apply(ctx, x, w)
	if err != nil && x.HasChildren() && d.overtaken(x, err) {
		return false, nil
	}
	return true, err
}

func (d *delivery) apply(ctx context.Context, x *execution.Run, w *execution.Work) error {
	return x.Apply(ctx, execution.Input{Input: d.input(x.ID()), Mode: d.caller.Mode}, w)
}

// overtaken reports whether an input was refused that fitted because another one ended the wait in the meantime. A
// subworkflow may wait for the same.
func (d *delivery) overtaken(x *execution.Run, refusal error) bool {
	return admit.IsRefusal(refusal) && (x.Machine() == nil || !d.awaitedBy(x))
}

// awaitedBy reports whether the run itself waits for the input.
func (d *delivery) awaitedBy(x *execution.Run) bool {
	for _, w := range x.Machine().Pending() {
		if d.fit(x.ID(), w) == admit.FitWhole {
			return true
		}
	}
	return false
}

// deliverBelow applies the input to the run or subworkflow that waits for it: the first that fits, or else the first that
// waits for an input of the kind, whose refusal then says what is wrong.
func (r *Runner) deliverBelow(ctx context.Context, x *execution.Run, d delivery) error {
	for {
		best, target := d.kept, x.ID()
		err := r.eachWait(ctx, x, func(id string, w machine.Wait) {
			if f := d.fit(id, w); f > best {
				best, target = f, id
			}
		})
		if err != nil {
			return err
		}
		again := false // the wait that fitted ended before the input came to it
		err = r.withID(ctx, target, func(t *execution.Run, w *execution.Work) error {
			err := d.apply(ctx, t, w)
			again = err != nil && best == admit.FitWhole && d.overtaken(t, err)
			return err
		})
		if !again {
			return err
		}
	}
}

// eachWait calls f for what a run and the subworkflows below it wait for, in branch order.
func (r *Runner) eachWait(ctx context.Context, x *execution.Run, f func(id string, w machine.Wait)) error {
	var waits []machine.Wait
	err := r.with(ctx, x, func(w *execution.Work) error {
		err := x.Refresh(ctx)
		if err == nil && x.Machine() != nil {
			err = x.FireDue(ctx, w)
		}
		if err == nil && x.Machine() != nil {
			waits = x.Machine().Pending()
		}
		return err
	})
	if err != nil {
		return err
	}
	for _, w := range waits {
		f(x.ID(), w)
		if w.Kind != machine.WaitChild {
			continue
		}
		c := r.runs.Hold(w.ChildExecutionID)
		err := r.eachWait(ctx, c, f)
		r.runs.Drop(c)
		if err != nil && !errors.Is(err, problem.ExecutionNotFound) {
			return err
		}
	}
	return nil
}
