package process

import (
	"cmp"
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

// performChild starts a subworkflow, or passes its end or rejection to the parent.
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
			// Another process that knows the workflow, and trusts it, starts the subworkflow: a run that was not started here does not
			// fail because of that.
			p.Log.Warn("subworkflow released", run.LogRun, x.ID(), run.LogKey, a.Key, run.LogError, err)
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

// childBegun ends the attempt to start a subworkflow.
func (p *Process) childBegun(ctx context.Context, x *run.Run, a *work.Attempt, e *machine.ChildEffect) {
	if context.Cause(a.Context) == work.ErrUnwanted {
		// It is not awaited any more, and its cancel may have come before it existed.
		if err := p.CancelChild(ctx, e.ChildExecutionID, x.ID()); err != nil {
			p.Log.Error("subworkflow not cancelled", run.LogRun, x.ID(), run.LogChild, e.ChildExecutionID, run.LogError, err)
		}
	}
	p.endAttempt(ctx, x, a)
	p.notifier.Changed(x.ID())
}

// ensureChild starts a subworkflow's run, or continues an existing one. It returns the input that the parent records at once: the child
// has ended already or cannot be started. An unknown workflow is recorded only in a run that was started here.
func (p *Process) ensureChild(ctx context.Context, parent string, a *work.Attempt, e *machine.ChildEffect) (in machine.Input, err error) {
	c := p.Runs.Hold(e.ChildExecutionID)
	defer p.Runs.Drop(c)
	for {
		err := p.With(ctx, c, func(w *run.Work) error {
			in, err = c.ContinueAsChild(ctx, parent, e, w)
			return err
		})
		if !errors.Is(err, problem.ExecutionNotFound) || history.IsBeingDeleted(err) {
			return in, err // the id is free after the deletion
		}
		if e.From.ExecutionID != "" {
			if err = p.continueChild(ctx, c, parent, a, e); err == nil {
				continue
			}
		} else {
			err = p.beginChild(ctx, c, parent, a, e)
		}
		if errors.Is(err, run.ErrConflict) {
			continue // another process started it
		}
		if err == nil || !admit.IsRefusal(err) || a.Context.Err() != nil || !a.StartedHere && library.IsUnknown(err) {
			return nil, err
		}
		p, _ := problem.As(err)
		return machine.ChildRefused{Key: e.EffectKey, Error: p.Error(), Code: string(p.Code)}, nil
	}
}

// beginChild starts a subworkflow (spec: execution, 12.1). It looks up the definition without a lock, since a Resolver may take its time,
// until the attempt ends.
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
	config.Queue, config.Deadline = cmp.Or(prog.Queue, config.Queue), 0
	return p.With(ctx, c, func(w *run.Work) error {
		return c.Begin(ctx, run.Beginning{Program: prog, Children: children, Config: config, Input: input, StartedHere: a.StartedHere}, w)
	})
}

// continueChild starts a subworkflow of a retry with the past of the earlier run's subworkflow. The retry has checked that this is
// possible.
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

// NotifyParent notifies the parent of x, if any, of the end of x. A parent that does not wait for it any more is not an error.
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

// cancelTime is how long a cancel call waits for the cancel of subworkflows. The rest is done in the background.
const cancelTime = 100 * time.Millisecond

// cancelsKey has an *atomic.Bool of a cancel call, which is set if subworkflows are left.
type cancelsKey struct{}

// cancelChildren cancels subworkflows that are not awaited any more.
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
			return // each checks its parent when it is next loaded
		}
		p.persist(x, func() error { return p.CancelChild(ctx, child, x.ID()) }, func(err error) {
			p.Log.Error("subworkflow not cancelled", run.LogRun, x.ID(), run.LogChild, child, run.LogError, err)
		})
	}
}

// CancelChild cancels a subworkflow whose parent has ended or does not wait for it any more.
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
		w.NotifyParent = "" // the parent has requested it
		return err
	}))
}

// Cancel cancels a run. continues reports that the cancel of subworkflows continues in the background.
func (p *Process) Cancel(ctx context.Context, x *run.Run, in machine.Cancel) (continues bool, err error) {
	var left atomic.Bool
	err = p.First(context.WithValue(ctx, cancelsKey{}, &left), x, func(w *run.Work) error { return x.Cancel(ctx, in, w) })
	return left.Load(), err
}
