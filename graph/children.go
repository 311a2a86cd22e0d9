package graph

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
)

// A subworkflow is a run of its own. Its parent asks for it with an effect, which is done as soon as the child's first
// records are stored; from then on each drives by itself. Whoever ends the child tells the parent. What a crash cuts
// short between the two is done again by whoever takes the run over whose lease has run out: the parent's until the
// child exists, the child's while it is under way, the parent's again once the child has ended.

// performChild sees to it that a subworkflow runs, or hands its end or refusal to the parent.
func (r *Runner) performChild(x *run, f *flight, e *machine.ChildEffect) []*flight {
	ctx := lasting(r.ctx)
	for try := 0; ; try++ {
		in, err := r.bringUp(ctx, x.id, f, e)
		switch {
		case err == nil && in != nil:
			return r.finish(x, f, in)
		case err == nil:
			r.childBegun(ctx, x, f, e)
			return nil
		case f.ctx.Err() != nil:
			return nil
		case lacksWorkflow(err):
			r.leaveChild(ctx, x, f, err)
			return nil
		case try < len(recordPauses) && r.pause(recordPauses[try]):
		default:
			r.log.Error("subworkflow not started", logRun, x.id, logChild, e.ChildExecutionID, logError, err)
			x.mu.Lock()
			x.lose(errLost(err))
			x.mu.Unlock()
			return nil
		}
	}
}

// childBegun ends the flight of a subworkflow that drives by itself now.
func (r *Runner) childBegun(ctx context.Context, x *run, f *flight, e *machine.ChildEffect) {
	if context.Cause(f.ctx) == errOver {
		// Nobody waits for it any more, and whoever saw to that may have looked before it existed.
		if err := r.cancelChild(ctx, e.ChildExecutionID, x.id); err != nil {
			r.log.Error("subworkflow not cancelled", logRun, x.id, logChild, e.ChildExecutionID, logError, err)
		}
	}
	r.setDown(ctx, x, f)
	r.hub.wake(x.id)
}

// leaveChild leaves a subworkflow to another process, one that knows its workflow and accepts it: a run that was not started
// here is not failed for good for want of that.
func (r *Runner) leaveChild(ctx context.Context, x *run, f *flight, cause error) {
	r.log.Warn("subworkflow left to others", logRun, x.id, logKey, f.key, logError, cause)
	if e, ok := f.effect.(*machine.ChildEffect); ok {
		r.unknown.note(nameOf(e), cause)
	}
	r.setDown(ctx, x, f)
}

// setDown ends a flight without an outcome, and releases the lease if it was the last one.
func (r *Runner) setDown(ctx context.Context, x *run, f *flight) {
	var y yield
	x.mu.Lock()
	if x.flights[f.key] == f {
		delete(x.flights, f.key)
	}
	err := x.rest(ctx, &y)
	x.mu.Unlock()
	if err != nil {
		r.log.Warn("run not looked after", logRun, x.id, logError, err)
	}
	r.carry(ctx, x, &y)
}

// lackingWorkflow is why this process cannot begin a subworkflow that another one may well begin: it does not know the
// workflow, or its settings refuse the definition that it knows.
type lackingWorkflow struct{ error }

func (e lackingWorkflow) Unwrap() error { return e.error }

func lacksWorkflow(err error) bool {
	_, ok := errors.AsType[lackingWorkflow](err)
	return ok
}

// bringUp starts a subworkflow's run, or goes on with the one that is there. It gives what the parent is to be told at
// once: that the child has ended already or cannot be started. That this process lacks the workflow is told only for a
// run that was started here.
func (r *Runner) bringUp(ctx context.Context, parent string, f *flight, e *machine.ChildEffect) (machine.Input, error) {
	c := r.runs.hold(e.ChildExecutionID)
	defer r.runs.drop(c)
	for {
		in, err := r.findChild(ctx, c, parent, e)
		if !errors.Is(err, problem.ExecutionNotFound) || history.IsBeingDeleted(err) {
			return in, err // the id is free once the deletion is over
		}
		if err = r.beginChild(ctx, c, parent, f, e); errors.Is(err, errAgain) {
			continue // another process began it
		}
		if err == nil || !isRefusal(err) || f.ctx.Err() != nil || !f.started && lacksWorkflow(err) {
			return nil, err
		}
		p, _ := problem.As(err)
		return machine.ChildRefused{Key: e.EffectKey, Error: p.Error(), Code: string(p.Code)}, nil
	}
}

// findChild goes on with a subworkflow's run that exists. EXECUTION_NOT_FOUND means that it has to be begun.
func (r *Runner) findChild(ctx context.Context, c *run, parent string, e *machine.ChildEffect) (machine.Input, error) {
	var y yield
	c.mu.Lock()
	in, err := c.findAsChild(ctx, parent, e, &y)
	c.mu.Unlock()
	r.carry(ctx, c, &y)
	return in, err
}

func (x *run) findAsChild(ctx context.Context, parent string, e *machine.ChildEffect, y *yield) (machine.Input, error) {
	exec, err := x.r.store.Execution(ctx, x.id)
	if err != nil {
		return nil, err
	}
	if exec.Parent != parent && !adoptable(exec) {
		return machine.ChildRefused{
			Key: e.EffectKey, Code: string(problem.DuplicateExecutionID),
			Error: "a run " + x.id + " exists already that does not belong to this one",
		}, nil
	}
	switch err := x.open(ctx, nil); {
	case isRefusal(err) || errors.Is(err, problem.DefinitionNotFound):
		x.r.log.Warn("subworkflow left to others", logRun, parent, logChild, x.id, logError, err)
		return nil, nil // it exists, so that whoever can read it drives it
	case err != nil:
		return nil, err
	}
	if !x.ended() {
		return nil, x.takeOver(ctx, y)
	}
	end, err := x.ending(ctx)
	if err != nil {
		return nil, err
	}
	return end.tell(e.EffectKey), nil
}

// awaitsChild reports whether something is to be done in the run for a subworkflow that it waits for, and can be done here:
// to begin it, or to hear how it has ended. One that is under way drives by itself.
func (x *run) awaitsChild(ctx context.Context, e *machine.ChildEffect) (bool, error) {
	switch exec, err := x.r.store.Execution(ctx, e.ChildExecutionID); {
	case errors.Is(err, problem.ExecutionNotFound):
		return x.insistent || !x.r.unknown.want(nameOf(e)), nil
	case err != nil:
		return false, err
	default:
		return exec.Phase.Terminal() || exec.Parent != x.id && !adoptable(exec), nil
	}
}

// takeUpChildren goes on with the subworkflows of a run that is driven here for which something is to be done, and nobody
// does it: whoever ended one may have died before the run was told, and one that was left for want of its workflow can be
// begun once that is known. While the run is driven it is no orphan, so that nobody else would see to them.
func (x *run) takeUpChildren(ctx context.Context, y *yield) error {
	if !x.held || x.m == nil || len(x.children) == 0 {
		return nil
	}
	for _, e := range x.m.InFlight() {
		c, isChild := e.(*machine.ChildEffect)
		if !isChild || x.flights[c.EffectKey] != nil {
			continue
		}
		switch awaits, err := x.awaitsChild(ctx, c); {
		case err != nil:
			return err
		case awaits:
			y.flights = append(y.flights, x.fly(c))
		}
	}
	return nil
}

// takeOverBelow takes over the subworkflows that a run waits for, whose drivers may be gone though the run's own has
// nothing to do, and those below them.
func (r *Runner) takeOverBelow(ctx context.Context, x *run) {
	x.mu.Lock()
	var children []string
	if x.m != nil {
		children = slices.Collect(maps.Values(x.children))
	}
	x.mu.Unlock()
	for _, id := range children {
		c := r.runs.hold(id)
		var y yield
		c.mu.Lock()
		c.insistent = true
		_, err := c.takeOrphan(ctx, &y)
		c.insistent = false
		c.mu.Unlock()
		r.carry(ctx, c, &y)
		switch {
		case errors.Is(err, problem.ExecutionNotFound): // it is about to be begun, or left to others
		case err != nil && !errors.Is(err, problem.ExecutorNotConfigured): // that the caller is told (Run.Lacks)
			r.log.Warn("run not taken over", logRun, id, logError, err)
			fallthrough
		default:
			r.takeOverBelow(ctx, c)
		}
		r.runs.drop(c)
	}
}

// adoptable reports whether a run was begun by another engine, which does not mark subworkflows with their parent.
func adoptable(exec history.Execution) bool { return exec.Parent == "" && exec.InputHash == "" }

// beginChild starts a subworkflow that does not exist yet (spec: execution, 12.1). The definition is looked for without
// a lock, since a Resolver may take its time; it stops when the flight ends.
func (r *Runner) beginChild(ctx context.Context, c *run, parent string, f *flight, e *machine.ChildEffect) error {
	if f.config.Depth >= r.opts.MaxDepth {
		return problem.New(problem.SubworkflowDepthExceeded, "subworkflows are nested more than %d levels deep", r.opts.MaxDepth)
	}
	prog, err := r.resolve(f.ctx, nameOf(e))
	if err != nil {
		return err
	}
	input, err := r.object("input", e.Input, problem.ValidationError)
	if err != nil {
		return err
	}
	if err := checkInput(prog, input); err != nil {
		return err
	}
	config := f.config
	config.ExecutionID, config.Parent, config.Depth = c.id, parent, f.config.Depth+1
	var y yield
	c.mu.Lock()
	err = c.begin(ctx, prog, config, input, f.started, &y)
	c.mu.Unlock()
	r.carry(ctx, c, &y)
	return err
}

// resolve finds a subworkflow's definition. An error that is not the store's is a lackingWorkflow.
func (r *Runner) resolve(ctx context.Context, name workflowName) (*definition.Program, error) {
	prog, err := r.library.resolve(ctx, name.ref, name.pin)
	if err == nil {
		r.unknown.forget(name)
		return prog, nil
	}
	if _, ok := problem.As(err); !ok {
		err = problem.New(problem.WorkflowNotFound, "workflow_ref %q cannot be resolved", name.ref).WithCause(err)
	}
	if isRefusal(err) {
		err = lackingWorkflow{err}
	}
	return nil, err
}

// tellParent tells the run that started x how x ended. It is no error if the parent does not wait for it any more.
func (r *Runner) tellParent(ctx context.Context, x *run, parent string) error {
	x.mu.Lock()
	end, err := x.ending(ctx)
	x.mu.Unlock()
	if err != nil {
		return err
	}
	p := r.runs.hold(parent)
	defer r.runs.drop(p)
	var y yield
	p.mu.Lock()
	err = p.childEnded(ctx, x.id, end, &y)
	p.mu.Unlock()
	r.carry(ctx, p, &y)
	if errors.Is(err, problem.ExecutionNotFound) || err != nil && isRefusal(err) {
		return nil
	}
	return err
}

// childEnded takes in the end of a subworkflow if the run waits for it.
func (x *run) childEnded(ctx context.Context, child string, end ending, y *yield) error {
	if err := x.open(ctx, nil); err != nil {
		return err
	}
	key := x.childKey(child)
	if key == "" {
		// The machine may be older than the wait.
		if err := x.sync(ctx, nil); err != nil {
			return err
		}
		key = x.childKey(child)
	}
	if key == "" {
		return nil
	}
	return x.apply(ctx, step{in: end.tell(key)}, y)
}

func (x *run) childKey(child string) string {
	if x.m == nil {
		return ""
	}
	for key, id := range x.children {
		if id == child {
			return key
		}
	}
	return ""
}

// cancelChild cancels a subworkflow whose parent has ended or does not wait for it any more.
func (r *Runner) cancelChild(ctx context.Context, id, parent string) error {
	keep, err := r.keepsTasks(ctx, parent)
	if err != nil {
		return err
	}
	c := r.runs.hold(id)
	defer r.runs.drop(c)
	var y yield
	c.mu.Lock()
	err = c.cancel(ctx, machine.Cancel{Reason: "the parent run " + parent + " does not wait for it any more", KeepTasks: keep}, &y)
	c.mu.Unlock()
	y.parent = "" // it is the parent that asked
	r.carry(ctx, c, &y)
	if errors.Is(err, problem.ExecutionNotFound) || err != nil && isRefusal(err) {
		return nil
	}
	return err
}

// leaveWithParent cancels the run if the parent that started it has ended, which a crash may have kept from it.
func (x *run) leaveWithParent(ctx context.Context, y *yield) (gone bool, err error) {
	if !x.unsure {
		return false, nil
	}
	parent, err := x.r.store.Execution(ctx, x.exec.Parent)
	switch {
	case errors.Is(err, problem.ExecutionNotFound):
	case err != nil:
		return false, err
	case parent.Phase.Terminal():
		keep, err := x.r.keepsTasks(ctx, parent.ID)
		if err != nil {
			return false, err
		}
		err = x.cancel(ctx, machine.Cancel{Reason: "the parent run " + parent.ID + " has ended", KeepTasks: keep}, y)
		y.parent = ""
		if err != nil && isRefusal(err) {
			err = nil // it has just ended in another way
		}
		return true, err
	}
	x.unsure = false
	return false, nil
}
