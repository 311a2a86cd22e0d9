package graph

import (
	"context"
	"errors"
	"strings"

	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
)

// Cancel ends a run and its subworkflows; what executors do for them is stopped and not recorded, and agents are told to
// end their tasks unless these are kept. Cancelling a cancelled run changes nothing and answers with the first reason.
// Errors: EXECUTION_NOT_FOUND, CANCEL_NOT_ALLOWED for a run that has
// completed or failed, CANCEL_VALIDATION_ERROR for arguments or a run that cannot be read.
func (r *Runner) Cancel(ctx context.Context, req CancelRequest) (*Run, error) {
	if err := r.enter(); err != nil {
		return nil, err
	}
	defer r.tasks.Done()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if strings.TrimSpace(req.ExecutionID) == "" {
		return nil, problem.New(problem.CancelValidationError, "execution_id is missing")
	}
	x := r.runs.hold(req.ExecutionID)
	defer r.runs.drop(x)
	var y yield
	x.mu.Lock()
	in := machine.Cancel{Reason: problem.Excerpt(strings.TrimSpace(req.Reason), problem.MaxText), KeepTasks: req.KeepTasks}
	err := x.cancel(ctx, in, &y)
	x.mu.Unlock()
	r.carry(ctx, x, &y)
	if err != nil {
		return nil, unreadableAs(notFoundAs(err, problem.ExecutionNotFound, x.id), problem.CancelValidationError)
	}
	return r.view(lasting(ctx), x)
}

// cancel ends the run unless it is cancelled already.
func (x *run) cancel(ctx context.Context, in machine.Cancel, y *yield) error {
	err := x.open(ctx, nil)
	if errors.Is(err, problem.DefinitionNotFound) {
		return x.cancelBlind(ctx, in, y)
	}
	if err == nil {
		err = x.apply(ctx, step{in: in}, y)
	}
	if errors.Is(err, problem.CancelNotAllowed) && x.exec.Phase == history.PhaseCancelled {
		return nil
	}
	return err
}

// cancelBlind cancels a run whose definition is not known: that needs none (spec: execution, 7.4).
func (x *run) cancelBlind(ctx context.Context, in machine.Cancel, y *yield) error {
	for {
		p := history.Payload{NodeID: x.exec.CurrentNodeID, Reason: in.Reason}
		end := p
		end.KeepTasks = in.KeepTasks
		now := x.r.now()
		exec := x.exec
		records := []history.Record{
			{Seq: exec.Seq + 1, Kind: history.Command, Name: history.CancelExecution, Payload: p, CreatedAt: now},
			{Seq: exec.Seq + 2, Kind: history.Event, Name: history.ExecutionCancelled, Payload: end, CreatedAt: now},
		}
		for i := range records {
			exec.Apply(records[i])
		}
		err := x.r.store.Append(lasting(ctx), history.Batch{
			ExecutionID: x.id, ExpectedSeq: x.exec.Seq, Records: records, Execution: exec, SetTimers: true,
		})
		if err == nil {
			x.exec = exec
			y.parent = exec.Parent
			x.r.hub.wake(x.id)
			return nil
		}
		if !errors.Is(err, problem.HistoryConflict) {
			return err
		}
		if x.exec, err = x.r.store.Execution(ctx, x.id); err != nil {
			return err
		}
		if x.ended() {
			return refuseEnded(x, in)
		}
	}
}
