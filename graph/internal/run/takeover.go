package run

import (
	"context"
	"errors"

	"github.com/workflows-engine/workflows-engine/graph/internal/work"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/graph/view"
)

// TakeOver makes this process the owner of an open run if its driver is gone and has left something that this process can
// perform, and does what is due. Workflows that have turned out to be unknown are tried again if retryUnknown is set.
func (x *Run) TakeOver(ctx context.Context, retryUnknown bool, w *Work) error {
	if !x.Owned() {
		if abandoned, err := x.abandoned(ctx, retryUnknown, w); err != nil {
			return err
		} else if abandoned {
			return x.takeUp(ctx, w)
		}
	}
	if len(x.unrecorded.Records) > 0 && w.dry() {
		return nil
	}
	if err := x.commitUnrecorded(ctx, w); err != nil && !errors.Is(err, ErrConflict) {
		return err
	}
	if x.m == nil {
		return nil
	}
	return x.FireDue(ctx, w)
}

// takeUp claims an open run, unless another process owns it, and performs what was abandoned.
func (x *Run) takeUp(ctx context.Context, w *Work) error {
	if w.dry() {
		return nil
	}
	switch won, err := x.claim(ctx); {
	case errors.Is(err, ErrConflict) && x.Ended():
		return nil
	case err != nil && !errors.Is(err, ErrConflict) || err == nil && !won:
		return err
	}
	return x.drive(ctx, w)
}

// drive goes on with a run that this process owns.
func (x *Run) drive(ctx context.Context, w *Work) error {
	if err := x.commitUnrecorded(ctx, w); err != nil {
		if errors.Is(err, ErrConflict) {
			return nil // another process is at it
		}
		return err
	}
	if x.m == nil {
		return nil
	}
	if gone, err := x.endWithParent(ctx, w); gone || err != nil {
		return err
	}
	x.redispatch(w)
	if b := x.m.Ready(); b.TimersChanged {
		if err := x.commit(ctx, b, intent{mayOwn: true}, w); errors.Is(err, ErrConflict) {
			return nil // what was begun goes on; the next look at the run sees to the rest
		} else if err != nil {
			return err
		}
	}
	if err := x.fireMine(ctx, w); err != nil {
		return err
	}
	return x.rest(ctx, w)
}

// abandoned reports whether something is in flight that this process does not perform, but can. It only reads, so that a
// run of which nothing can be performed here costs no write, however often it is looked at.
func (x *Run) abandoned(ctx context.Context, retryUnknown bool, w *Work) (bool, error) {
	var children []*machine.ChildEffect
	for _, e := range x.m.InFlight() {
		switch c, isChild := e.(*machine.ChildEffect); {
		case x.attempts[e.Key()] != nil || !x.canPerform(e):
		case isChild:
			children = append(children, c)
		default:
			return true, nil
		}
	}
	for _, c := range children {
		if needed, err := x.childNeedsParent(ctx, c, retryUnknown, w); err != nil || needed {
			return needed, err
		}
	}
	return false, nil
}

// TakeOrphan takes over a run that nobody with a live lease owns, and reports whether it did. The error says why it did not:
// COMPOSITE_EXECUTOR_NOT_CONFIGURED if this process lacks what the run waits for.
func (x *Run) TakeOrphan(ctx context.Context, retryUnknown bool, w *Work) (bool, error) {
	if x.Owned() {
		return false, nil
	}
	if err := x.Refresh(ctx); err != nil || x.Ended() {
		return false, err
	}
	x.parentUnchecked = x.exec.Parent != "" // it may count as an orphan because its parent has ended
	seq := x.exec.Seq
	err := x.TakeOver(ctx, retryUnknown, w)
	if err != nil || x.Owned() || x.Ended() || x.exec.Seq != seq || w.preview != nil && w.preview.Acts {
		return err == nil, err
	}
	if lack := x.Lacks(); lack != nil && !lack.Host {
		return false, lack.Err()
	}
	return false, nil
}

// TakeBack goes on with a run that the store says this process owns under a name, and that it does not drive: an append, a claim
// or a disowning failed, or succeeded and only its answer was lost. If this process cannot perform what is left, others can.
func (x *Run) TakeBack(ctx context.Context, process string, w *Work) error {
	if x.Owned() {
		return nil
	}
	if owner, err := x.env.Store.Owner(ctx, x.id); err != nil || owner.Process != process {
		return err
	}
	if err := x.env.Store.Disown(work.Detached(ctx), process, x.id); err != nil {
		return err
	}
	_, err := x.TakeOrphan(ctx, false, w)
	return err
}

// Preview is what a takeover would do.
type Preview struct {
	// Acts: it would record something, or perform something that is in flight.
	Acts bool
	// Begins are subworkflows that it would begin, if their workflows are known; Depth is the nesting of the run.
	Begins []*machine.ChildEffect
	Depth  int
	// Lack is what this process lacks, if it would do nothing.
	Lack *view.Lack
	// Due is the run's timer that has been due longest, zero without one.
	Due machine.Timer
}

// Preview returns what TakeOrphan would do with a run that no process with a live lease owns, or else what Fire would do. It takes the same
// way, up to the first write.
func (x *Run) Preview(ctx context.Context, orphaned bool) (p Preview, err error) {
	if x.Owned() {
		return p, nil
	}
	w := Work{preview: &p}
	if orphaned {
		_, err = x.TakeOrphan(ctx, true, &w)
	} else {
		err = x.Fire(ctx, Timer{}, &w)
	}
	if x.m == nil || x.Ended() {
		return p, err
	}
	p.Depth = x.m.Config().Depth
	now := x.env.Now()
	for _, t := range x.m.Timers() {
		if !t.Due.After(now) && (p.Due.Key == "" || t.Due.Before(p.Due.Due)) {
			p.Due = t
		}
	}
	if p.Acts || err != nil && !errors.Is(err, problem.ExecutorNotConfigured) {
		return p, err
	}
	if l := x.Lacks(); l != nil && !l.Host {
		p.Lack, err = x.UnlessOwned(ctx, l)
		return p, err
	}
	return p, nil
}

// dry reports whether only a preview is wanted, and notes in it that something would be done.
func (w *Work) dry() bool {
	if w.preview == nil {
		return false
	}
	w.preview.Acts = true
	return true
}
