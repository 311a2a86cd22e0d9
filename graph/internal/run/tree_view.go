package run

import (
	"context"
	"errors"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/graph/view"
)

// View returns where a run stands, for the answer of a call. What a subworkflow waits for, the run waits for.
func (t *Tree) View(ctx context.Context, x *Run) (*view.Run, error) {
	return (&look{t, time.Now().Add(treeTime)}).view(ctx, x, time.Time{})
}

func (t *look) view(ctx context.Context, x *Run, until time.Time) (*view.Run, error) {
	var v *view.Run
	err := t.Read(ctx, x, until, func(x *Run, _ *Work) (err error) {
		v, err = x.View(ctx)
		return err
	})
	if err != nil {
		return nil, err
	}
	return v, view.Compose(v, func(w *view.Pending) (*view.Run, error) { return t.viewChild(ctx, x, w) })
}

// viewChild is View for a subworkflow that a run waits for.
func (t *look) viewChild(ctx context.Context, x *Run, w *view.Pending) (*view.Run, error) {
	c := t.Runs.Hold(w.ChildExecutionID)
	defer t.Runs.Drop(c)
	// Another process may have gone on with it. Nobody has looked yet if the run also waits for something else.
	err := t.Read(ctx, c, t.until, func(c *Run, _ *Work) error {
		if c.Attempts() > 0 {
			return nil
		}
		return c.Refresh(ctx)
	})
	var v *view.Run
	if err == nil || errors.Is(err, problem.DefinitionNotFound) {
		v, err = t.view(ctx, c, t.until)
	}
	switch {
	case errors.Is(err, ErrBusy):
		return view.Child(nil), nil // at work, as far as anybody knows
	case errors.Is(err, problem.ExecutionNotFound):
		v = view.Child(nil)
		v.Lacks, err = t.lackToBegin(ctx, x, w.NodeID)
		return v, err
	case err != nil:
		return nil, err
	}
	return view.Child(v), nil
}

// lackToBegin returns what this process lacks to begin the subworkflow of a node, nil if that has not shown.
func (t *Tree) lackToBegin(ctx context.Context, x *Run, nodeID string) (*view.Lack, error) {
	x.Lock()
	defer x.Unlock()
	if x.Program() == nil {
		return nil, nil
	}
	n := x.Program().Node(nodeID)
	if n == nil || n.Subworkflow == nil {
		return nil, nil
	}
	name := x.NameOf(n.Subworkflow)
	return x.UnlessOwned(ctx, t.Library.Lack(x.ID(), n.ID, name))
}
