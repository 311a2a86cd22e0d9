package graph

import (
	"context"
	"errors"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/graph/internal/admit"
	"github.com/workflows-engine/workflows-engine/graph/internal/run"
	"github.com/workflows-engine/workflows-engine/graph/internal/work"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// steps are those that executors record of the attempts that this process performs.
type steps struct{ r *Runner }

// Recorded implements perform.Steps.
func (s steps) Recorded(ctx context.Context, id string, a *work.Attempt, first int64, n int) ([]activities.Step, error) {
	for try := 0; ; try++ {
		steps, err := run.RecordedSteps(ctx, s.r.store, id, a.Effect.Base(), first, n)
		switch {
		case err == nil || ctx.Err() != nil || admit.IsRefusal(err) || errors.Is(err, problem.HistoryCorrupt) || errors.Is(err, problem.HistoryNewer):
			return steps, err
		case !s.r.again(try):
			s.lose(id, err)
			return nil, err
		}
	}
}

// Record implements perform.Steps.
func (s steps) Record(id string, a *work.Attempt, in machine.StepsRecorded) error {
	ctx := detached(s.r.ctx)
	for try := 0; ; try++ {
		err := s.r.withID(ctx, id, func(x *run.Run, w *run.Work) error {
			if err := x.Finish(ctx, a, in, w); err != nil {
				return err
			}
			if m := x.Machine(); x.Ended() && m != nil { // the steps have taken the run to a limit
				message, code, _ := m.Failure()
				return problem.New(problem.Code(code), "%s", message)
			}
			return nil
		})
		switch {
		case errors.Is(err, work.ErrUnwanted) && context.Cause(a.Context) != nil:
			return context.Cause(a.Context)
		case try > 0 && errors.Is(err, problem.HistoryConflict) && context.Cause(a.Context) == nil && run.HasRecorded(ctx, s.r.store, id, a.Effect.Base(), &in):
			return nil // the answer of a commit was lost
		case err == nil || admit.IsRefusal(err):
			return err
		case !s.r.again(try):
			s.lose(id, err)
			return err
		}
	}
}

// Room implements perform.Steps.
func (s steps) Room(ctx context.Context, id string) (int64, error) {
	e, err := s.r.store.Execution(ctx, id)
	if err != nil {
		return 0, err
	}
	return max(s.r.opts.MaxBytes-e.Bytes, 0), nil
}

// lose stops driving the run of an attempt, unless the process ends anyway. That the store fails is no failure of the attempt: it goes on
// once the store is back.
func (s steps) lose(id string, err error) {
	if s.r.ctx.Err() == nil {
		x := s.r.runs.Hold(id)
		defer s.r.runs.Drop(x)
		s.r.lose(x, err)
	}
}
