package graph

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/workflows-engine/workflows-engine/graph/internal/admit"
	"github.com/workflows-engine/workflows-engine/graph/internal/run"
	"github.com/workflows-engine/workflows-engine/graph/internal/transfer"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/graph/view"
	"github.com/workflows-engine/workflows-engine/history"
)

// Status returns the status of a run. It fires due timers and cancels a subworkflow whose parent has ended, unless the Runner is ReadOnly.
// The error is EXECUTION_NOT_FOUND or the store's.
func (r *Runner) Status(ctx context.Context, req StatusRequest) (*view.Run, error) {
	if err := r.enter(ctx); err != nil {
		return nil, err
	}
	defer r.tasks.Done()
	x := r.runs.Hold(req.ExecutionID)
	defer r.runs.Drop(x)
	var s run.Standing
	var err error
	if !r.opts.ReadOnly {
		err = r.endAbove(ctx, req.ExecutionID)
	}
	if err == nil {
		err = r.standings.Look(ctx, x, false, &s)
	}
	if err == nil && req.Wait != nil && r.limit(*req.Wait) > 0 && (req.Since == 0 || s.Seq <= req.Since) {
		wait := *req.Wait
		wait.Limit = r.limit(wait)
		if req.Wait.Applied != nil {
			req.Wait.Applied()
		}
		was, waiting := s, r.waiting(x)
		waiting.AnyChange = req.Since > 0
		waiting.Until = func(now *run.Standing) bool {
			return now.Status != was.Status || req.Since > 0 && now.Sum != was.Sum
		}
		err = waiting.For(ctx, wait.waiting())
	}
	if err != nil {
		return nil, admit.NotFoundAs(err, problem.ExecutionNotFound, req.ExecutionID)
	}
	v, err := r.standings.View(detached(ctx), x)
	if err != nil {
		return nil, err
	}
	of := history.Execution{ID: v.ExecutionID, Phase: history.Phase(v.Status), ForkedFrom: v.ForkedFrom}
	err = history.AddLineage(detached(ctx), r.store, &of)
	v.Lineage = of.Lineage
	if err == nil && v.Status == machine.Failed {
		v.GoesOn, err = r.goesOn(detached(ctx), v.ExecutionID, v.Seq, view.Ending{Code: v.ErrorCode, NodeID: v.ErrorNodeID, Compensated: v.Compensated})
	}
	return v, err
}

// goesOn reads the last records of a failed run: first a few, and more only if these include journal entries.
const lastFew, lastMany = 200, 5000

// goesOn returns the point where a retry continues the agent of a failed run or of its failed subworkflow.
func (r *Runner) goesOn(ctx context.Context, id string, last int64, end view.Ending) (g view.GoesOn, err error) {
	if end.NodeID == "" || end.Compensated > 0 || problem.Code(end.Code).IsLimit() {
		return g, nil
	}
	for _, n := range []int64{lastFew, lastMany} {
		records, err := r.store.Read(ctx, id, max(1, last-n+1), 0)
		if err != nil {
			return g, err
		}
		if child := transfer.FailedChild(records, end.NodeID); child != "" {
			return r.goesOnBelow(ctx, child)
		}
		if !slices.ContainsFunc(records, func(rec history.Record) bool { return rec.Payload.AgentStep != nil }) {
			return g, nil
		}
		if g.After, g.Calls = transfer.AgentContinues(records, end.NodeID, end.Code); g.After != "" || last <= n {
			return g, nil
		}
	}
	return g, nil
}

// goesOnBelow is goesOn for a subworkflow, and sets In.
func (r *Runner) goesOnBelow(ctx context.Context, id string) (g view.GoesOn, err error) {
	x, err := r.store.Execution(ctx, id)
	if errors.Is(err, problem.ExecutionNotFound) {
		return g, nil
	}
	if err != nil {
		return g, err
	}
	records, err := r.store.Read(ctx, id, max(1, x.Seq-lastFew+1), 0)
	if err != nil {
		return g, err
	}
	end := view.Ending{Status: machine.Status(x.Phase)}
	if !end.TakeRecords(records) {
		return g, nil
	}
	if g, err = r.goesOn(ctx, id, x.Seq, end); g.After != "" {
		g.In = cmp.Or(g.In, id)
	}
	return g, err
}
