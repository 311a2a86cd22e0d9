package graph

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/internal/admit"
	"github.com/workflows-engine/workflows-engine/graph/internal/library"
	"github.com/workflows-engine/workflows-engine/graph/internal/run"
	"github.com/workflows-engine/workflows-engine/graph/internal/transfer"
	"github.com/workflows-engine/workflows-engine/graph/internal/work"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/graph/view"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/wait"
)

// performChild sees to it that a subworkflow runs, or hands its end or refusal to the parent.
func (r *Runner) performChild(x *run.Run, a *work.Attempt, e *machine.ChildEffect) []*work.Attempt {
	ctx := detached(a.Context)
	for try := 0; ; try++ {
		in, err := r.ensureChild(ctx, x.ID(), a, e)
		switch {
		case err == nil && in != nil:
			return r.finish(x, a, in)
		case err == nil:
			r.childBegun(ctx, x, a, e)
			return nil
		case a.Context.Err() != nil:
			return nil
		case library.IsUnknown(err):
			// It is left to another process, one that knows its workflow and accepts it: a run that was not started here is not
			// failed for good because of that.
			r.log.Warn("subworkflow left to others", run.LogRun, x.ID(), run.LogKey, a.Key, run.LogError, err)
			r.library.NoteUnknown(library.NameOf(e), err)
			r.endAttempt(ctx, x, a)
			return nil
		case r.again(try):
		default:
			r.log.Error("subworkflow not started", run.LogRun, x.ID(), run.LogChild, e.ChildExecutionID, run.LogError, err)
			r.lose(x, err)
			return nil
		}
	}
}

// childBegun ends the attempt to begin a subworkflow, which drives by itself now.
func (r *Runner) childBegun(ctx context.Context, x *run.Run, a *work.Attempt, e *machine.ChildEffect) {
	if context.Cause(a.Context) == work.ErrUnwanted {
		// Nobody waits for it any more, and whoever saw to that may have looked before it existed.
		if err := r.cancelChild(ctx, e.ChildExecutionID, x.ID()); err != nil {
			r.log.Error("subworkflow not cancelled", run.LogRun, x.ID(), run.LogChild, e.ChildExecutionID, run.LogError, err)
		}
	}
	r.endAttempt(ctx, x, a)
	r.notifier.Changed(x.ID())
}

// ensureChild begins a subworkflow's run, or goes on with the one that is there. It returns what the parent is to record at
// once: that the child has ended already or cannot be begun. That this process does not know the workflow is recorded only for a
// run that was started here.
func (r *Runner) ensureChild(ctx context.Context, parent string, a *work.Attempt, e *machine.ChildEffect) (in machine.Input, err error) {
	c := r.runs.Hold(e.ChildExecutionID)
	defer r.runs.Drop(c)
	for {
		err := r.with(ctx, c, func(w *run.Work) error {
			in, err = c.ContinueAsChild(ctx, parent, e, w)
			return err
		})
		if !errors.Is(err, problem.ExecutionNotFound) || history.IsBeingDeleted(err) {
			return in, err // the id is free once the deletion is over
		}
		if e.From.ExecutionID != "" {
			if err = r.continueChild(ctx, c, parent, a, e); err == nil {
				continue
			}
		} else {
			err = r.beginChild(ctx, c, parent, a, e)
		}
		if errors.Is(err, run.ErrConflict) {
			continue // another process began it
		}
		if err == nil || !admit.IsRefusal(err) || a.Context.Err() != nil || !a.StartedHere && library.IsUnknown(err) {
			return nil, err
		}
		p, _ := problem.As(err)
		return machine.ChildRefused{Key: e.EffectKey, Error: p.Error(), Code: string(p.Code)}, nil
	}
}

// beginChild begins a subworkflow that does not exist yet (spec: execution, 12.1). The definition is looked for without
// a lock, since a Resolver may take its time; it stops when the attempt ends.
func (r *Runner) beginChild(ctx context.Context, c *run.Run, parent string, a *work.Attempt, e *machine.ChildEffect) error {
	done, err := r.tree.Begin(ctx, c.ID(), a.Config.Depth)
	if err != nil {
		return err
	}
	defer done()
	prog, err := r.library.Resolve(a.Context, library.NameOf(e))
	if err != nil {
		return err
	}
	input, err := r.object("input", e.Input, problem.ValidationError)
	if err != nil {
		return err
	}
	if err := admit.Input(prog, input); err != nil {
		return err
	}
	config := a.Config
	config.ExecutionID, config.Parent, config.Depth = c.ID(), parent, a.Config.Depth+1
	var children []history.StoredDefinition
	config.Subworkflows, children = r.library.Versions(a.Context, prog, a.Config.Subworkflows)
	return r.with(ctx, c, func(w *run.Work) error { return c.Begin(ctx, prog, children, config, input, a.StartedHere, w) })
}

// continueChild begins a subworkflow of a retry with the past of the one that the other run had. The retry has looked whether that can be done.
func (r *Runner) continueChild(ctx context.Context, c *run.Run, parent string, a *work.Attempt, e *machine.ChildEffect) error {
	done, err := r.tree.Begin(ctx, c.ID(), a.Config.Depth)
	if err != nil {
		return err
	}
	defer done()
	b, err := (&transfer.Fork{
		From: e.From.ExecutionID, To: c.ID(), Parent: parent, Depth: a.Config.Depth + 1, Again: true,
		Library: r.library, Capabilities: r.performer, Limits: r.limits(), MaxVisits: r.opts.MaxVisits, MaxBytes: r.opts.MaxDocumentBytes,
		Now: r.now().Truncate(time.Millisecond),
	}).Batch(ctx, r.store)
	if err == nil {
		err = r.store.Append(ctx, b)
	}
	if errors.Is(err, problem.HistoryConflict) {
		return run.ErrConflict
	}
	return err
}

// notifyParent notifies the run that started x, if one did, of its end. It is no error if the parent does not wait for it any more.
func (r *Runner) notifyParent(ctx context.Context, x *run.Run) error {
	var parent string
	var end view.Ending
	err := locked(x, func() (err error) {
		if parent = x.Execution().Parent; parent != "" {
			end, err = x.Ending(ctx)
		}
		return err
	})
	if err != nil || parent == "" {
		return err
	}
	return admit.IgnoreRefusal(r.withID(ctx, parent, func(p *run.Run, w *run.Work) error {
		return p.ChildEnded(ctx, x.ID(), end.ChildEnded, w)
	}))
}

// cancelTime is how long a call that cancels waits for the cancellation of subworkflows. What is left is done in the background.
const cancelTime = 100 * time.Millisecond

// cancelsKey has an *atomic.Bool of the call that cancels: whether something is left to do.
type cancelsKey struct{}

// cancelChildren cancels subworkflows that nobody waits for any more.
func (r *Runner) cancelChildren(ctx context.Context, x *run.Run, children []string) {
	if goesOn, _ := ctx.Value(cancelsKey{}).(*atomic.Bool); goesOn != nil && len(children) > 0 {
		ctx, done := context.WithValue(ctx, cancelsKey{}, nil), make(chan struct{})
		r.background(x, func() {
			defer close(done)
			r.cancelChildren(ctx, x, children)
		})
		if !wait.Within(cancelTime, done) {
			goesOn.Store(true)
		}
		return
	}
	for i, child := range children {
		if i > 0 && r.ctx.Err() != nil {
			return // each asks after its parent when it is next loaded
		}
		r.persist(x, func() error { return r.cancelChild(ctx, child, x.ID()) }, func(err error) {
			r.log.Error("subworkflow not cancelled", run.LogRun, x.ID(), run.LogChild, child, run.LogError, err)
		})
	}
}

// cancelChild cancels a subworkflow whose parent has ended or does not wait for it any more.
func (r *Runner) cancelChild(ctx context.Context, id, parent string) error {
	keep, err := run.KeepsTasks(ctx, r.store, parent)
	if err != nil {
		return err
	}
	reason := "the parent run " + parent + " does not wait for it any more"
	c := r.runs.Hold(id)
	defer r.runs.Drop(c)
	return admit.IgnoreRefusal(r.first(ctx, c, func(w *run.Work) error {
		err := c.Cancel(ctx, machine.Cancel{Reason: reason, KeepTasks: keep, ByParent: true}, w)
		w.NotifyParent = "" // it is the parent that asked
		return err
	}))
}

// object brings an object that a caller gave into the value model and checks its size. label names the argument.
func (r *Runner) object(label string, m map[string]any, code problem.Code) (map[string]any, error) {
	return admit.Object(label, m, r.opts.MaxDocumentBytes, code)
}
