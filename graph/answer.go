package graph

import (
	"context"
	"errors"

	"github.com/workflows-engine/workflows-engine/graph/execution"
	"github.com/workflows-engine/workflows-engine/graph/library"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/notify"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/graph/recorded"
	"github.com/workflows-engine/workflows-engine/graph/runview"
	"github.com/workflows-engine/workflows-engine/history"
)

// answer waits until the run rests, ends or the wait limit passes, and tells where it stands.
func (r *Runner) answer(ctx context.Context, x *execution.Run, w Wait) (*Run, error) {
	if !w.Set {
		w.Limit = r.opts.WaitLimit
	}
	if w.Applied != nil && w.Limit > 0 {
		w.Applied()
	}
	if err := r.waiting(x).For(ctx, w); err != nil {
		return nil, err
	}
	return r.view(detached(ctx), x)
}

// waiting is a call that waits for a run.
func (r *Runner) waiting(x *execution.Run) *notify.Waiting {
	return &notify.Waiting{
		Notifier: &r.notifier, Now: r.now, Closed: r.ctx.Done(), Watch: r.watch,
		Stand: func(ctx context.Context, upToDate bool, s *execution.Standing) error {
			return r.stand(ctx, x, upToDate, s)
		},
	}
}

// watch notices from now on what other processes write, if the store can tell.
func (r *Runner) watch() {
	if s, ok := r.store.(history.Watcher); ok {
		r.watching.Do(func() { r.tasks.Go(func() { r.notifier.Watch(r.ctx, s, r.log) }) })
	}
}

// stand looks where a run stands, firing what is due.
func (r *Runner) stand(ctx context.Context, x *execution.Run, upToDate bool, s *execution.Standing) error {
	var children []string
	performing := false
	err := r.reading(ctx, x, func(x *execution.Run, w *execution.Work) error {
		err := x.Stand(ctx, upToDate, s, w)
		children, performing = x.AwaitedChildren(), x.Attempts() > 0
		return err
	})
	if err != nil {
		return err
	}
	if s.Status != machine.AwaitingChild {
		// Something else is waited for that needs somebody. Subworkflows that are just beginning are still part of this.
		for _, id := range children {
			if !s.Status.Terminal() && r.startsBelow(ctx, id, s) {
				s.Status = machine.Running
			}
		}
		return nil
	}
	for i, id := range children {
		if err := r.standChild(ctx, id, i == 0, performing, s); err != nil {
			return err
		}
	}
	return nil
}

// standChild adds where a subworkflow stands. Of several the first that needs somebody counts, else the first that
// goes on by itself.
func (r *Runner) standChild(ctx context.Context, id string, first, performing bool, s *execution.Standing) error {
	c := r.runs.Hold(id)
	defer r.runs.Drop(c)
	sub := execution.Standing{Due: s.Due, WantPlaces: s.WantPlaces}
	err := r.stand(ctx, c, false, &sub)
	s.IDs, s.Due, s.Elsewhere = append(s.IDs, sub.IDs...), sub.Due, s.Elsewhere || sub.Elsewhere
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
		if r.opts.ReadOnly {
			break
		}
		c.Lock()
		parent := c.Execution().Parent
		c.Unlock()
		if parent != "" { // a crash may have kept the end from it
			if err := r.notifyParent(detached(ctx), c, parent); err != nil {
				return err
			}
		}
	}
	if first || runview.Rank(sub.Status) < runview.Rank(s.Status) {
		s.Status = sub.Status
	}
	return nil
}

// startsBelow reports whether a subworkflow, or one below it, is about to start another one here. It adds how far they have come to where
// the run above stands. One that cannot be read is as it was: view says why.
func (r *Runner) startsBelow(ctx context.Context, id string, s *execution.Standing) (starts bool) {
	c := r.runs.Hold(id)
	defer r.runs.Drop(c)
	var children []string
	_ = r.reading(ctx, c, func(c *execution.Run, _ *execution.Work) (err error) {
		if c.Attempts() == 0 { // another process may drive it
			err = c.Refresh(ctx)
		}
		starts, children = c.Machine() != nil && c.StartsChild(), c.AwaitedChildren()
		s.Sum += c.Execution().Seq
		return err
	})
	s.IDs = append(s.IDs, id)
	for _, child := range children {
		starts = r.startsBelow(ctx, child, s) || starts
	}
	return starts
}

// view tells where a run stands. What a subworkflow waits for, the run waits for.
func (r *Runner) view(ctx context.Context, x *execution.Run) (*Run, error) {
	var v *Run
	err := r.reading(ctx, x, func(x *execution.Run, _ *execution.Work) (err error) {
		v, err = r.viewOne(ctx, x)
		return err
	})
	if err != nil {
		return nil, err
	}
	return v, runview.Compose(v, func(w *Pending) (*Run, error) { return r.viewChild(ctx, x, w) })
}

// viewChild is view for a subworkflow that a run waits for.
func (r *Runner) viewChild(ctx context.Context, x *execution.Run, w *Pending) (*Run, error) {
	c := r.runs.Hold(w.ChildExecutionID)
	defer r.runs.Drop(c)
	// Another process may have gone on with it. Nobody has looked yet if the run also waits for something else.
	err := r.reading(ctx, c, func(c *execution.Run, _ *execution.Work) error {
		if c.Attempts() > 0 {
			return nil
		}
		return c.Refresh(ctx)
	})
	var v *Run
	if err == nil || errors.Is(err, problem.DefinitionNotFound) {
		v, err = r.view(ctx, c)
	}
	if !errors.Is(err, problem.ExecutionNotFound) {
		if err != nil {
			return nil, err
		}
		return runview.Child(v), nil
	}
	v = runview.Child(nil)
	x.Lock()
	defer x.Unlock()
	if x.Program() == nil {
		return v, nil
	}
	n := x.Program().Node(w.NodeID)
	if n == nil || n.Subworkflow == nil {
		return v, nil
	}
	name := execution.WorkflowName{Ref: n.Subworkflow.WorkflowRef, Pin: n.Subworkflow.VersionPin}
	v.Lacks, err = x.UnlessOwned(ctx, r.library.Lack(x.ID(), n.ID, name))
	return v, err
}

// viewOne tells where the run itself stands. The run is locked.
func (r *Runner) viewOne(ctx context.Context, x *execution.Run) (*Run, error) {
	err := x.Open(ctx)
	unknown, lack := errors.Is(err, problem.DefinitionNotFound), library.Untrusted(x.ID(), err)
	if err != nil && !unknown {
		return nil, err
	}
	s := runview.Source{
		Execution: x.Execution(), Machine: x.Machine(), Program: x.Program(), MaxVisits: r.opts.MaxVisits, Mode: r.opts.DefaultMode, Limits: r.limits(),
		Tree: r.tree.Usage(ctx, x.Execution()), Now: r.now(),
	}
	switch {
	case unknown:
		if s.StoredState, err = recorded.State(ctx, r.store, *s.Execution); err != nil {
			return nil, err
		}
	case x.Ended():
		end, err := x.Ending(ctx)
		if err != nil {
			return nil, err
		}
		s.Ending = &end
	case !x.Owned():
		lack = x.Lacks()
	}
	v := runview.Of(s)
	if err := recorded.Journals(ctx, r.store, v.Pending); err != nil {
		return nil, err
	}
	v.Lacks, err = x.UnlessOwned(ctx, lack)
	return v, err
}
