package graph

import (
	"context"
	"errors"
	"reflect"

	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// answer waits until the run rests, ends or the wait limit passes, and tells where it stands.
func (r *Runner) answer(ctx context.Context, x *run, w Wait) (*Run, error) {
	if !w.Set {
		w.Limit = r.opts.WaitLimit
	}
	if err := r.await(ctx, x, w, nil, false); err != nil {
		return nil, err
	}
	return r.view(lasting(ctx), x)
}

// view tells where a run stands. What a subworkflow waits for, the run waits for.
func (r *Runner) view(ctx context.Context, x *run) (*Run, error) {
	x.mu.Lock()
	v, waits, err := x.view(ctx)
	x.mu.Unlock()
	if err != nil {
		return nil, err
	}
	status, first := v.Status, true
	for _, w := range waits {
		if w.Kind != machine.WaitChild {
			v.Pending = append(v.Pending, w)
			continue
		}
		child, err := r.viewChild(ctx, w.ChildExecutionID)
		if err != nil {
			return nil, err
		}
		if child.Seq == 0 {
			if child.Lacks, err = x.unlessDriven(ctx, x.lackOfWorkflow(&w)); err != nil {
				return nil, err
			}
		}
		if l := child.Lacks; l != nil && (v.Lacks == nil || v.Lacks.Host || !l.Host) {
			v.Lacks = l // it is needed first
		}
		if len(child.Pending) == 0 {
			v.Pending = append(v.Pending, w)
		} else {
			v.Pending = append(v.Pending, child.Pending...)
		}
		if v.Status == machine.AwaitingChild && (first || rank(child.Status) < rank(status)) {
			status, first = child.Status, false
		}
	}
	v.Status = status
	if len(v.Pending) > 0 {
		v.CurrentNodeID = v.Pending[0].NodeID
	}
	return v, nil
}

// viewChild is view for a subworkflow that is waited for. One that does not exist yet, or whose parent is about to be
// told of its end, counts as running.
func (r *Runner) viewChild(ctx context.Context, id string) (*Run, error) {
	c := r.runs.hold(id)
	defer r.runs.drop(c)
	v, err := r.view(ctx, c)
	if errors.Is(err, problem.ExecutionNotFound) {
		return &Run{Status: machine.Running}, nil
	}
	if err == nil && v.Status.Terminal() {
		v.Status = machine.Running
	}
	return v, err
}

// view tells where the run itself stands, and what it waits for.
func (x *run) view(ctx context.Context) (*Run, []Pending, error) {
	err := x.open(ctx, nil)
	if errors.Is(err, problem.DefinitionNotFound) {
		return x.outline(ctx)
	}
	if err != nil {
		return nil, nil, err
	}
	v := x.summary()
	if x.ended() {
		return v, nil, x.describeEnd(ctx, v)
	}
	c := copier{}
	v.Status, v.Mode = x.m.Status(), x.m.Config().Mode
	v.State = c.state(x.m.State())
	v.NodeVisits, v.MaxVisits = x.m.Visits(), x.m.Config().MaxVisits
	v.Warnings = x.warnings()
	if !x.held {
		if v.Lacks, err = x.unlessDriven(ctx, x.lacks()); err != nil {
			return nil, nil, err
		}
	}
	var waits []Pending
	for _, w := range x.m.Pending() {
		waits = append(waits, x.pending(w, c))
	}
	return v, waits, nil
}

// summary is what the projection says.
func (x *run) summary() *Run {
	e := &x.exec
	v := &Run{
		ExecutionID: x.id, Status: phaseStatus(e.Phase), DefinitionName: e.DefinitionName,
		DefinitionVersion: e.DefinitionVersion, DefinitionHash: e.DefinitionHash, Mode: machine.Mode(e.Mode),
		CurrentNodeID: e.CurrentNodeID, DelegateCorrelationID: e.DelegateCorrelationID,
		ChildExecutionID: e.ChildExecutionID, ParentExecutionID: e.ParentExecutionID, Parent: e.Parent, ForkedFrom: e.ForkedFrom,
		Seq: e.Seq, Bytes: e.Bytes, CreatedAt: e.CreatedAt, UpdatedAt: e.UpdatedAt, NodeVisits: int(e.NodeVisits),
		MaxVisits: x.r.opts.MaxVisits,
	}
	fallback(&v.Mode, x.r.opts.DefaultMode)
	return v
}

func (x *run) describeEnd(ctx context.Context, v *Run) error {
	end, err := x.ending(ctx)
	if err != nil {
		return err
	}
	c := copier{}
	v.Status, v.FinalState = end.status, c.state(end.state)
	v.Result = jsonvalue.Clone(end.result)
	v.Reason = end.reason
	if end.status == machine.Failed {
		v.Error, v.ErrorCode, v.ErrorNodeID = end.message, end.code, end.nodeID
	}
	if x.m != nil {
		v.Mode, v.MaxVisits = x.m.Config().Mode, x.m.Config().MaxVisits
	}
	return nil
}

// outline tells what can be told of a run whose definition is not known.
func (x *run) outline(ctx context.Context) (*Run, []Pending, error) {
	v := x.summary()
	state, err := x.r.storedState(ctx, x.exec)
	if err != nil {
		return nil, nil, err
	}
	v.State = jsonvalue.CloneMap(state)
	var waits []Pending
	for i := range x.exec.Waits {
		waits = append(waits, x.outlineWait(&x.exec.Waits[i], v.State))
	}
	return v, waits, nil
}

func (x *run) outlineWait(w *history.Wait, state map[string]any) Pending {
	p := Pending{
		ExecutionID: x.id, NodeID: w.NodeID, NodeType: w.NodeType, Visit: max(w.Visit, 1), Attempt: w.Attempt, Span: w.Span,
		State: state, SignalName: w.SignalName, Due: w.Due, ChildExecutionID: w.ChildExecutionID,
	}
	switch w.Kind {
	case history.WaitActivity:
		p.Kind, p.Host = machine.WaitActivity, !w.InProcess() && !w.AtAgent()
		p.ExternalTaskID = w.ExternalTask
		if w.Delegate() {
			p.Kind, p.AgentID, p.Protocol = machine.WaitDelegate, w.AgentID, w.Protocol
			p.CorrelationID, p.DelegateInput = w.Correlation, jsonvalue.CloneMap(w.Input)
		}
	case history.WaitSubworkflow:
		p.Kind = machine.WaitChild
	default:
		p.Kind = machine.WaitKind(w.Kind)
	}
	return p
}

// phaseStatus is the status that a phase stands for.
func phaseStatus(p history.Phase) machine.Status {
	switch p {
	case history.PhaseCompleted:
		return machine.Completed
	case history.PhaseFailed:
		return machine.Failed
	case history.PhaseCancelled:
		return machine.Cancelled
	case history.PhaseInterrupted:
		return machine.Interrupted
	case history.PhaseAwaitingActivity:
		return machine.AwaitingActivity
	case history.PhaseAwaitingSignal:
		return machine.AwaitingSignal
	default:
		return machine.Running
	}
}

// pending describes one wait with all that whoever ends it needs.
func (x *run) pending(w machine.Wait, c copier) Pending {
	p := Pending{
		Kind: w.Kind, ExecutionID: x.id, ID: idempotencyKey(x.id, w.Key), NodeID: w.NodeID, Visit: w.Visit,
		Attempt: w.Attempt, Span: w.Span, Host: w.Host, State: c.state(w.State), RequestedAt: w.RequestedAt,
		Deadline: w.Deadline, BlockDeadline: w.BlockDeadline, Timeout: w.Timeout, LastError: w.LastError, LastCode: w.LastCode, SignalName: w.SignalName,
		Prompt: w.Prompt, Due: w.Due, AgentID: w.AgentID, Protocol: w.Protocol, CorrelationID: w.CorrelationID,
		ChildExecutionID: w.ChildExecutionID, WorkflowRef: w.WorkflowRef,
	}
	if w.Task != nil {
		p.ExternalTaskID = w.Task.ID
	}
	if w.DelegateInput != nil {
		p.DelegateInput = jsonvalue.CloneMap(w.DelegateInput)
	}
	n := x.prog.Node(w.NodeID)
	if n == nil {
		return p
	}
	p.NodeType = string(n.Type)
	switch w.Kind {
	case machine.WaitActivity, machine.WaitDelegate:
		p.IdempotencyKey = p.ID
		p.Config = jsonvalue.CloneMap(n.Config)
		if n.Activity != nil && n.Activity.OutputSchema != nil {
			p.OutputSchema = p.Config["output_schema"]
		}
	case machine.WaitInterrupt:
		if n.Interrupt == nil {
			p.ResumeSchema = answerSchema()
			break
		}
		p.Config = jsonvalue.CloneMap(n.Config)
		p.Prompt, p.PromptRef = n.Interrupt.Prompt, n.Interrupt.PromptRef
		p.ResumeSchema = jsonvalue.CloneMap(n.Interrupt.ResumeSchemaRaw)
	}
	switch w.Kind {
	case machine.WaitActivity, machine.WaitDelegate, machine.WaitBackoff:
		p.MaxAttempts = 1
		if n.Retry != nil {
			p.MaxAttempts = n.Retry.MaxAttempts
		}
	}
	return p
}

// copier copies states that go out to callers, each map once: what a caller does to its copy stays with the caller. It holds
// what it has copied, so that nothing else can come to stand in its place in memory.
type copier map[uintptr]struct{ of, copied map[string]any }

func (c copier) state(m map[string]any) map[string]any {
	if m == nil {
		return map[string]any{}
	}
	at := reflect.ValueOf(m).Pointer()
	entry, ok := c[at]
	if !ok {
		entry.of, entry.copied = m, jsonvalue.CloneMap(m)
		c[at] = entry
	}
	return entry.copied
}
