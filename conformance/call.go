package conformance

import (
	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/jsonobject"
)

// The operations of parity vectors.
const (
	OpStart  = "start"
	OpStatus = "status"
	OpResume = "resume"
	OpSubmit = "submit_activity"
	OpSignal = "signal"
	OpCancel = "cancel"
	OpList   = "list"
)

// Call is one step of a parity vector, as a surface receives it. Fields that the operation does not have are zero.
type Call struct {
	Op          string
	ExecutionID string
	// Definition and Input are set for start, resume (definition only), submit_activity and signal.
	Definition *definition.Document
	Input      map[string]any
	// Mode is "" if the step has no mode.
	Mode machine.Mode
	// Payload is the payload of a resume or a signal; nil if absent.
	Payload map[string]any
	NodeID  string
	Outcome Outcome
	// Span is nil outside of parallel branches.
	Span       *history.ParallelSpan
	SignalName string
	// IdempotencyKey (submit, signal) and InterruptID (resume) extend the protocol's format; "" if absent.
	IdempotencyKey, InterruptID string
	Reason                      string
	// Phase, Limit and Cursor belong to list; zero values do not filter.
	Phase  string
	Limit  int
	Cursor string
}

// Outcome is the submitted outcome of an activity or delegate.
type Outcome struct {
	OK bool
	// Result, CorrelationID and ExternalTaskID belong to a success, Error and Code to a failure.
	Result                        map[string]any
	Error, Code                   string
	CorrelationID, ExternalTaskID string
}

func (o Outcome) request() graph.SubmitRequest {
	return graph.SubmitRequest{
		OK: o.OK, Result: o.Result, Error: o.Error, Code: o.Code,
		CorrelationID: o.CorrelationID, ExternalTaskID: o.ExternalTaskID,
	}
}

// readOutcome reads an outcome; the fields of delegates may have either spelling.
func readOutcome(o *jsonobject.Object) Outcome {
	ok := o.Require("ok")
	out := Outcome{OK: ok.Bool(), Result: o.Get("result").Map()}
	out.CorrelationID = either(o, "delegateCorrelationId", "delegate_correlation_id")
	out.ExternalTaskID = either(o, "externalTaskId", "external_task_id")
	out.Error, out.Code = o.Get("error").Text(), o.Get("code").Text()
	if ok.Plain == false {
		o.Require("error").NonBlank()
	}
	o.Close()
	return out
}

func either(o *jsonobject.Object, a, b string) string {
	if text := o.Get(a).Text(); text != "" {
		return text
	}
	return o.Get(b).Text()
}

func readSpan(o *jsonobject.Object) *history.ParallelSpan {
	defer o.Close()
	if o == nil {
		return nil
	}
	return &history.ParallelSpan{
		ParallelNodeID:    o.Require("parallelNodeId").NonBlank(),
		JoinTargetID:      o.Require("joinTargetId").NonBlank(),
		BranchName:        o.Require("branchName").NonBlank(),
		BranchEntryNodeID: o.Require("branchEntryNodeId").NonBlank(),
	}
}

// Tool returns the name of the protocol's tool for the call.
func (c Call) Tool() string { return "workflow_" + c.Op }

// Arguments returns the call's arguments for the protocol's tools.
func (c Call) Arguments() map[string]any {
	args := fields{}
	if c.Op != OpList {
		args.text("execution_id", c.ExecutionID)
	}
	if c.Definition != nil {
		args["definition"] = c.Definition.Value()
	}
	switch c.Op {
	case OpStart, OpSubmit, OpSignal:
		args["input"] = orEmpty(c.Input)
	case OpResume:
		args["resume_payload"] = orEmpty(c.Payload)
		args.text("interrupt_id", c.InterruptID)
	}
	args.text("activity_execution_mode", string(c.Mode))
	args.text("idempotency_key", c.IdempotencyKey)
	switch c.Op {
	case OpSubmit:
		args.text("node_id", c.NodeID)
		args["outcome"] = c.Outcome.arguments()
		if c.Span != nil {
			args["parallel_span"] = spanFields(c.Span)
		}
	case OpSignal:
		args.text("signal_name", c.SignalName)
		if c.Payload != nil {
			args["payload"] = c.Payload
		}
	case OpCancel:
		args.text("reason", c.Reason)
	case OpList:
		args.text("phase", c.Phase)
		args.text("cursor", c.Cursor)
		if c.Limit > 0 {
			args["limit"] = float64(c.Limit)
		}
	}
	return args
}

func (o Outcome) arguments() map[string]any {
	args := fields{"ok": o.OK}
	if o.OK && o.Result != nil {
		args["result"] = o.Result
	}
	args.text("delegate_correlation_id", o.CorrelationID)
	args.text("external_task_id", o.ExternalTaskID)
	args.text("error", o.Error)
	args.text("code", o.Code)
	return args
}

// spanFields returns a span as the protocol's tools write it.
func spanFields(s *history.ParallelSpan) map[string]any {
	return map[string]any{
		"parallel_node_id": s.ParallelNodeID, "join_target_id": s.JoinTargetID,
		"branch_name": s.BranchName, "branch_entry_node_id": s.BranchEntryNodeID,
	}
}
