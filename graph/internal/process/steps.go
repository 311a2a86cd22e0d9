package process

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

// performed are the runs of the attempts that this process performs; see work.Runs.
type performed struct{ p *Process }

func (r performed) Recorded(ctx context.Context, id string, a *work.Attempt, first int64, n int) ([]activities.Step, error) {
	for try := 0; ; try++ {
		steps, err := run.RecordedSteps(ctx, r.p.Store, id, a.Effect.Base(), first, n)
		switch {
		case err == nil || ctx.Err() != nil || admit.IsRefusal(err) || errors.Is(err, problem.HistoryCorrupt) || errors.Is(err, problem.HistoryNewer):
			return steps, err
		case !r.p.again(try):
			r.lose(id, err)
			return nil, err
		}
	}
}

func (r performed) Record(id string, a *work.Attempt, in machine.StepsRecorded) error {
	ctx := work.Detached(r.p.Context)
	for try := 0; ; try++ {
		err := r.p.WithID(ctx, id, func(x *run.Run, w *run.Work) error {
			if err := x.Finish(ctx, a, in, w); err != nil {
				return err
			}
			if m := x.Machine(); x.Ended() && m != nil { // these entries have taken the run to a limit
				message, code, _ := m.Failure()
				return problem.New(problem.Code(code), "%s", message)
			}
			return nil
		})
		switch {
		case errors.Is(err, work.ErrUnwanted) && context.Cause(a.Context) != nil:
			return context.Cause(a.Context)
		case try > 0 && errors.Is(err, problem.HistoryConflict) && context.Cause(a.Context) == nil && run.HasRecorded(ctx, r.p.Store, id, a.Effect.Base(), &in):
			return nil // only the response to the commit was lost
		case err == nil || admit.IsRefusal(err):
			return err
		case !r.p.again(try):
			r.lose(id, err)
			return err
		}
	}
}

func (r performed) Room(ctx context.Context, id string) (int64, error) {
	e, err := r.p.Store.Execution(ctx, id)
	if err != nil {
		return 0, err
	}
	return max(r.p.config.Limits.MaxBytes-e.Bytes, 0), nil
}

// lose stops driving the run of an attempt after a failure of the store, unless the engine closes. The attempt has not failed: it is
// repeated when the store works again.
func (r performed) lose(id string, err error) {
	if r.p.Context.Err() == nil {
		x := r.p.Runs.Hold(id)
		defer r.p.Runs.Drop(x)
		r.p.lose(x, err)
	}
}

func (r performed) KeepsTasks(ctx context.Context, id string) (bool, error) {
	return run.KeepsTasks(ctx, r.p.Store, id)
}

func (r performed) Silent(id string, a *work.Attempt, in machine.Input) {
	x := r.p.Runs.Hold(id)
	defer r.p.Runs.Drop(x)
	r.p.pool(x).Begin(r.p.finish(x, a, in))
}

func (r performed) Alive(h work.Heartbeat) {
	r.p.notifier.Report(Progress{
		ExecutionID: h.ExecutionID, NodeID: h.NodeID, Branch: h.Branch, Kind: ExecutorAlive, Attempt: h.Attempt, Detail: h.Details,
	})
}
