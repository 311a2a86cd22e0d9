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
	// alive is the machine of the run that was looked at, as long as it has not ended. If that very machine has ended by the
	// next look, its process has ended the run meanwhile, and need not ask the store whether that still holds.
	alive *machine.Machine
	// afar says that another process drives one of them: its progress is not announced here.
	afar bool
	// seq is the run's last record, family the sum over the runs that were looked at: it changes when one of them does.
	seq, family int64
	// at are the places where the run goes on by itself, if they are asked for.
	places bool
	at     []Progress
}

// restless reports whether the run will go on by itself: within the time left, or at all for a call that only asks.
func (s *standing) restless(now time.Time, left time.Duration, asking bool) bool {
	switch s.status {
	case machine.Running, machine.AwaitingChild:
		return true
	case machine.AwaitingTimer:
		return asking || !s.due.IsZero() && s.due.Sub(now) <= left
	default:
		return false
	}
}

// stand looks where a run stands, firing what is due. checked says that the machine is known to be up to date.
func (r *Runner) stand(ctx context.Context, x *run, checked bool, s *standing) error {
	var y yield
	x.mu.Lock()
	err := x.stand(ctx, checked, s, &y)
	s.seq = x.exec.Seq
	s.family += x.exec.Seq
	children := x.awaitedChildren()
	x.mu.Unlock()
	r.carry(ctx, x, &y)
	s.ids = append(s.ids, x.id)
	if err != nil {
		return err
	}
	if s.status != machine.AwaitingChild {
		// Something else is waited for that needs somebody. Subworkflows that are just coming up are still part of this.
		for _, id := range children {
			if !s.status.Terminal() && r.startsBelow(id, s) {
				s.status = machine.Running
			}
		}
		return nil
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
	if x.m != nil && (checked || x.ended() && x.m == s.alive) || len(x.flights) > 0 {
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
	if !s.status.Terminal() {
		s.alive = x.m
	}
	s.afar = s.afar || s.status == machine.Running && len(x.flights) == 0 && !x.m.Resting()
	if s.places {
		x.notePlaces(s)
	}
	for _, t := range x.m.Timers() {
		if s.due.IsZero() || t.Due.Before(s.due) {
			s.due = t.Due
		}
	}
	return nil
}

// notePlaces notes where the run goes on by itself. At what this process lacks it may well stand still.
func (x *run) notePlaces(s *standing) {
	for _, w := range x.m.Pending() {
		if w.Kind == machine.WaitInterrupt || w.Kind == machine.WaitSignal || w.Host || !x.started && x.lack(&w) != nil {
			continue
		}
		p := Progress{ExecutionID: x.id, NodeID: w.NodeID, NodeVisits: x.m.Visits(), Kind: NodeRuns, Attempt: w.Attempt}
		if w.Span != nil {
			p.Branch = w.Span.BranchName
		}
		s.at = append(s.at, p)
	}
}

// standChild adds where a subworkflow stands. Of several the first that needs somebody counts, else the first that
// goes on by itself.
func (r *Runner) standChild(ctx context.Context, parent *run, id string, first bool, s *standing) error {
	c := r.runs.hold(id)
	defer r.runs.drop(c)
	sub := standing{due: s.due, places: s.places}
	err := r.stand(ctx, c, false, &sub)
	s.ids, s.due, s.afar = append(s.ids, sub.ids...), sub.due, s.afar || sub.afar
	s.family += sub.family
	s.at = append(s.at, sub.at...)
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

// awaitedChildren gives the subworkflows that the run waits for, in branch order.
func (x *run) awaitedChildren() (ids []string) {
	if x.m == nil {
		return nil
	}
	for _, w := range x.m.Pending() {
		if w.Kind == machine.WaitChild {
			ids = append(ids, w.ChildExecutionID)
		}
	}
	return ids
}

// startsBelow reports whether a subworkflow, or one below it, is about to start another one here.
func (r *Runner) startsBelow(id string, s *standing) bool {
	c := r.runs.hold(id)
	defer r.runs.drop(c)
	c.mu.Lock()
	starts := c.m != nil && c.startsChild()
	children := c.awaitedChildren()
	c.mu.Unlock()
	s.ids = append(s.ids, id)
	for _, child := range children {
		starts = r.startsBelow(child, s) || starts
	}
	return starts
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

// The pauses between two looks at a run that another process drives or may change. They grow with waits of many minutes.
const (
	firstLook = 50 * time.Millisecond
	lastLook  = 250 * time.Millisecond
)

// await waits until the run rests, ends or the limit passes. The end of ctx ends only the waiting. until, if not nil,
// ends it too, and says that the call asks where the run stands and has not driven it. any makes it wait for a change of
// a run at rest, which another process may make.
func (r *Runner) await(ctx context.Context, x *run, limit Wait, until func(*standing) bool, any bool) error {
	begun := time.Now()
	look := firstLook
	var w *watcher
	var told int64
	var alive *machine.Machine
	for first := true; ; first = false {
		s := standing{places: limit.Progress != nil, alive: alive}
		if err := r.stand(lasting(ctx), x, first && until == nil, &s); err != nil {
			return err
		}
		alive = s.alive
		left := limit.Limit - time.Since(begun)
		goesOn := s.restless(r.now(), left, until != nil) || any && !s.status.Terminal()
		if left <= 0 || !goesOn || until != nil && until(&s) {
			return nil
		}
		if w == nil {
			w = r.hub.watcher(limit.Progress != nil)
			defer w.stop()
		}
		if w.watch(s.ids) {
			continue // something may have happened before it was watched
		}
		if limit.Progress != nil && s.family != told && (s.afar || told == 0) {
			for _, p := range s.at {
				limit.Progress(p)
			}
		}
		told = s.family
		next := s.due.Sub(r.now())
		if s.afar || until != nil || !s.due.IsZero() && next <= 0 {
			left = min(left, look)
			look = min(2*look, max(lastLook, time.Since(begun)/100))
		} else if !s.due.IsZero() {
			left = min(left, next)
		}
		if !r.doze(ctx, w, left, limit) {
			return nil
		}
	}
}

// doze waits until it is time to look again, handing on progress. It is false if there is no use in looking.
func (r *Runner) doze(ctx context.Context, w *watcher, d time.Duration, limit Wait) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	for {
		select {
		case p := <-w.progress:
			limit.Progress(p)
			continue
		case <-limit.End:
			return false
		default:
		}
		select {
		case p := <-w.progress:
			limit.Progress(p)
		case <-limit.End:
			return false
		case <-w.signal:
			return true
		case <-t.C:
			return true
		case <-ctx.Done():
			return false
		case <-r.ctx.Done():
			return false
		}
	}
}
