package run

import (
	"context"
	"errors"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/internal/library"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/graph/view"
)

// Tree looks at runs and the subworkflows below them.
type Tree struct {
	Runs    *Table
	Library *library.Library
	Now     func() time.Time
	// Read calls f with a run locked, and dispatches what comes of it. After until, unless that is zero, a run that is busy is not waited for:
	// run.ErrBusy.
	Read func(ctx context.Context, x *Run, until time.Time, f func(x *Run, w *Work) error) error
	// NotifyParent notifies the parent of a subworkflow that has ended, unless ReadOnly.
	NotifyParent func(ctx context.Context, child *Run) error
	ReadOnly     bool
}

// treeTime is how long a look or a view waits for the subworkflows that are busy, all together.
const treeTime = 100 * time.Millisecond

// Look adds to s where a run stands, firing what is due. upToDate says that the run was in hand just before.
func (t *Tree) Look(ctx context.Context, x *Run, upToDate bool, s *Standing) error {
	return (&look{t, time.Now().Add(treeTime)}).at(ctx, x, upToDate, time.Time{}, s)
}

// look is a look at a tree.
type look struct {
	*Tree
	// until is when there is no more time to wait for subworkflows that are busy.
	until time.Time
}

func (t *look) at(ctx context.Context, x *Run, upToDate bool, until time.Time, s *Standing) error {
	var children []string
	performing := false
	err := t.Read(ctx, x, until, func(x *Run, w *Work) error {
		err := s.addRun(ctx, x, upToDate, t.Now, w)
		children, performing = x.AwaitedChildren(), x.Attempts() > 0
		return err
	})
	if err != nil {
		return err
	}
	if s.Status != machine.AwaitingChild {
		// Something else is waited for that needs somebody. Subworkflows that are just beginning are still part of this.
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

// addChild adds where a subworkflow stands. Of several the first that needs somebody counts, else the first that goes on by itself.
func (t *look) addChild(ctx context.Context, id string, first, performing bool, s *Standing) error {
	c := t.Runs.Hold(id)
	defer t.Runs.Drop(c)
	sub := Standing{Due: s.Due, WantPlaces: s.WantPlaces}
	err := t.at(ctx, c, false, t.until, &sub)
	if errors.Is(err, ErrBusy) { // at work, as far as anybody knows
		sub.Status, sub.Busy, sub.IDs, sub.Sum, err = machine.Running, true, []string{id}, c.Seq(), nil
	}
	s.IDs, s.Due, s.Elsewhere, s.Busy = append(s.IDs, sub.IDs...), sub.Due, s.Elsewhere || sub.Elsewhere, s.Busy || sub.Busy
	s.Sum += sub.Sum
	s.At = append(s.At, sub.At...)
	switch {
	case errors.Is(err, problem.ExecutionNotFound):
		sub.Status = machine.Running // about to be started
		s.Elsewhere = s.Elsewhere || !performing
	case err != nil:
		return err
	case sub.Status.Terminal():
		sub.Status = machine.Running // its parent is about to be notified
		s.Elsewhere = true
		if t.ReadOnly {
			break
		}
		if err := t.NotifyParent(context.WithoutCancel(ctx), c); err != nil { // a crash may have kept the end from it
			return err
		}
	}
	if first || view.Rank(sub.Status) < view.Rank(s.Status) {
		s.Status = sub.Status
	}
	return nil
}

// startsBelow reports whether a subworkflow, or one below it, is about to start another one here. It adds how far they have come to where
// the run above stands. One that cannot be read is as it was: View says why.
func (t *look) startsBelow(ctx context.Context, id string, s *Standing) (starts bool) {
	c := t.Runs.Hold(id)
	defer t.Runs.Drop(c)
	var children []string
	_ = t.Read(ctx, c, t.until, func(c *Run, _ *Work) (err error) {
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
