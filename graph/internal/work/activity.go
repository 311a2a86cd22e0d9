package work

import (
	"context"
	"fmt"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/view"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// activity performs an attempt of a step, llm_call or tool_call.
func (p *Performer) activity(ctx context.Context, executionID string, a *Attempt, e *machine.ActivityEffect) (in machine.Input) {
	if p.Activities == nil {
		return keyed(e, failedOutcome(ctx, activities.NotConfigured(e.NodeType, e.NodeID, settingActivities)))
	}
	defer p.recoverExecutor(executionID, e, &in)
	req := p.activityRequest(executionID, e)
	if x, ok := p.Activities.(activities.Journaled); ok && x.Journals(req) {
		return p.journaled(ctx, executionID, a, e.Journal, func(ctx context.Context, j activities.Journal) (activities.End, error) { return x.Work(ctx, req, j) })
	}
	res, err := p.Activities.Execute(ctx, req)
	if err != nil {
		out := failedOutcome(ctx, err)
		out.Repair = p.plainRepair(executionID, e, out.Repair)
		return keyed(e, out)
	}
	return keyed(e, p.outcome(res.Output, usageOf(&res)))
}

func (p *Performer) activityRequest(executionID string, e *machine.ActivityEffect) activities.Request {
	req := activities.Request{
		ExecutionID: executionID, NodeID: e.NodeID, NodeType: e.NodeType, Config: copyOf(e.Config), Metadata: jsonvalue.CloneMap(e.Metadata),
		Visit: e.Visit, Attempt: e.Attempt, RequestedAt: e.Requested, Deadline: e.Deadline, IdempotencyKey: view.Key(executionID, e.EffectKey),
		State: func() map[string]any { return copyOf(e.State) }, Heartbeat: p.heartbeat(executionID, &e.EffectBase),
	}
	if e.Repair != nil {
		req.Repair = jsonvalue.CloneMap(e.Repair)
	}
	if s := e.Span; s != nil {
		req.Branch = &activities.Branch{
			ParallelNodeID: s.ParallelNodeID, JoinTargetID: s.JoinTargetID, Name: s.BranchName, EntryNodeID: s.BranchEntryNodeID,
		}
	}
	return req
}

// plainRepair returns what an executor gave for a repair, nil if that cannot be recorded: then there is none.
func (p *Performer) plainRepair(executionID string, e *machine.ActivityEffect, repair map[string]any) map[string]any {
	if repair == nil {
		return nil
	}
	plain, err := jsonvalue.Normalize(repair)
	if err == nil && jsonvalue.Size(plain, p.MaxBytes) > p.MaxBytes {
		err = fmt.Errorf("it exceeds the limit of %d bytes", p.MaxBytes)
	}
	if err != nil {
		p.Log.Warn("no repair: what the executor gave for it cannot be recorded", logRun, executionID, logKey, e.EffectKey, logError, err)
		return nil
	}
	object, _ := plain.(map[string]any)
	return object
}

// copyOf is a deep copy of a state or input; nil counts as empty.
func copyOf(m map[string]any) map[string]any {
	if m == nil {
		return map[string]any{}
	}
	return jsonvalue.CloneMap(m)
}
