package graph

import (
	"context"
	"errors"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
)

const defaultRecoverLimit = 100

// Recover takes over runs whose driver is gone and fires due timers. What was in flight is performed again, with the
// same keys; the call does not wait for it. Runs that wait for an executor or a workflow_ref which this Runner lacks are
// left to others, without a write, and so are runs that wait for a host, a person or a signal. Limit bounds how many runs
// are looked at; those that were looked at last come last. With DryRun it writes nothing and says what it would do.
func (r *Runner) Recover(ctx context.Context, req RecoverRequest) (*RecoverResult, error) {
	if err := r.enter(); err != nil {
		return nil, err
	}
	defer r.tasks.Done()
	ctx, stop := r.untilClose(ctx)
	defer stop()
	if req.Limit < 0 {
		return nil, problem.New(problem.ValidationError, "limit %d is negative", req.Limit)
	}
	fallback(&req.Limit, defaultRecoverLimit)
	if req.DryRun {
		return r.survey(ctx, req.Limit)
	}
	ids, err := r.takeOrphans(ctx, req.Limit, true)
	if err != nil && ids == nil {
		return nil, err
	}
	res := &RecoverResult{ExecutionIDs: ids}
	if err != nil {
		return res, err
	}
	due, err := r.dueRuns(ctx, r.now(), req.Limit)
	if err != nil {
		return res, err
	}
	for _, t := range due {
		r.ring(&alarm{id: t.ExecutionID})
	}
	return res, nil
}

// dueRuns gives the earliest timers of runs of which one is due by a time. It reads on until it has come to as many runs as
// are to be looked at besides those that were, so that what it reads is bounded by the timers of the runs that are left to others.
func (r *Runner) dueRuns(ctx context.Context, by time.Time, limit int) ([]history.Timer, error) {
	first := map[string]history.Timer{}
	var ids []string
	wanted := limit + r.due.count()
	for rows := wanted; ; rows *= 2 {
		all, err := r.store.DueTimers(ctx, by, rows)
		if err != nil {
			return nil, err
		}
		clear(first)
		ids = ids[:0]
		for _, t := range all {
			if _, ok := first[t.ExecutionID]; !ok {
				first[t.ExecutionID] = t
				ids = append(ids, t.ExecutionID)
			}
		}
		if len(ids) >= wanted || len(all) < rows {
			break
		}
	}
	var due []history.Timer
	for _, o := range r.due.choose(ids, limit) {
		due = append(due, first[o.id])
	}
	return due, nil
}

// takeOrphans takes over runs whose lease has run out, and gives their ids. A patient call waits until it is known which
// workflows have become known, and takes over what was left for want of them; otherwise that counts the next time.
func (r *Runner) takeOrphans(ctx context.Context, limit int, patient bool) ([]string, error) {
	ids, err := r.store.Orphans(ctx, r.now(), limit+r.orphans.count())
	if err != nil {
		return nil, err
	}
	taken, left, err := r.takeEach(ctx, r.orphans.choose(ids, limit))
	if err != nil {
		return taken, err
	}
	if learned := r.reconsider(ctx); patient && learned() {
		more, _, err := r.takeEach(ctx, left)
		return append(taken, more...), err
	}
	return taken, context.Cause(ctx)
}

// takeEach takes over those of some runs that it can, and gives the others as they are to be looked at again.
func (r *Runner) takeEach(ctx context.Context, runs []turn) (taken []string, left []turn, err error) {
	for _, o := range runs {
		if ctx.Err() != nil {
			return taken, left, context.Cause(ctx)
		}
		took, err := r.takeOrphan(ctx, o.id)
		switch {
		case took:
			r.log.Info("run taken over", logRun, o.id)
			taken = append(taken, o.id)
			continue
		case err != nil && !o.again:
			r.log.Warn("run not taken over", logRun, o.id, logError, err)
		}
		left = append(left, turn{o.id, true})
	}
	return taken, left, nil
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
	if err := x.sync(ctx, nil); err != nil || x.ended() {
		return false, err
	}
	x.unsure = x.exec.Parent != "" // it may count as an orphan because its parent has ended
	seq := x.exec.Seq
	err := x.takeOver(ctx, y)
	if err != nil || x.held || x.ended() || x.exec.Seq != seq {
		return err == nil, err
	}
	if lack := x.lacks(); lack != nil && !lack.Host {
		return false, unequipped(lack)
	}
	return false, nil
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
	if b := x.m.Ready(); b.TimersChanged {
		if err := x.commit(ctx, b, true, y); errors.Is(err, errAgain) {
			return nil // what was adopted flies; the keeper sees to the rest
		} else if err != nil {
			return err
		}
	}
	if err := x.fireDue(ctx, y); err != nil {
		return err
	}
	return x.rest(ctx, y)
}

// takeOver makes this process the driver of an open run if its driver is gone and has left something that this process
// can perform, and does what is due.
func (x *run) takeOver(ctx context.Context, y *yield) error {
	if !x.held {
		if abandoned, err := x.abandoned(ctx); err != nil {
			return err
		} else if abandoned {
			return x.takeUp(ctx, y)
		}
	}
	if err := x.commitLeft(ctx, y); err != nil && !errors.Is(err, errAgain) {
		return err
	}
	if x.m == nil {
		return nil
	}
	return x.visit(ctx, y)
}

// takeUp makes this process the driver of an open run, unless another one is, and performs what was abandoned.
func (x *run) takeUp(ctx context.Context, y *yield) error {
	switch won, err := x.seize(ctx); {
	case errors.Is(err, errAgain) && x.ended():
		return nil
	case err != nil && !errors.Is(err, errAgain) || err == nil && !won:
		return err
	}
	return x.carryOn(ctx, y)
}

// abandoned reports whether something is in flight that this process does not perform, but can. It only reads, so that a
// run of which nothing can be performed here costs no write, however often it is looked at.
func (x *run) abandoned(ctx context.Context) (bool, error) {
	var children []*machine.ChildEffect
	for _, e := range x.m.InFlight() {
		switch c, isChild := e.(*machine.ChildEffect); {
		case x.flights[e.Key()] != nil || !x.fit(e):
		case isChild:
			children = append(children, c)
		default:
			return true, nil
		}
	}
	for _, c := range children {
		if awaits, err := x.awaitsChild(ctx, c); err != nil || awaits {
			return awaits, err
		}
	}
	return false, nil
}
