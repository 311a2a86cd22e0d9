package graph

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/workflows-engine/workflows-engine/graph/internal/admit"
	"github.com/workflows-engine/workflows-engine/graph/internal/process"
	"github.com/workflows-engine/workflows-engine/graph/internal/run"
	"github.com/workflows-engine/workflows-engine/graph/internal/transfer"
	"github.com/workflows-engine/workflows-engine/graph/internal/work"
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
	defer r.p.Leave()
	x := r.p.Runs.Hold(req.ExecutionID)
	defer r.p.Runs.Drop(x)
	var err error
	if !r.opts.ReadOnly {
		err = r.endAbove(ctx, req.ExecutionID)
	}
	var v *view.Run
	if err == nil {
		v, err = r.status(x, req).Answer(ctx)
	}
	if err != nil {
		return nil, admit.NotFoundAs(err, problem.ExecutionNotFound, req.ExecutionID)
	}
	of := history.Execution{ID: v.ExecutionID, Phase: history.Phase(v.Status), ForkedFrom: v.ForkedFrom}
	err = history.AddLineage(work.Detached(ctx), r.p.Store, &of)
	v.Lineage = of.Lineage
	if err == nil && v.Status == machine.Failed {
		v.GoesOn, err = r.goesOn(work.Detached(ctx), v.ExecutionID, v.Seq, view.Ending{Code: v.ErrorCode, NodeID: v.ErrorNodeID, Compensated: v.Compensated})
	}
	return v, err
}

// status is the call that waits for an answer to Status.
func (r *Runner) status(x *run.Run, req StatusRequest) *process.Call {
	wait := Wait{Limit: NoWait}
	if req.Wait != nil {
		wait = *req.Wait
	}
	c := r.call(x, wait)
	c.AnyChange = req.Since > 0
	c.Until = func(was, now *process.Standing) bool {
		if was == nil {
			return req.Since > 0 && now.Seq > req.Since
		}
		return now.Status != was.Status || req.Since > 0 && now.Sum != was.Sum
	}
	return c
}

// goesOn reads the last records of a failed run: first a few, and more only if these include journal entries.
const lastFew, lastMany = 200, 5000

// goesOn returns the point where a retry continues the agent of a failed run or of its failed subworkflow.
func (r *Runner) goesOn(ctx context.Context, id string, last int64, end view.Ending) (g view.GoesOn, err error) {
	if end.NodeID == "" || end.Compensated > 0 || problem.Code(end.Code).IsLimit() {
		return g, nil
	}
	for _, n := range []int64{lastFew, lastMany} {
		records, err := r.p.Store.Read(ctx, id, max(1, last-n+1), 0)
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
	x, err := r.p.Store.Execution(ctx, id)
	if errors.Is(err, problem.ExecutionNotFound) {
		return g, nil
	}
	if err != nil {
		return g, err
	}
	records, err := r.p.Store.Read(ctx, id, max(1, x.Seq-lastFew+1), 0)
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
