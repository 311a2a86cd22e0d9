package process

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
func (p *Process) performChild(x *run.Run, a *work.Attempt, e *machine.ChildEffect) []*work.Attempt {
	ctx := work.Detached(a.Context)
	for try := 0; ; try++ {
		in, err := p.ensureChild(ctx, x.ID(), a, e)
		switch {
		case err == nil && in != nil:
			return p.finish(x, a, in)
		case err == nil:
			p.childBegun(ctx, x, a, e)
			return nil
		case a.Context.Err() != nil:
			return nil
		case library.IsUnknown(err):
			// It is left to another process, one that knows its workflow and accepts it: a run that was not started here is not
			// failed for good because of that.
			p.Log.Warn("subworkflow left to others", run.LogRun, x.ID(), run.LogKey, a.Key, run.LogError, err)
			p.Library.NoteUnknown(library.NameOf(e), err)
			p.endAttempt(ctx, x, a)
			return nil
		case p.again(try):
		default:
			p.Log.Error("subworkflow not started", run.LogRun, x.ID(), run.LogChild, e.ChildExecutionID, run.LogError, err)
			p.lose(x, err)
			return nil
		}
	}
}

// childBegun ends the attempt to begin a subworkflow, which drives by itself now.
func (p *Process) childBegun(ctx context.Context, x *run.Run, a *work.Attempt, e *machine.ChildEffect) {
	if context.Cause(a.Context) == work.ErrUnwanted {
		// Nobody waits for it any more, and whoever saw to that may have looked before it existed.
		if err := p.CancelChild(ctx, e.ChildExecutionID, x.ID()); err != nil {
			p.Log.Error("subworkflow not cancelled", run.LogRun, x.ID(), run.LogChild, e.ChildExecutionID, run.LogError, err)
		}
	}
	p.endAttempt(ctx, x, a)
	p.notifier.Changed(x.ID())
}

// ensureChild begins a subworkflow's run, or goes on with the one that is there. It returns what the parent is to record at
// once: that the child has ended already or cannot be begun. That this process does not know the workflow is recorded only for a
// run that was started here.
func (p *Process) ensureChild(ctx context.Context, parent string, a *work.Attempt, e *machine.ChildEffect) (in machine.Input, err error) {
	c := p.Runs.Hold(e.ChildExecutionID)
	defer p.Runs.Drop(c)
	for {
		err := p.With(ctx, c, func(w *run.Work) error {
			in, err = c.ContinueAsChild(ctx, parent, e, w)
			return err
		})
		if !errors.Is(err, problem.ExecutionNotFound) || history.IsBeingDeleted(err) {
			return in, err // the id is free once the deletion is over
		}
		if e.From.ExecutionID != "" {
			if err = p.continueChild(ctx, c, parent, a, e); err == nil {
				continue
			}
		} else {
			err = p.beginChild(ctx, c, parent, a, e)
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
func (p *Process) beginChild(ctx context.Context, c *run.Run, parent string, a *work.Attempt, e *machine.ChildEffect) error {
	done, err := p.budget.Begin(ctx, c.ID(), a.Config.Depth)
	if err != nil {
		return err
	}
	defer done()
	prog, err := p.Library.Resolve(a.Context, library.NameOf(e))
	if err != nil {
		return err
	}
	input, err := admit.Object("input", e.Input, p.config.MaxDocumentBytes, problem.ValidationError)
	if err != nil {
		return err
	}
	if err := admit.Input(prog, input); err != nil {
		return err
	}
	config := a.Config
	config.ExecutionID, config.Parent, config.Depth = c.ID(), parent, a.Config.Depth+1
	var children []history.StoredDefinition
	config.Subworkflows, children = p.Library.Versions(a.Context, prog, a.Config.Subworkflows)
	return p.With(ctx, c, func(w *run.Work) error { return c.Begin(ctx, prog, children, config, input, a.StartedHere, w) })
}

// continueChild begins a subworkflow of a retry with the past of the one that the other run had. The retry has looked whether that can be done.
func (p *Process) continueChild(ctx context.Context, c *run.Run, parent string, a *work.Attempt, e *machine.ChildEffect) error {
	done, err := p.budget.Begin(ctx, c.ID(), a.Config.Depth)
	if err != nil {
		return err
	}
	defer done()
	b, err := (&transfer.Fork{
		From: e.From.ExecutionID, To: c.ID(), Parent: parent, Depth: a.Config.Depth + 1, Again: true,
		Library: p.Library, Capabilities: p.Performer, Limits: p.config.Limits, MaxVisits: p.config.MaxVisits, MaxBytes: p.config.MaxDocumentBytes,
		Now: p.Now().Truncate(time.Millisecond),
	}).Batch(ctx, p.Store)
	if err == nil {
		err = p.Store.Append(ctx, b)
	}
	if errors.Is(err, problem.HistoryConflict) {
		return run.ErrConflict
	}
	return err
}

// notifyParent notifies the run that started x, if one did, of its end. It is no error if the parent does not wait for it any more.
func (p *Process) NotifyParent(ctx context.Context, x *run.Run) error {
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
	return admit.IgnoreRefusal(p.WithID(ctx, parent, func(p *run.Run, w *run.Work) error {
		return p.ChildEnded(ctx, x.ID(), end.ChildEnded, w)
	}))
}

// cancelTime is how long a call that cancels waits for the cancellation of subworkflows. What is left is done in the background.
const cancelTime = 100 * time.Millisecond

// cancelsKey has an *atomic.Bool of the call that cancels: whether something is left to do.
type cancelsKey struct{}

// cancelChildren cancels subworkflows that nobody waits for any more.
func (p *Process) cancelChildren(ctx context.Context, x *run.Run, children []string) {
	if goesOn, _ := ctx.Value(cancelsKey{}).(*atomic.Bool); goesOn != nil && len(children) > 0 {
		ctx, done := context.WithValue(ctx, cancelsKey{}, nil), make(chan struct{})
		p.background(x, func() {
			defer close(done)
			p.cancelChildren(ctx, x, children)
		})
		if !wait.Within(cancelTime, done) {
			goesOn.Store(true)
		}
		return
	}
	for i, child := range children {
		if i > 0 && p.Context.Err() != nil {
			return // each asks after its parent when it is next loaded
		}
		p.persist(x, func() error { return p.CancelChild(ctx, child, x.ID()) }, func(err error) {
			p.Log.Error("subworkflow not cancelled", run.LogRun, x.ID(), run.LogChild, child, run.LogError, err)
		})
	}
}

// cancelChild cancels a subworkflow whose parent has ended or does not wait for it any more.
func (p *Process) CancelChild(ctx context.Context, id, parent string) error {
	keep, err := run.KeepsTasks(ctx, p.Store, parent)
	if err != nil {
		return err
	}
	reason := "the parent run " + parent + " does not wait for it any more"
	c := p.Runs.Hold(id)
	defer p.Runs.Drop(c)
	return admit.IgnoreRefusal(p.First(ctx, c, func(w *run.Work) error {
		err := c.Cancel(ctx, machine.Cancel{Reason: reason, KeepTasks: keep, ByParent: true}, w)
		w.NotifyParent = "" // it is the parent that asked
		return err
	}))
}

// Cancel cancels a run. continues reports that some of its subworkflows are still being cancelled in the background.
func (p *Process) Cancel(ctx context.Context, x *run.Run, in machine.Cancel) (continues bool, err error) {
	var left atomic.Bool
	err = p.First(context.WithValue(ctx, cancelsKey{}, &left), x, func(w *run.Work) error { return x.Cancel(ctx, in, w) })
	return left.Load(), err
}
