package work

import (
	"cmp"
	"context"
	"fmt"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/view"
	"github.com/workflows-engine/workflows-engine/internal/guard"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// delegateType is the type of nodes that Performer.Delegates performs.
const delegateType = string(definition.AgentDelegate)

// executor returns the executor of a node type, nil if it is not configured, and the option that configures it.
func (p *Performer) executor(nodeType string) (x activities.Executor, setting string) {
	if nodeType == delegateType {
		return p.Delegates, "Options.Delegates"
	}
	return p.Activities, "Options.Activities"
}

// capabilities returns the capabilities of the executor for a node. The error reports that the executor panicked, or ended its
// goroutine, when it was asked: it is then called as one that has no capabilities.
func (p *Performer) capabilities(n activities.Node) (can activities.Capabilities, err error) {
	x, setting := p.executor(n.Type)
	if _, capable := x.(activities.Capable); capable {
		err = guard.Call(p.Log, "the capabilities of an executor", func() { can = activities.CapabilitiesOf(x, n) })
	} else {
		can = activities.CapabilitiesOf(x, n)
	}
	can.Setting = cmp.Or(can.Setting, setting)
	return can, err
}

// call has the executor of a node perform an attempt, in recorded steps if it can.
func (p *Performer) call(ctx context.Context, executionID string, a *Attempt, recorded *machine.Journal, req activities.Request, can activities.Capabilities) machine.Input {
	x, _ := p.executor(req.NodeType)
	switch {
	case x == nil:
		return keyed(a.Effect, failedOutcome(ctx, activities.NotConfigured(req.Node(), can.Setting)))
	case can.Work != nil:
		return p.journaled(ctx, executionID, a, recorded, func(ctx context.Context, j activities.Journal) (activities.End, error) { return can.Work(ctx, req, j) })
	}
	res, err := x.Execute(ctx, req)
	if err != nil {
		out := failedOutcome(ctx, err)
		out.Repair = p.plainRepair(executionID, a.Key, out.Repair)
		return keyed(a.Effect, out)
	}
	out := p.outcome(res.Output, usageOf(&res))
	out.ExternalTaskID = res.ExternalTaskID
	return keyed(a.Effect, out)
}

// activity performs an attempt of a step, llm_call or tool_call.
func (p *Performer) activity(ctx context.Context, executionID string, a *Attempt, e *machine.ActivityEffect) (in machine.Input) {
	defer p.recoverExecutor(executionID, e, &in)
	return p.call(ctx, executionID, a, e.Journal, a.watched(p.activityRequest(executionID, e)), p.capabilitiesFor(a))
}

func (p *Performer) activityRequest(executionID string, e *machine.ActivityEffect) activities.Request {
	req := activities.Request{
		ExecutionID: executionID, NodeID: e.NodeID, NodeType: e.NodeType, Config: copyOf(e.Config), Metadata: jsonvalue.CloneMap(e.Metadata),
		Visit: e.Visit, Attempt: e.Attempt, RequestedAt: e.Requested, Deadline: e.Deadline, Silence: e.Heartbeat, IdempotencyKey: view.Key(executionID, e.EffectKey),
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

// plainRepair returns an executor's repair in the form that is recorded, nil if it cannot be recorded.
func (p *Performer) plainRepair(executionID, key string, repair map[string]any) map[string]any {
	if repair == nil {
		return nil
	}
	plain, err := jsonvalue.Normalize(repair)
	if err == nil && jsonvalue.Size(plain, p.MaxBytes) > p.MaxBytes {
		err = fmt.Errorf("it exceeds the limit of %d bytes", p.MaxBytes)
	}
	if err != nil {
		p.Log.Warn("repair dropped: it cannot be recorded", logRun, executionID, logKey, key, logError, err)
		return nil
	}
	object, _ := plain.(map[string]any)
	return object
}

// copyOf returns a deep copy of a state or input; nil counts as empty.
func copyOf(m map[string]any) map[string]any {
	if m == nil {
		return map[string]any{}
	}
	return jsonvalue.CloneMap(m)
}
