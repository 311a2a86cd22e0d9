package process

import (
	"context"
	"errors"

	"github.com/workflows-engine/workflows-engine/graph/internal/admit"
	"github.com/workflows-engine/workflows-engine/graph/internal/run"
	"github.com/workflows-engine/workflows-engine/graph/internal/work"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// pool returns a Pool for attempts of a run.
func (p *Process) pool(x *run.Run) *work.Pool {
	return &work.Pool{Performer: p.Performer, ExecutionID: x.ID(), Run: pooled{p, x}}
}

// pooled is the run of a Pool.
type pooled struct {
	p *Process
	x *run.Run
}

func (r pooled) Hold() (drop func()) {
	r.p.Runs.Retain(r.x)
	return func() { r.p.Runs.Drop(r.x) }
}

func (r pooled) Perform(a *work.Attempt) []*work.Attempt { return r.p.perform(r.x, a) }

func (r pooled) Exited(a *work.Attempt) []*work.Attempt {
	defer r.p.Performer.InFlight.End(a)
	return r.p.finish(r.x, a, r.p.Performer.Exited(r.x.ID(), a))
}

// perform performs one attempt, records its outcome and returns the attempts that follow. After Close no attempt begins.
func (p *Process) perform(x *run.Run, a *work.Attempt) []*work.Attempt {
	if a.Context.Err() != nil {
		return nil
	}
	if !p.Performer.InFlight.Begin(x.ID(), a) {
		p.endAttempt(work.Detached(p.Context), x, a)
		return nil
	}
	var next []*work.Attempt
	if e, isChild := a.Effect.(*machine.ChildEffect); isChild {
		next = p.performChild(x, a, e)
	} else if in, ok := p.Performer.Perform(x.ID(), a); !ok {
	} else if p.Performer.LeftToOthers(x.ID(), a, in) {
		p.endAttempt(work.Detached(p.Context), x, a)
	} else {
		if _, turn := a.Effect.(*machine.TurnEffect); !turn { // the attempt that has its turn takes the place
			a.Leave()
		}
		next = p.finish(x, a, in)
	}
	p.Performer.InFlight.End(a) // not deferred: an executor that ends its goroutine is handled by Exited
	return next
}

// finish records the outcome of an attempt and returns the attempts that follow.
func (p *Process) finish(x *run.Run, a *work.Attempt, in machine.Input) []*work.Attempt {
	ctx := work.Detached(p.Context)
	for try := 0; ; try++ {
		var w run.Work
		err := locked(x, func() error { return x.Finish(ctx, a, in, &w) })
		next := w.Begin
		w.Begin = nil
		p.dispatch(ctx, x, &w)
		switch {
		case err == nil:
			return next
		case errors.Is(err, work.ErrUnwanted):
			p.cancelUnwantedTask(x, a, in)
			return next
		case admit.IsRefusal(err):
			p.cancelUnwantedTask(x, a, in)
			p.Log.Warn("outcome rejected", run.LogRun, x.ID(), run.LogKey, a.Key, run.LogError, err)
			p.endAttempt(ctx, x, a)
			return next
		case p.again(try):
			p.pool(x).Begin(next)
		default:
			p.Log.Error("outcome not recorded", run.LogRun, x.ID(), run.LogKey, a.Key, run.LogError, err)
			p.lose(x, err)
			return nil
		}
	}
}

// endAttempt ends an attempt without an outcome.
func (p *Process) endAttempt(ctx context.Context, x *run.Run, a *work.Attempt) {
	err := p.With(ctx, x, func(w *run.Work) error { return x.EndAttempt(ctx, a, w) })
	if err != nil {
		p.Log.Warn("check of owned run failed", run.LogRun, x.ID(), run.LogError, err)
	}
}

// lose stops driving a run after a permanent failure of the store.
func (p *Process) lose(x *run.Run, err error) {
	cause := problem.New(problem.Internal, "the run cannot be recorded").WithCause(err)
	_ = locked(x, func() error { x.Lose(cause); return nil })
}

// cancelUnwantedTask cancels a task that the agent accepted after its outcome had become unwanted.
func (p *Process) cancelUnwantedTask(x *run.Run, a *work.Attempt, in machine.Input) {
	if cause := context.Cause(a.Context); cause == errClosed || cause == work.ErrLeaseLost {
		return
	}
	e := p.Performer.UnwantedTask(a, in)
	if e == nil {
		return
	}
	x.Lock()
	awaited := x.AwaitsTask(in.(machine.TaskUpdate).TaskID)
	x.Unlock()
	if !awaited {
		p.Performer.CancelTasks(x.ID(), e)
	}
}
