package run

import (
	"context"
	"errors"
	"slices"

	"github.com/workflows-engine/workflows-engine/graph/internal/work"
	"github.com/workflows-engine/workflows-engine/graph/machine"
)

// Finish applies the outcome of an attempt. work.ErrUnwanted means that it comes too late.
func (x *Run) Finish(ctx context.Context, a *work.Attempt, in machine.Input, w *Work) error {
	if x.performing(a) && a.Late(x.env.Now()) && (x.m == nil || !x.m.Walking()) {
		if err := x.fireMine(ctx, w); err != nil {
			return err
		}
	}
	if !x.performing(a) {
		if x.env.Context.Err() == nil {
			x.env.Log.Info("late outcome dropped", LogRun, x.id, LogKey, a.Key)
		}
		return work.ErrUnwanted
	}
	err := x.Apply(ctx, Input{Input: in, Attempt: a}, w)
	if errors.Is(err, work.ErrUnwanted) && x.m != nil {
		x.redispatch(w) // the outcome is recorded already; what it led to is not performed yet
	}
	return err
}

// AwaitsTask reports whether the run waits for a task at an agent. A run whose machine is not loaded is taken to.
func (x *Run) AwaitsTask(id string) bool {
	if x.m == nil {
		return !x.Ended()
	}
	return slices.ContainsFunc(x.m.Pending(), func(w machine.Wait) bool { return w.Task != nil && w.Task.ID == id })
}
