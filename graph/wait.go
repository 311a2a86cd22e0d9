package graph

import (
	"context"
	"errors"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// standing is where a run stands, together with the subworkflows that it waits for.
type standing struct {
	// status is the run's, or while it waits for a subworkflow the child's: a subworkflow that pauses pauses its parent.
	status machine.Status
	// due is the earliest timer, zero if there is none.
	due time.Time
	// ids are the runs that were looked at.
	ids []string
	// afar says that another process drives one of them: its progress is not announced here.
	afar bool
}

// restless reports whether the run will go on by itself within the time left.
func (s *standing) restless(now time.Time, left time.Duration) bool {
	switch s.status {
	case machine.Running, machine.AwaitingChild:
		return true
	case machine.AwaitingTimer:
		return !s.due.IsZero() && s.due.Sub(now) <= left
	default:
		return false
	}
}

// stand looks where a run stands, firing what is due. checked says that the machine is known to be up to date.
func (r *Runner) stand(ctx context.Context, x *run, checked bool, s *standing) error {
	var y yield
	var children []string
	x.mu.Lock()
	err := x.stand(ctx, checked, s, &y)
	if s.status == machine.AwaitingChild {
		for _, w := range x.m.Pending() {
			if w.Kind == machine.WaitChild {
				children = append(children, w.ChildExecutionID)
			}
		}
	}
	x.mu.Unlock()
	r.carry(ctx, x, &y)
	s.ids = append(s.ids, x.id)
	if err != nil {
		return err
	}
	for i, id := range children {
		if err := r.standChild(ctx, x, id, i == 0, s); err != nil {
			return err
		}
	}
	return nil
}

func (x *run) stand(ctx context.Context, checked bool, s *standing, y *yield) error {
	var err error
	if checked && x.m != nil || len(x.flights) > 0 {
		err = x.open(ctx, nil)
	} else {
		err = x.sync(ctx, nil)
	}
	if errors.Is(err, problem.DefinitionNotFound) {
		s.status = phaseStatus(x.exec.Phase)
		return nil
	}
	if err != nil {
		return err
	}
	if x.m == nil {
		s.status = phaseStatus(x.exec.Phase)
		return nil
	}
	if err := x.visit(ctx, y); err != nil {
		return err
	}
	if x.m == nil {
		s.status = phaseStatus(x.exec.Phase)
		return nil
	}
	s.status = x.m.Status()
	if !s.status.Terminal() && x.startsChild() {
		s.status = machine.Running // the child's first steps belong to this one
	}
	s.afar = s.afar || s.status == machine.Running && len(x.flights) == 0 && !x.m.Resting()
	for _, t := range x.m.Timers() {
		if s.due.IsZero() || t.Due.Before(s.due) {
			s.due = t.Due
		}
	}
	return nil
}

// standChild adds where a subworkflow stands. Of several the first that needs somebody counts, else the first that
// goes on by itself.
func (r *Runner) standChild(ctx context.Context, parent *run, id string, first bool, s *standing) error {
	c := r.runs.hold(id)
	defer r.runs.drop(c)
	sub := standing{due: s.due}
	err := r.stand(ctx, c, false, &sub)
	s.ids, s.due, s.afar = append(s.ids, sub.ids...), sub.due, s.afar || sub.afar
	switch {
	case errors.Is(err, problem.ExecutionNotFound):
		sub.status = machine.Running // about to be started
		s.afar = s.afar || !parent.flying()
	case err != nil:
		return err
	case sub.status.Terminal():
		sub.status = machine.Running // its parent is about to be told
		s.afar = true
		if err := r.heal(ctx, c); err != nil {
			return err
		}
	}
	if first || rank(sub.status) < rank(s.status) {
		s.status = sub.status
	}
	return nil
}

// startsChild reports whether a subworkflow is about to be started here.
func (x *run) startsChild() bool {
	for _, f := range x.flights {
		if _, isChild := f.effect.(*machine.ChildEffect); isChild {
			return true
		}
	}
	return false
}

// rank orders what subworkflows wait for by what is to be shown.
func rank(s machine.Status) int {
	switch s {
	case machine.Interrupted, machine.AwaitingActivity, machine.AwaitingSignal:
		return 0
	case machine.Running:
		return 1
	default:
		return 2
	}
}

// heal tells a parent of a subworkflow's end that a crash may have kept from it.
func (r *Runner) heal(ctx context.Context, c *run) error {
	c.mu.Lock()
	parent := c.exec.Parent
	c.mu.Unlock()
	if parent == "" {
		return nil
	}
	return r.tellParent(lasting(ctx), c, parent)
}

// flying reports whether this process performs something for the run.
func (x *run) flying() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return len(x.flights) > 0
}

// The pauses between two looks at a run that another process drives.
const (
	firstLook = 50 * time.Millisecond
	lastLook  = time.Second
)

// await waits until the run rests, ends or the limit passes. The end of ctx ends only the waiting. until, if not nil,
// ends it too.
func (r *Runner) await(ctx context.Context, x *run, limit time.Duration, until func(*standing) bool) error {
	begun := time.Now()
	look := firstLook
	var w *watcher
	for first := true; ; first = false {
		var s standing
		if err := r.stand(lasting(ctx), x, first && until == nil, &s); err != nil {
			return err
		}
		left := limit - time.Since(begun)
		if left <= 0 || !s.restless(r.now(), left) || until != nil && until(&s) {
			return nil
		}
		if w == nil {
			w = r.hub.watcher()
			defer w.stop()
		}
		if w.watch(s.ids) {
			continue // something may have happened before it was watched
		}
		next := s.due.Sub(r.now())
		if s.afar || !s.due.IsZero() && next <= 0 {
			left = min(left, look)
			look = min(2*look, lastLook)
		} else if !s.due.IsZero() {
			left = min(left, next)
		}
		t := time.NewTimer(left)
		select {
		case <-w.signal:
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return nil
		case <-r.ctx.Done():
			t.Stop()
			return nil
		}
		t.Stop()
	}
}
