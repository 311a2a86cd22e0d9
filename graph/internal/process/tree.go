package process

import (
	"context"
	"errors"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/internal/run"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/graph/view"
)

// treeTime bounds the total wait of a look or a view for busy subworkflows.
const treeTime = 100 * time.Millisecond

// Look fires due timers and adds the state of a run and its subworkflows to s. upToDate reports that this process has just used the run.
func (p *Process) Look(ctx context.Context, x *run.Run, upToDate bool, s *Standing) error {
	return p.treeLook().at(ctx, x, upToDate, time.Time{}, s)
}

// View returns the view of a run for the answer of a call. It includes the waits of subworkflows.
func (p *Process) View(ctx context.Context, x *run.Run) (*view.Run, error) {
	return p.treeLook().view(ctx, x, time.Time{})
}

// treeLook is a look at a run and the subworkflows below it.
type treeLook struct {
	*Process
	// until is the time after which busy subworkflows are skipped.
	until time.Time
}

func (p *Process) treeLook() *treeLook { return &treeLook{p, time.Now().Add(treeTime)} }

func (t *treeLook) at(ctx context.Context, x *run.Run, upToDate bool, until time.Time, s *Standing) error {
	var children []string
	performing := false
	err := t.reading(ctx, x, until, func(x *run.Run, w *run.Work) error {
		err := s.addRun(ctx, x, upToDate, t.Now, w)
		children, performing = x.AwaitedChildren(), x.Attempts() > 0
		return err
	})
	if err != nil {
		return err
	}
	if s.Status != machine.AwaitingChild {
		// The run also waits for a host, a person or a signal. Subworkflows that are about to start still belong to this step.
		for _, id := range children {
			if !s.Status.Terminal() && t.startsBelow(ctx, id, s) {
				s.Status = machine.Running
			}
		}
		return nil
	}
	for i, id := range children {
		if err := t.addChild(ctx, id, i == 0, performing, s); err != nil {
			return err
		}
	}
	return nil
}

// addChild adds the state of a subworkflow. Among several, the first that waits for someone counts, else the first that proceeds by
// itself.
func (t *treeLook) addChild(ctx context.Context, id string, first, performing bool, s *Standing) error {
	c := t.Runs.Hold(id)
	defer t.Runs.Drop(c)
	sub := Standing{Due: s.Due, wantPlaces: s.wantPlaces}
	err := t.at(ctx, c, false, t.until, &sub)
	if errors.Is(err, run.ErrBusy) { // still working, as far as is known
		sub.Status, sub.Busy, sub.IDs, sub.Sum, err = machine.Running, true, []string{id}, c.Seq(), nil
	}
	s.IDs, s.Due, s.Elsewhere, s.Busy = append(s.IDs, sub.IDs...), sub.Due, s.Elsewhere || sub.Elsewhere, s.Busy || sub.Busy
	s.Sum += sub.Sum
	s.places = append(s.places, sub.places...)
	switch {
	case errors.Is(err, problem.ExecutionNotFound):
		sub.Status = machine.Running // about to be started
		s.Elsewhere = s.Elsewhere || !performing
	case err != nil:
		return err
	case sub.Status.Terminal():
		sub.Status = machine.Running // its parent is about to be notified
		s.Elsewhere = true
		if t.config.ReadOnly {
			break
		}
		if err := t.NotifyParent(context.WithoutCancel(ctx), c); err != nil { // a crash may have prevented it
			return err
		}
	}
	if first || view.Rank(sub.Status) < view.Rank(s.Status) {
		s.Status = sub.Status
	}
	return nil
}

// startsBelow reports whether a subworkflow, or one below it, is about to start another one here. It adds their progress to s. It ignores
// a subworkflow that cannot be read; View reports the error.
func (t *treeLook) startsBelow(ctx context.Context, id string, s *Standing) (starts bool) {
	c := t.Runs.Hold(id)
	defer t.Runs.Drop(c)
	var children []string
	_ = t.reading(ctx, c, t.until, func(c *run.Run, _ *run.Work) (err error) {
		if c.Attempts() == 0 { // another process may drive it
			err = c.Refresh(ctx)
		}
		starts, children = c.Machine() != nil && c.StartsChild(), c.AwaitedChildren()
		s.Sum += c.Execution().Seq
		return err
	})
	s.IDs = append(s.IDs, id)
	for _, child := range children {
		starts = t.startsBelow(ctx, child, s) || starts
	}
	return starts
}

func (t *treeLook) view(ctx context.Context, x *run.Run, until time.Time) (*view.Run, error) {
	var v *view.Run
	err := t.reading(ctx, x, until, func(x *run.Run, _ *run.Work) (err error) {
		v, err = x.View(ctx)
		return err
	})
	if err != nil {
		return nil, err
	}
	return v, view.Compose(v, func(w *view.Pending) (*view.Run, error) { return t.viewChild(ctx, x, w) })
}

// viewChild is View for a subworkflow that a run waits for.
func (t *treeLook) viewChild(ctx context.Context, x *run.Run, w *view.Pending) (*view.Run, error) {
	c := t.Runs.Hold(w.ChildExecutionID)
	defer t.Runs.Drop(c)
	// Another process may have continued it. If the run has other waits, it was not checked yet.
	err := t.reading(ctx, c, t.until, func(c *run.Run, _ *run.Work) error {
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
	case errors.Is(err, run.ErrBusy):
		return view.Child(nil), nil // still working, as far as is known
	case errors.Is(err, problem.ExecutionNotFound):
		v = view.Child(nil)
		v.Lacks, err = t.lackToBegin(ctx, x, w.NodeID)
		return v, err
	case err != nil:
		return nil, err
	}
	return view.Child(v), nil
}

// lackToBegin returns the workflow that this process lacks to start the subworkflow of a node, nil if it is not known to be unknown.
func (t *treeLook) lackToBegin(ctx context.Context, x *run.Run, nodeID string) (*view.Lack, error) {
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
