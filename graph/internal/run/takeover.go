package run

import (
	"context"
	"errors"
	"slices"

	"github.com/workflows-engine/workflows-engine/graph/internal/work"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/graph/view"
)

// TakeOver claims an open run if its owner is gone and this process can perform an effect in flight, and fires due timers. With
// retryUnknown, workflows known to be unknown are looked up again.
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

// takeUp claims an open run, unless another process owns it, and performs the abandoned effects.
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

// drive continues a run that this process owns.
func (x *Run) drive(ctx context.Context, w *Work) error {
	if err := x.commitUnrecorded(ctx, w); err != nil {
		if errors.Is(err, ErrConflict) {
			return nil // another process is active
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
			return nil // attempts continue; the next check of the run does the rest
		} else if err != nil {
			return err
		}
	}
	if err := x.fireMine(ctx, w); err != nil {
		return err
	}
	return x.rest(ctx, w)
}

// abandoned reports whether an effect is in flight that this process does not perform, but can and has room for. It only reads, so that checks of a run
// that this process cannot advance cost no write.
func (x *Run) abandoned(ctx context.Context, retryUnknown bool, w *Work) (bool, error) {
	var children []*machine.ChildEffect
	for _, e := range x.m.InFlight() {
		switch c, isChild := e.(*machine.ChildEffect); {
		case x.attempts[e.Key()] != nil || !x.canPerform(e):
		case isChild:
			children = append(children, c)
		default:
			// Without room it would wait here. A process that searches finds it again; another one must keep it.
			return !x.env.Sharing.Gives || x.env.Performer.Turns.Free() > 0, nil
		}
	}
	for _, c := range children {
		if needed, err := x.childNeedsParent(ctx, c, retryUnknown, w); err != nil || needed {
			return needed, err
		}
	}
	return false, nil
}

// TakeOrphan claims a run without a live owner, and reports whether it did. The error is the reason if not:
// COMPOSITE_EXECUTOR_NOT_CONFIGURED if this process lacks the executor that the run waits for.
func (x *Run) TakeOrphan(ctx context.Context, retryUnknown bool, w *Work) (bool, error) {
	if x.Owned() {
		return false, nil
	}
	if err := x.Refresh(ctx); err != nil || x.Ended() {
		return false, err
	}
	x.parentUnchecked = x.exec.Parent != "" // its parent may have ended
	seq := x.exec.Seq
	err := x.TakeOver(ctx, retryUnknown, w)
	if err != nil || x.Owned() || x.Ended() || x.exec.Seq != seq || w.preview != nil && w.preview.Acts {
		return err == nil, err
	}
	if lack := x.Lacks(); lack != nil && !lack.Host {
		return false, lack.Err()
	}
	if !x.waitsForQueue() {
		return false, nil
	}
	if place, err := x.readyPlace(ctx); err != nil || place != nil {
		return false, err // it is ready already
	}
	if !w.dry() {
		_, err = x.claim(ctx)
		if x.Owned() {
			x.disown(ctx) // it is ready then, so that it is seen to wait
		}
		if errors.Is(err, ErrConflict) {
			err = nil
		}
	}
	return false, err
}

// waitsForQueue reports whether an effect in flight is left to the workers of another queue.
func (x *Run) waitsForQueue() bool {
	if x.env.Sharing.Queue == nil || len(x.attempts) > 0 {
		return false
	}
	return slices.ContainsFunc(x.m.InFlight(), func(e machine.Effect) bool {
		_, isChild := e.(*machine.ChildEffect)
		return !isChild && x.leaves(x.prog.Node(e.Base().NodeID))
	})
}

// TakeBack continues a run that this process owns in the store under a name, but does not drive: an append, a claim or a disowning
// failed, or its response was lost. If this process cannot perform the remaining effects, others can.
func (x *Run) TakeBack(ctx context.Context, process string, w *Work) error {
	if x.Owned() {
		return nil
	}
	if owner, err := x.env.Store.Owner(ctx, x.id); err != nil || owner.Process != process {
		return err
	}
	if x.env.Sharing.Taking(x.id) {
		return nil
	}
	if err := x.env.Store.Disown(work.Detached(ctx), process, x.id); err != nil {
		return err
	}
	_, err := x.TakeOrphan(ctx, false, w)
	return err
}

// Preview describes the effect of a takeover.
type Preview struct {
	// Acts: the takeover would record something, or perform an effect in flight.
	Acts bool
	// Begins are the subworkflows that it would start, if their workflows are known; Depth is the nesting of the run.
	Begins []*machine.ChildEffect
	Depth  int
	// Lack is the missing executor, if the takeover would do nothing.
	Lack *view.Lack
	// Due is the timer of the run that has been due longest, zero without one.
	Due machine.Timer
}

// Preview returns the effect of TakeOrphan on a run without a live owner, or else of Fire. It runs the same code, up to the first write.
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

// dry reports whether this is a preview, and notes in it that the takeover would act.
func (w *Work) dry() bool {
	if w.preview == nil {
		return false
	}
	w.preview.Acts = true
	return true
}
