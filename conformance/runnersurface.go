package conformance

import (
	"context"
	"fmt"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/graph/view"
	"github.com/workflows-engine/workflows-engine/history"
)

// runnerSurfaceName is the runner's name among the surfaces of a report.
const runnerSurfaceName = "runner"

// runnerSurface is the engine itself. Its answers have the fields of the protocol's tools (spec: execution, 1.2 and 11.2).
type runnerSurface struct{ runner graph.Engine }

func (s runnerSurface) Close() error { return nil }

func (s runnerSurface) Call(ctx context.Context, c Call) (Answer, error) {
	if c.Op == OpList {
		return s.list(ctx, c)
	}
	run, err := s.drive(ctx, c)
	switch {
	case err != nil:
		return Answer{IsError: true, Code: codeOf(err)}, nil
	case c.Op == OpStatus:
		return Answer{Fields: statusFields(run)}, nil
	case run.Status == machine.Failed:
		return Answer{IsError: true, Code: string(problem.EngineFailure)}, nil
	}
	return Answer{Fields: runFields(run)}, nil
}

func (s runnerSurface) drive(ctx context.Context, c Call) (*view.Run, error) {
	caller := graph.Caller{Definition: c.Definition, Mode: c.Mode}
	switch c.Op {
	case OpStart:
		return s.runner.Start(ctx, graph.StartRequest{
			ExecutionID: c.ExecutionID, Definition: c.Definition, Input: c.Input, Mode: c.Mode,
		})
	case OpStatus:
		return s.runner.Status(ctx, graph.StatusRequest{ExecutionID: c.ExecutionID})
	case OpResume:
		return s.runner.Resume(ctx, graph.ResumeRequest{
			ExecutionID: c.ExecutionID, InterruptID: c.InterruptID, Payload: orEmpty(c.Payload), Caller: caller,
		})
	case OpSubmit:
		caller.Input, caller.InputSet = orEmpty(c.Input), true
		request := c.Outcome.request()
		request.ExecutionID, request.NodeID, request.Span, request.Caller = c.ExecutionID, c.NodeID, c.Span, caller
		request.IdempotencyKey = c.IdempotencyKey
		return s.runner.SubmitActivity(ctx, request)
	case OpSignal:
		caller.Input, caller.InputSet = orEmpty(c.Input), true
		return s.runner.Signal(ctx, graph.SignalRequest{
			ExecutionID: c.ExecutionID, Name: c.SignalName, Payload: c.Payload, IdempotencyKey: c.IdempotencyKey, Caller: caller,
		})
	case OpCancel:
		return s.runner.Cancel(ctx, graph.CancelRequest{ExecutionID: c.ExecutionID, Reason: c.Reason})
	}
	return nil, fmt.Errorf("unknown operation %q", c.Op)
}

func (s runnerSurface) list(ctx context.Context, c Call) (Answer, error) {
	page, err := s.runner.List(ctx, history.ListQuery{Phase: history.Phase(c.Phase), Limit: c.Limit, Cursor: c.Cursor})
	if err != nil {
		return Answer{IsError: true, Code: codeOf(err)}, nil
	}
	items := make([]any, len(page.Executions))
	for i, e := range page.Executions {
		items[i] = map[string]any{"execution_id": e.ID, "phase": string(e.Phase)}
	}
	fields := map[string]any{"executions": items}
	if page.NextCursor != "" {
		fields["next_cursor"] = page.NextCursor
	}
	return Answer{Fields: fields}, nil
}

// codeOf returns the code that the protocol's tools report for an error: the protocol's own codes unchanged, and ENGINE_FAILURE for
// any other error that stops a run (spec: execution, 13.4).
func codeOf(err error) string {
	e, ok := problem.As(err)
	if !ok {
		return string(problem.Internal)
	}
	switch e.Code {
	case problem.ValidationError, problem.DuplicateExecutionID, problem.ExecutionNotFound, problem.InvalidResumePayload,
		problem.SubmitNotAwaiting, problem.SubmitNodeMismatch, problem.SubmitParallelMismatch, problem.SubmitValidationError,
		problem.SignalNotAwaiting, problem.SignalNameMismatch, problem.SignalValidationError, problem.CancelNotAllowed,
		problem.CancelValidationError, problem.Internal:
		return string(e.Code)
	case problem.InvalidListCursor, problem.InterruptInParallelBranch, problem.InputInvalid:
		return string(problem.ValidationError)
	case problem.HistoryNewer, problem.HistoryConflict, problem.HistoryCorrupt, problem.RunnerClosed,
		problem.StoreLocked, problem.StoreFull, problem.StoreReadOnly, problem.StoreUnavailable, problem.StoreOutcomeUnknown, problem.StoreReplaced:
		return string(problem.Internal)
	}
	return string(problem.EngineFailure)
}

// fields collects the fields of an object.
type fields map[string]any

// text sets a field unless the text is empty.
func (f fields) text(name, value string) {
	if value != "" {
		f[name] = value
	}
}

// runFields returns the answer fields of an operation that drives a run.
func runFields(run *view.Run) map[string]any {
	f := fields{"execution_id": run.ExecutionID, "status": string(run.Status)}
	switch run.Status {
	case machine.Completed:
		f["final_state"], f["result"] = run.FinalState, run.Result
	case machine.Cancelled:
		if run.FinalState != nil {
			f["final_state"] = run.FinalState
		}
		f.text("reason", run.Reason)
	case machine.Interrupted, machine.AwaitingActivity, machine.AwaitingSignal:
		f["state"] = orEmpty(run.State)
		p := firstPending(run)
		f.text("node_id", p.NodeID)
		f.text("signal_name", p.SignalName)
		if p.Span != nil {
			f["parallel_span"] = spanFields(p.Span)
		}
		f.delegate(p)
		f.text("delegate_correlation_id", p.CorrelationID)
	}
	return f
}

// firstPending returns the wait described by the scalar fields: the first, in branch order, of the kind named by the status.
func firstPending(run *view.Run) view.Pending {
	for _, p := range run.Pending {
		switch p.Kind {
		case machine.WaitActivity, machine.WaitDelegate:
			if run.Status == machine.AwaitingActivity {
				return p
			}
		case machine.WaitInterrupt:
			if run.Status == machine.Interrupted {
				return p
			}
		case machine.WaitSignal:
			if run.Status == machine.AwaitingSignal {
				return p
			}
		}
	}
	return view.Pending{WaitInfo: machine.WaitInfo{NodeID: run.CurrentNodeID}}
}

func (f fields) delegate(p view.Pending) {
	if p.Kind == machine.WaitDelegate {
		f.text("agent_id", p.AgentID)
		f.text("protocol", p.Protocol)
		f["delegate_input"] = orEmpty(p.DelegateInput)
	}
}

// statusFields returns the answer fields of status.
func statusFields(run *view.Run) map[string]any {
	f := fields{"execution_id": run.ExecutionID, "phase": string(phaseOf(run.Status))}
	p := firstPending(run)
	if run.Status != machine.Completed {
		f.text("current_node_id", p.NodeID)
	}
	switch run.Status {
	case machine.Failed:
		f.text("last_error", run.Error)
	case machine.Cancelled:
		f.text("last_error", run.Reason)
	}
	f.text("delegate_correlation_id", run.DelegateCorrelationID)
	f.text("child_execution_id", run.ChildExecutionID)
	f.text("parent_execution_id", run.ChildParentID())
	f.delegate(p)
	f.text("signal_name", p.SignalName)
	return f
}

// phaseOf returns the protocol's phase: a run that waits for a timer or a subworkflow is running.
func phaseOf(s machine.Status) history.Phase {
	if s == machine.AwaitingTimer || s == machine.AwaitingChild {
		return history.PhaseRunning
	}
	return history.Phase(s)
}
