package run

import (
	"context"
	"errors"

	"github.com/workflows-engine/workflows-engine/graph/internal/admit"
	"github.com/workflows-engine/workflows-engine/graph/internal/work"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
)

// Cancel ends the run unless it is cancelled already.
func (x *Run) Cancel(ctx context.Context, in machine.Cancel, w *Work) error {
	err := x.Open(ctx)
	if errors.Is(err, problem.DefinitionNotFound) {
		return x.cancelUnloaded(ctx, in, w)
	}
	if err == nil {
		err = x.Apply(ctx, Input{Input: in}, w)
	}
	if errors.Is(err, problem.CancelNotAllowed) && x.exec.Phase == history.PhaseCancelled {
		return nil
	}
	return err
}

// cancelUnloaded cancels a run whose definition is unknown; a cancel needs no definition (spec: execution, 7.4).
func (x *Run) cancelUnloaded(ctx context.Context, in machine.Cancel, w *Work) error {
	for {
		p := history.Payload{NodeID: x.exec.CurrentNodeID, Reason: in.Reason}
		end := p
		end.KeepTasks = in.KeepTasks
		now := x.env.Now()
		exec := x.exec
		records := []history.Record{
			{Seq: exec.Seq + 1, Kind: history.Command, Name: history.CancelExecution, Payload: p, CreatedAt: now},
			{Seq: exec.Seq + 2, Kind: history.Event, Name: history.ExecutionCancelled, Payload: end, CreatedAt: now},
		}
		Sign(ctx, records)
		exec.ApplyAll(records)
		err := x.env.Store.Append(work.Detached(ctx), history.Batch{
			ExecutionID: x.id, ExpectedSeq: x.exec.Seq, Records: records, Execution: exec, SetTimers: true,
		})
		if err == nil {
			x.setExecution(exec)
			x.become(Ended)
			w.NotifyParent, w.Changed = exec.Parent, true
			return nil
		}
		if !errors.Is(err, problem.HistoryConflict) {
			return err
		}
		if exec, err = x.env.Store.Execution(ctx, x.id); err != nil {
			return err
		}
		x.setExecution(exec)
		if x.Ended() {
			return admit.Ended(&x.exec, in)
		}
	}
}
