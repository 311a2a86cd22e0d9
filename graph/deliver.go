package graph

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/internal/admit"
	"github.com/workflows-engine/workflows-engine/graph/internal/process"
	"github.com/workflows-engine/workflows-engine/graph/internal/run"
	"github.com/workflows-engine/workflows-engine/graph/internal/work"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/graph/view"
	"github.com/workflows-engine/workflows-engine/history"
)

// delivery is the common part of submit, resume and signal: an input for a run that waits for it, or for its subworkflow.
type delivery struct {
	id     string
	caller Caller
	// signal is the name of a signal, which a run can keep for a later wait; kept rates that use of it by the run itself.
	signal string
	kept   admit.Fit
	// input returns the input for the run that accepts it: the run with the id above, or a subworkflow.
	input func(target string) machine.Input
	// applied, if not nil, is called with the run that has accepted the input, while the run is locked.
	applied func(executionID string)
	// fit rates how well a wait matches the input.
	fit func(id string, w machine.Wait) admit.Fit
	// invalid is the code for arguments that do not match the run, unknown the code for an unknown run.
	invalid, unknown problem.Code
	// repeated returns nil for an error of a call that repeats an accepted one, else the error to return.
	repeated func(context.Context, error) error
	// before, if not nil, reports whether the call repeats an accepted one. It is for inputs that the machine would accept twice.
	before func(context.Context, *run.Run) (taken bool, err error)
}

// deliver applies an input to a run, or to its subworkflow that waits for it, and returns the status.
func (r *Runner) deliver(ctx context.Context, d delivery) (*view.Run, error) {
	if err := r.enterToWrite(ctx); err != nil {
		return nil, err
	}
	defer r.p.Leave()
	if strings.TrimSpace(d.id) == "" {
		return nil, problem.New(d.invalid, "execution id is missing")
	}
	if err := admit.Mode(d.caller.Mode, d.invalid); err != nil {
		return nil, err
	}
	x := r.p.Runs.Hold(d.id)
	defer r.p.Runs.Drop(x)
	c := r.call(x, d.caller.Wait)
	var again bool
	err := r.settleAbove(ctx, d.id)
	if err == nil && d.before != nil {
		again, err = d.before(ctx, x)
	}
	if err == nil && !again {
		again, err = r.deliverOnce(ctx, x, d, c)
	}
	if err != nil {
		return nil, admit.UnreadableAs(admit.NotFoundAs(err, d.unknown, d.id), d.invalid)
	}
	run, err := c.Answer(ctx)
	if run != nil {
		run.Repeated = again
		view.ModeKept(run, d.caller.Mode)
	}
	return run, err
}

// deliverOnce applies the input to the run or a subworkflow. again reports that the call repeats an accepted one.
func (r *Runner) deliverOnce(ctx context.Context, x *run.Run, d delivery, c *process.Call) (again bool, err error) {
	done := false
	err = c.Apply(ctx, func(w *run.Work) (bool, error) {
		done, err = d.deliverHere(ctx, x, w)
		return done, err
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
func (d *delivery) deliverHere(ctx context.Context, x *run.Run, w *run.Work) (done bool, err error) {
	if err := x.Admit(ctx, d.caller.verified(), d.invalid); err != nil {
		return false, err
	}
	if !x.Ended() {
		if err := x.FireDue(ctx, w); err != nil {
			return false, err
		}
	}
	if err := x.AwaitWalk(ctx, w); err != nil {
		return false, err
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

func (d *delivery) apply(ctx context.Context, x *run.Run, w *run.Work) error {
	err := x.Apply(ctx, run.Input{Input: d.input(x.ID()), Mode: d.caller.Mode}, w)
	if err == nil && d.applied != nil {
		d.applied(x.ID())
	}
	return err
}

// overtaken reports whether an input was rejected because another one has ended its wait. A subworkflow may have the same wait.
func (d *delivery) overtaken(x *run.Run, refusal error) bool {
	return admit.IsRefusal(refusal) && (x.Machine() == nil || !d.awaitedBy(x))
}

// awaitedBy reports whether the run itself waits for the input.
func (d *delivery) awaitedBy(x *run.Run) bool {
	for _, w := range x.Machine().Pending() {
		if d.fit(x.ID(), w) == admit.FitWhole {
			return true
		}
	}
	return false
}

// deliverBelow applies the input to the run or subworkflow with the best matching wait, the first of equals. Without a full match, that run's
// error explains the mismatch.
func (r *Runner) deliverBelow(ctx context.Context, x *run.Run, d delivery) error {
	for {
		best, target := d.kept, x.ID()
		err := r.eachWait(ctx, x, true, func(id string, w machine.Wait) {
			if f := d.fit(id, w); f > best {
				best, target = f, id
			}
		})
		if err != nil {
			return err
		}
		again := false // the wait ended before the input reached it
		err = r.p.WithID(ctx, target, func(t *run.Run, w *run.Work) error {
			err := d.apply(ctx, t, w)
			again = err != nil && best == admit.FitWhole && d.overtaken(t, err)
			return err
		})
		if !again {
			return err
		}
	}
}

// eachWait calls f for the waits of a run and its subworkflows, in branch order. With settled it first lets active work reach its next wait:
// a run that is computing has no waits yet, and the end of a subworkflow must first reach its parent. Otherwise the result of a call would
// depend on how fast the call before it was processed.
func (r *Runner) eachWait(ctx context.Context, x *run.Run, settled bool, f func(id string, w machine.Wait)) error {
	found, err := r.waitsOf(ctx, x, settled, nil)
	for _, one := range found {
		f(one.id, one.Wait)
	}
	return err
}

// waitOf is a wait of the run with an id.
type waitOf struct {
	id string
	machine.Wait
}

// waitsOf appends the waits of a run and its subworkflows.
func (r *Runner) waitsOf(ctx context.Context, x *run.Run, settled bool, found []waitOf) ([]waitOf, error) {
	looked := map[string]bool{} // "begun" and "ended" with the id of a subworkflow: each is awaited once
again:
	var waits []machine.Wait
	err := r.p.With(ctx, x, func(w *run.Work) error {
		err := x.Refresh(ctx)
		if err == nil && x.Machine() != nil {
			err = x.FireDue(ctx, w)
		}
		if err == nil && settled {
			err = x.AwaitWalk(ctx, w)
		}
		if err == nil && x.Machine() != nil {
			waits = x.Machine().Pending()
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	all := found
	for _, w := range waits {
		all = append(all, waitOf{x.ID(), w})
		if w.Kind != machine.WaitChild {
			continue
		}
		var news bool
		if all, news, err = r.waitsOfChild(ctx, x, w.ChildExecutionID, settled, all, looked); err != nil {
			return nil, err
		}
		if news {
			goto again
		}
	}
	return all, nil
}

// beginPatience is how long an input waits for the start of a subworkflow that it may be for.
const beginPatience = 5 * time.Second

// waitsOfChild is waitsOf for a subworkflow of x. news reports that the waits of x may have changed: the subworkflow has started, or has
// ended and x has been notified.
func (r *Runner) waitsOfChild(ctx context.Context, x *run.Run, id string, settled bool, found []waitOf, looked map[string]bool) (all []waitOf, news bool, err error) {
	c := r.p.Runs.Hold(id)
	defer r.p.Runs.Drop(c)
	first := func(what string) bool {
		seen := looked[what+id]
		looked[what+id] = true
		return settled && !seen
	}
	all, err = r.waitsOf(ctx, c, settled, found)
	if errors.Is(err, problem.ExecutionNotFound) {
		if !first("begun ") {
			return found, false, nil
		}
		return found, true, r.awaitBegin(ctx, x, id)
	}
	if err != nil {
		return nil, false, err
	}
	c.Lock()
	news = c.Ended()
	c.Unlock()
	if news = news && first("ended "); news {
		err = r.p.NotifyParent(ctx, c)
	}
	return all, news, err
}

// awaitBegin waits for the start of a subworkflow that x is starting.
func (r *Runner) awaitBegin(ctx context.Context, x *run.Run, id string) error {
	var begun <-chan struct{}
	x.Lock()
	begun = x.Beginning(id)
	x.Unlock()
	if begun != nil {
		patience, cancel := context.WithTimeout(ctx, beginPatience)
		defer cancel()
		select {
		case <-begun:
		case <-patience.Done():
		}
	}
	return ctx.Err()
}

// settleAbove waits for background work of earlier calls to ancestors of a subworkflow: its start or its cancellation. It ignores unknown
// runs.
func (r *Runner) settleAbove(ctx context.Context, id string) error {
	above := history.Ancestors(id)
	slices.Reverse(above)
	for i, parent := range above {
		child := id
		if i+1 < len(above) {
			child = above[i+1]
		}
		_, err := r.p.Store.Execution(ctx, child)
		if errors.Is(err, problem.ExecutionNotFound) {
			err = r.p.WithID(ctx, parent, func(x *run.Run, w *run.Work) error { return x.AwaitWalk(ctx, w) })
			if err == nil {
				x := r.p.Runs.Hold(parent)
				err = r.awaitBegin(ctx, x, child)
				r.p.Runs.Drop(x)
			}
		}
		if err != nil {
			return err
		}
	}
	return r.endAbove(ctx, id)
}

// endAbove cancels the active descendants of an ended run, down to the subworkflow id: the background work that cancels them may not have
// reached them yet.
func (r *Runner) endAbove(ctx context.Context, id string) error {
	above := history.Ancestors(id)
	slices.Reverse(above)
	for _, below := range append(above, id)[1:] {
		exec, err := r.p.Store.Execution(ctx, below)
		var parent history.Execution
		if err == nil && exec.Parent != "" && !exec.Phase.Terminal() {
			parent, err = r.p.Store.Execution(ctx, exec.Parent)
		}
		if err == nil && parent.Phase.Terminal() {
			err = r.p.CancelChild(work.Detached(run.WithoutActor(ctx)), below, parent.ID)
		}
		if err != nil && !errors.Is(err, problem.ExecutionNotFound) {
			return err
		}
	}
	return nil
}
