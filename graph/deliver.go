package graph

import (
	"context"
	"errors"
	"strings"

	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
)

// delivery is what submit, resume and signal have in common: an input from outside for a run that waits for it.
type delivery struct {
	id     string
	caller Caller
	// input makes the input for the run that takes it: the one with the id above, or a subworkflow below it.
	input func(target string) machine.Input
	// wanted says how well a wait of a run fits the input.
	wanted func(id string, w machine.Wait) fit
	// invalid is the code for arguments that do not belong to the run, unknown that for unknown runs.
	invalid, unknown problem.Code
	// repeated gives the error for a refused call, none if the same input was taken before.
	repeated func(context.Context, error) error
	// before, unless nil, says whether the same input was taken before, where nothing else would refuse it.
	before func(context.Context) (taken bool, err error)
}

// fit says how well a wait fits an input.
type fit int

const (
	fitNot  fit = iota // another kind of wait
	fitKind            // the kind of wait, but not the one that is named
	fitName            // the one that is named, but another branch, attempt or run of it
	fitWell
)

// deliver gives an input to a run, or to the subworkflow of it that waits for it, and answers where the run stands.
func (r *Runner) deliver(ctx context.Context, d delivery) (*Run, error) {
	if err := r.enter(); err != nil {
		return nil, err
	}
	defer r.tasks.Done()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if strings.TrimSpace(d.id) == "" {
		return nil, problem.New(d.invalid, "execution_id is missing")
	}
	if err := checkMode(d.caller.Mode, d.invalid); err != nil {
		return nil, err
	}
	x := r.runs.hold(d.id)
	defer r.runs.drop(x)
	var again bool
	var err error
	if d.before != nil {
		again, err = d.before(ctx)
	}
	if err == nil && !again {
		again, err = r.deliverOnce(ctx, x, d)
	}
	if err != nil {
		return nil, unreadableAs(notFoundAs(err, d.unknown, d.id), d.invalid)
	}
	run, err := r.answer(ctx, x, d.caller.Wait)
	if run != nil {
		run.Repeated = again
	}
	return run, err
}

// deliverOnce gives the input to the run or a subworkflow. again says that it was refused because it was taken before.
func (r *Runner) deliverOnce(ctx context.Context, x *run, d delivery) (again bool, err error) {
	done, err := r.deliverHere(ctx, x, d)
	if err == nil && !done {
		err = r.deliverBelow(ctx, x, d)
	}
	if err == nil || !mayRepeat(err) {
		return false, err
	}
	err = d.repeated(ctx, err)
	return err == nil, err
}

// mayRepeat tells refusals that a repeated call may meet.
func mayRepeat(err error) bool {
	p, ok := problem.As(err)
	if !ok {
		return false
	}
	switch p.Code {
	case problem.SubmitNotAwaiting, problem.SubmitNodeMismatch, problem.SubmitParallelMismatch, problem.InvalidResumePayload,
		problem.SignalNotAwaiting, problem.SignalNameMismatch, problem.SignalValidationError:
		return true
	default:
		return false
	}
}

// deliverHere gives the input to the run itself, unless it may be for a subworkflow.
func (r *Runner) deliverHere(ctx context.Context, x *run, d delivery) (done bool, err error) {
	var y yield
	x.mu.Lock()
	done, err = x.deliver(ctx, d, &y)
	x.mu.Unlock()
	r.carry(ctx, x, &y)
	return done, err
}

func (x *run) deliver(ctx context.Context, d delivery, y *yield) (done bool, err error) {
	if err := x.admit(ctx, d.caller, d.invalid, false); err != nil {
		return false, err
	}
	if !x.ended() {
		if err := x.visit(ctx, y); err != nil {
			return false, err
		}
	}
	if x.m != nil && len(x.children) > 0 && !x.wants(d) {
		return false, nil
	}
	err = x.take(ctx, d, y)
	if err != nil && len(x.children) > 0 && x.overtaken(d, err) {
		return false, nil
	}
	return true, err
}

// overtaken reports whether an input was refused that fitted well because another one ended the wait in the meantime.
// A subworkflow may wait for the same.
func (x *run) overtaken(d delivery, refusal error) bool {
	return isRefusal(refusal) && (x.m == nil || !x.wants(d))
}

// take gives the input to the run.
func (x *run) take(ctx context.Context, d delivery, y *yield) error {
	return x.apply(ctx, step{in: d.input(x.id), mode: d.caller.Mode}, y)
}

// wants reports whether the run itself waits for the input.
func (x *run) wants(d delivery) bool {
	for _, w := range x.m.Pending() {
		if d.wanted(x.id, w) == fitWell {
			return true
		}
	}
	return false
}

// deliverBelow gives the input to the run or subworkflow that waits for it: the first that fits well, or else the
// first that waits for an input of the kind, whose refusal then says what is wrong.
func (r *Runner) deliverBelow(ctx context.Context, x *run, d delivery) error {
	for {
		again, err := r.deliverBelowOnce(ctx, x, d)
		if !again {
			return err
		}
	}
}

// deliverBelowOnce is deliverBelow; again says that the wait that fitted well ended before the input came to it.
func (r *Runner) deliverBelowOnce(ctx context.Context, x *run, d delivery) (again bool, err error) {
	best, target := fitNot, x.id
	err = r.eachWait(ctx, x, func(id string, w machine.Wait) {
		if f := d.wanted(id, w); f > best {
			best, target = f, id
		}
	})
	if err != nil {
		return false, err
	}
	t := r.runs.hold(target)
	defer r.runs.drop(t)
	var y yield
	t.mu.Lock()
	err = t.take(ctx, d, &y)
	again = err != nil && best == fitWell && t.overtaken(d, err)
	t.mu.Unlock()
	r.carry(ctx, t, &y)
	return again, err
}

// eachWait calls f for what a run and the subworkflows below it wait for, in branch order.
func (r *Runner) eachWait(ctx context.Context, x *run, f func(id string, w machine.Wait)) error {
	var y yield
	var waits []machine.Wait
	x.mu.Lock()
	err := x.sync(ctx, nil)
	if err == nil && x.m != nil {
		err = x.visit(ctx, &y)
	}
	if err == nil && x.m != nil {
		waits = x.m.Pending()
	}
	x.mu.Unlock()
	r.carry(ctx, x, &y)
	if err != nil {
		return err
	}
	for _, w := range waits {
		f(x.id, w)
		if w.Kind != machine.WaitChild {
			continue
		}
		c := r.runs.hold(w.ChildExecutionID)
		err := r.eachWait(ctx, c, f)
		r.runs.drop(c)
		if err != nil && !errors.Is(err, problem.ExecutionNotFound) {
			return err
		}
	}
	return nil
}

// notFoundAs gives the code that a call has for unknown runs.
func notFoundAs(err error, code problem.Code, id string) error {
	if !errors.Is(err, problem.ExecutionNotFound) || history.IsBeingDeleted(err) {
		return err
	}
	text := "no run has the id %q"
	if code == problem.InvalidResumePayload {
		text = "cannot resume: no run has the id %q"
	}
	return problem.New(code, text, id).
		WithPlace(problem.Place{ExecutionID: id}).
		WithHint("Check the id; workflow_list shows the runs.")
}

// unreadableAs gives the code that a call has for a run whose records cannot be read (spec: execution, 10.7).
func unreadableAs(err error, code problem.Code) error {
	if !errors.Is(err, problem.HistoryNewer) {
		return err
	}
	p, _ := problem.As(err)
	e := problem.New(code, "the run cannot be read").WithCause(err)
	e.At, e.Hint = p.At, p.Hint
	return e
}
