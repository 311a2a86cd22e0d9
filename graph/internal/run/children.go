package run

import (
	"context"
	"errors"

	"github.com/workflows-engine/workflows-engine/graph/internal/admit"
	"github.com/workflows-engine/workflows-engine/graph/internal/library"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// A subworkflow is a separate run. Its parent requests it with an effect, which ends once the child's first records are stored. Each
// run then proceeds by itself. The process that ends the child notifies the parent. After a crash, the process that claims the orphan
// repeats the interrupted part: it claims the parent before the child exists and after the child has ended, and the child in between.

// findChildren finds the subworkflows that the run waits for.
func (x *Run) findChildren() {
	clear(x.children)
	for _, w := range x.m.Pending() {
		if w.Kind == machine.WaitChild {
			x.noteChild(w.Key, w.ChildExecutionID)
		}
	}
}

func (x *Run) noteChild(key, id string) {
	if x.children == nil {
		x.children = map[string]string{}
	}
	x.children[key] = id
}

// HasChildren reports whether the run waits for subworkflows.
func (x *Run) HasChildren() bool { return len(x.children) > 0 }

// AwaitedChildren returns the ids of the subworkflows that the run waits for, in branch order.
func (x *Run) AwaitedChildren() (ids []string) {
	if x.m == nil || len(x.children) == 0 {
		return nil
	}
	for _, w := range x.m.Pending() {
		if w.Kind == machine.WaitChild {
			ids = append(ids, w.ChildExecutionID)
		}
	}
	return ids
}

// Beginning returns a channel that is closed once this process has begun a subworkflow or has given up; nil if it is not about to begin
// it.
func (x *Run) Beginning(child string) <-chan struct{} {
	if a := x.attempts[x.childKey(child)]; a != nil {
		return a.Context.Done()
	}
	return nil
}

// childNeedsParent reports whether this process has to act in this run for a subworkflow: to begin it, or to record its end. A
// subworkflow that is under way proceeds by itself.
func (x *Run) childNeedsParent(ctx context.Context, e *machine.ChildEffect, retryUnknown bool, w *Work) (bool, error) {
	switch exec, err := x.env.Store.Execution(ctx, e.ChildExecutionID); {
	case errors.Is(err, problem.ExecutionNotFound) && w.preview != nil:
		w.preview.Begins = append(w.preview.Begins, e)
		return false, nil
	case errors.Is(err, problem.ExecutionNotFound):
		return retryUnknown || !x.env.Programs.WaitsFor(library.NameOf(e)), nil
	case err != nil:
		return false, err
	default:
		return exec.Phase.Terminal() || exec.Parent != x.id, nil
	}
}

// beginNeededChildren acts for the subworkflows of an owned run that need their parent: the process that ended one may have died before
// it notified the run, and the workflow of another may have become known. An owned run is not an orphan, so no other process would act.
func (x *Run) beginNeededChildren(ctx context.Context, w *Work) error {
	if !x.Owned() || x.m == nil || len(x.children) == 0 || x.env.draining() {
		return nil
	}
	for _, e := range x.m.InFlight() {
		c, isChild := e.(*machine.ChildEffect)
		if !isChild || x.attempts[c.EffectKey] != nil {
			continue
		}
		switch needed, err := x.childNeedsParent(ctx, c, false, w); {
		case err != nil:
			return err
		case needed:
			x.begin(c, w)
		}
	}
	return nil
}

// ContinueAsChild continues the existing run of a subworkflow for a parent's effect. It returns the input that the parent records at
// once, if any: the run has ended already, or is not the parent's. EXECUTION_NOT_FOUND reports that the run has to be started.
func (x *Run) ContinueAsChild(ctx context.Context, parent string, e *machine.ChildEffect, w *Work) (machine.Input, error) {
	exec, err := x.env.Store.Execution(ctx, x.id)
	if err != nil {
		return nil, err
	}
	if exec.Parent != parent {
		return machine.ChildRefused{
			Key: e.EffectKey, Code: string(problem.DuplicateExecutionID),
			Error: "run " + x.id + " exists and is not a subworkflow of this run",
		}, nil
	}
	switch err := x.Open(ctx); {
	case admit.IsRefusal(err) || errors.Is(err, problem.DefinitionNotFound):
		x.env.Log.Warn("subworkflow released", LogRun, parent, LogChild, x.id, LogError, err)
		return nil, nil // the run exists, so a process that can read it continues it
	case err != nil:
		return nil, err
	}
	if !x.Ended() {
		return nil, x.TakeOver(ctx, false, w)
	}
	end, err := x.Ending(ctx)
	if err != nil {
		return nil, err
	}
	return end.ChildEnded(e.EffectKey), nil
}

// ChildEnded records the end of a subworkflow if the run waits for it. end returns the input for the key of the wait.
func (x *Run) ChildEnded(ctx context.Context, child string, end func(key string) machine.ChildEnded, w *Work) error {
	if err := x.Open(ctx); err != nil {
		return err
	}
	key := x.childKey(child)
	if key == "" {
		// The machine may be older than the wait.
		if err := x.Refresh(ctx); err != nil {
			return err
		}
		key = x.childKey(child)
	}
	if key == "" {
		return nil
	}
	return x.Apply(ctx, Input{Input: end(key)}, w)
}

func (x *Run) childKey(child string) string {
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

// endWithParent cancels the run if its parent has ended, in case a crash prevented the parent's cancel.
func (x *Run) endWithParent(ctx context.Context, w *Work) (gone bool, err error) {
	if !x.parentUnchecked {
		return false, nil
	}
	parent, err := x.env.Store.Execution(ctx, x.exec.Parent)
	switch {
	case errors.Is(err, problem.ExecutionNotFound):
	case err != nil:
		return false, err
	case parent.Phase.Terminal() && x.m != nil && len(x.m.Rollbacks()) > 0: // it was cancelled before, or is about to fail
	case parent.Phase.Terminal() && w.dry():
		return true, nil
	case parent.Phase.Terminal():
		keep, err := KeepsTasks(ctx, x.env.Store, parent.ID)
		if err != nil {
			return false, err
		}
		err = x.Cancel(ctx, machine.Cancel{Reason: "the parent run " + parent.ID + " has ended", KeepTasks: keep, ByParent: true}, w)
		w.NotifyParent = ""
		if err != nil && admit.IsRefusal(err) {
			err = nil // it has just ended in another way
		}
		return true, err
	}
	x.parentUnchecked = false
	return false, nil
}
