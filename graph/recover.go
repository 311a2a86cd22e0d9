package graph

import (
	"context"
	"errors"

	"github.com/workflows-engine/workflows-engine/graph/problem"
)

const defaultRecoverLimit = 100

// Recover takes over runs whose driver is gone and fires due timers. What was in flight is performed again, with the
// same keys; the call does not wait for it. Runs that need an executor or a workflow_ref which this Runner lacks are left
// to others, and so are runs that wait for a host, a person or a signal.
func (r *Runner) Recover(ctx context.Context, req RecoverRequest) (*RecoverResult, error) {
	if err := r.enter(); err != nil {
		return nil, err
	}
	defer r.tasks.Done()
	if req.Limit < 0 {
		return nil, problem.New(problem.ValidationError, "limit %d is negative", req.Limit)
	}
	fallback(&req.Limit, defaultRecoverLimit)
	ids, err := r.store.Orphans(ctx, r.now(), req.Limit)
	if err != nil {
		return nil, err
	}
	if req.DryRun {
		return &RecoverResult{ExecutionIDs: ids}, nil
	}
	res := &RecoverResult{}
	for _, id := range ids {
		if ctx.Err() != nil {
			return res, ctx.Err()
		}
		took, err := r.takeOrphan(ctx, id)
		if err != nil {
			r.log.Warn("run not taken over", logRun, id, logError, err)
			continue
		}
		if took {
			res.ExecutionIDs = append(res.ExecutionIDs, id)
		}
	}
	due, err := r.store.DueTimers(ctx, r.now(), req.Limit)
	if err != nil {
		return res, err
	}
	seen := map[string]bool{}
	for _, t := range due {
		if !seen[t.ExecutionID] {
			seen[t.ExecutionID] = true
			r.ring(&alarm{id: t.ExecutionID})
		}
	}
	return res, nil
}

// takeOrphan takes over one run whose lease has run out, and reports whether it did.
func (r *Runner) takeOrphan(ctx context.Context, id string) (bool, error) {
	x := r.runs.hold(id)
	defer r.runs.drop(x)
	var y yield
	x.mu.Lock()
	took, err := x.takeOrphan(ctx, &y)
	x.mu.Unlock()
	r.carry(ctx, x, &y)
	return took, err
}

func (x *run) takeOrphan(ctx context.Context, y *yield) (bool, error) {
	if x.held {
		return false, nil
	}
	if won, err := x.acquire(ctx); err != nil || !won {
		return false, err
	}
	err := x.sync(ctx, nil)
	if err == nil && x.ended() {
		x.giveBack(ctx)
		return false, nil
	}
	if err == nil {
		if lack := x.lacks(x.m.Config().Mode); lack != nil {
			err = unequipped(lack)
		}
	}
	if err != nil {
		x.standBack(ctx)
		return false, err
	}
	x.live = adopted
	x.unsure = x.exec.Parent != "" // it may count as an orphan because its parent has ended
	return true, x.carryOn(ctx, y)
}

// carryOn goes on with a run whose lease this process holds.
func (x *run) carryOn(ctx context.Context, y *yield) error {
	if err := x.commitLeft(ctx, y); err != nil {
		if errors.Is(err, errAgain) {
			return nil // somebody else is at it
		}
		return err
	}
	if x.m == nil {
		return nil
	}
	if gone, err := x.leaveWithParent(ctx, y); gone || err != nil {
		return err
	}
	x.adopt(y)
	if err := x.fireDue(ctx, y); err != nil {
		return err
	}
	return x.rest(ctx, y)
}

// takeOver makes this process the driver of an open run if its driver is gone, and does what is due.
func (x *run) takeOver(ctx context.Context, y *yield) error {
	if !x.r.equipped(x) {
		return nil
	}
	if !x.held && x.abandoned() {
		switch won, err := x.seize(ctx); {
		case errors.Is(err, errAgain) && x.ended():
			return nil
		case err != nil && !errors.Is(err, errAgain) || err == nil && !won:
			return err
		}
		x.live = adopted
		return x.carryOn(ctx, y)
	}
	if err := x.commitLeft(ctx, y); err != nil && !errors.Is(err, errAgain) {
		return err
	}
	if x.m == nil {
		return nil
	}
	return x.visit(ctx, y)
}

// abandoned reports whether something is in flight that this process does not perform.
func (x *run) abandoned() bool {
	for _, e := range x.m.InFlight() {
		if x.flights[e.Key()] == nil {
			return true
		}
	}
	return false
}
