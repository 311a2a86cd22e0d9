package graph

import (
	"context"
	"errors"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// carry does what inputs have brought, after the lock has been given back: effects are performed in the background,
// subworkflows that nobody waits for are cancelled, the parent is told that the run has ended. What fails or is cut
// short here is found again: a parent whose subworkflow has ended counts as orphaned, its driver looks after that too
// (takeUpChildren), and a subworkflow asks after its parent when it is next loaded.
func (r *Runner) carry(ctx context.Context, x *run, y *yield) {
	r.launch(x, y.flights)
	ctx = lasting(ctx)
	r.tellAgents(x, y.tasks)
	for _, child := range y.orphans {
		r.persist(x, func() error { return r.cancelChild(ctx, child, x.id) }, func(err error) {
			r.log.Error("subworkflow not cancelled", logRun, x.id, logChild, child, logError, err)
		})
	}
	if parent := y.parent; parent != "" {
		r.persist(x, func() error { return r.tellParent(ctx, x, parent) }, func(err error) {
			r.log.Error("parent not told", logRun, parent, logChild, x.id, logError, err)
		})
	}
}

// persist does something for a run, and tries again in the background while the store fails for a reason that may pass.
// failed is told if it was in vain.
func (r *Runner) persist(x *run, do func() error, failed func(error)) {
	err := do()
	if err == nil {
		return
	}
	r.runs.retain(x)
	r.tasks.Go(func() {
		defer r.runs.drop(x)
		for _, p := range recordPauses {
			if !r.pause(p) {
				break
			}
			if err = do(); err == nil {
				return
			}
		}
		failed(err)
	})
}

// launch performs flights in the background.
func (r *Runner) launch(x *run, flights []*flight) {
	if len(flights) == 0 {
		return
	}
	r.runs.retain(x)
	r.tasks.Go(func() {
		defer r.runs.drop(x)
		r.drive(x, flights)
	})
}

// drive performs flights of a run and whatever comes of them, until nothing is left for this goroutine. What answers
// at once is called here, in branch order; of what takes time, one is called here and each other one in a goroutine of
// its own. So a run without branches needs one goroutine and no hand-over between nodes.
func (r *Runner) drive(x *run, flights []*flight) {
	for queue := r.spread(x, nil, flights); len(queue) > 0; {
		f := queue[0]
		queue = r.spread(x, queue[1:], r.perform(x, f))
		f.cancel(errOver) // frees the context
	}
}

// spread adds flights to the queue of a goroutine, launching those that would hold it up.
func (r *Runner) spread(x *run, queue, flights []*flight) []*flight {
	var slow []*flight
	for _, f := range flights {
		if r.immediate(x, f) {
			queue = append(queue, f)
		} else {
			slow = append(slow, f)
		}
	}
	if len(queue) == 0 && len(slow) > 0 {
		queue, slow = append(queue, slow[0]), slow[1:]
	}
	for _, f := range slow {
		r.launch(x, []*flight{f})
	}
	return queue
}

// perform performs one flight, hands in its outcome and gives the flights that follow. After Close nothing new is
// begun.
func (r *Runner) perform(x *run, f *flight) []*flight {
	if f.ctx.Err() != nil {
		return nil
	}
	if e, isChild := f.effect.(*machine.ChildEffect); isChild {
		return r.performChild(x, f, e)
	}
	in, ok := r.call(x, f)
	if !ok {
		return nil
	}
	return r.finish(x, f, in)
}

// The pauses before an outcome is recorded again after the store failed for a reason that may pass.
var recordPauses = []time.Duration{20 * time.Millisecond, 200 * time.Millisecond, time.Second}

// finish records the outcome of a flight and gives the flights that follow.
func (r *Runner) finish(x *run, f *flight, in machine.Input) []*flight {
	ctx := lasting(r.ctx)
	for try := 0; ; try++ {
		var y yield
		x.mu.Lock()
		err := x.finish(ctx, f, in, &y)
		x.mu.Unlock()
		next := y.flights
		y.flights = nil
		r.carry(ctx, x, &y)
		switch {
		case err == nil:
			return next
		case errors.Is(err, errOver):
			r.tellUnwanted(x, f, in)
			return next
		case isRefusal(err):
			r.tellUnwanted(x, f, in)
			r.log.Warn("outcome refused", logRun, x.id, logKey, f.key, logError, err)
			r.setDown(ctx, x, f)
			return next
		case try < len(recordPauses) && r.pause(recordPauses[try]):
			r.launch(x, next)
		default:
			r.log.Error("outcome not recorded", logRun, x.id, logKey, f.key, logError, err)
			x.mu.Lock()
			x.lose(errLost(err))
			x.mu.Unlock()
			return nil
		}
	}
}

// finish hands in the outcome of a flight, unless it comes too late.
func (x *run) finish(ctx context.Context, f *flight, in machine.Input, y *yield) error {
	if x.flights[f.key] == f && f.late(x.r.now()) {
		if err := x.fireDue(ctx, y); err != nil {
			return err
		}
	}
	if x.flights[f.key] != f {
		if context.Cause(f.ctx) != errClosed {
			x.r.log.Info("late outcome dropped", logRun, x.id, logKey, f.key)
		}
		return errOver
	}
	err := x.apply(ctx, step{in: in, flight: f}, y)
	if errors.Is(err, errOver) && x.adopting && x.m != nil {
		x.adopt(y) // the outcome is recorded already; what it led to is not performed yet
	}
	return err
}

// pause waits, unless the Runner is closed.
func (r *Runner) pause(d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-r.ctx.Done():
		return false
	}
}

// isRefusal tells a machine's refusal from trouble with the store.
func isRefusal(err error) bool {
	p, ok := problem.As(err)
	if !ok {
		return false
	}
	switch p.Code {
	case problem.StoreLocked, problem.StoreFull, problem.StoreReadOnly, problem.StoreUnavailable, problem.StoreReplaced:
		return false
	case problem.Internal, problem.HistoryCorrupt, problem.HistoryNewer, problem.DefinitionNotFound, problem.ExecutionNotFound,
		problem.DeletionUnfinished:
		return false
	}
	return true
}
