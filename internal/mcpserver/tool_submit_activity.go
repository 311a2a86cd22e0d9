package mcpserver

import (
	"context"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/graph/view"
	"github.com/workflows-engine/workflows-engine/history"
)

func submitActivityTool() *tool {
	return &tool{
		name:  "workflow_submit_activity",
		title: "Submit host-mediated activity outcome",
		description: "Reports what came of a pending activity or delegate: {ok:true, result} or {ok:false, error, code}. " +
			"A failure is tried again as the node's retry policy says. A submit that is sent again counts once.",
		annotations: mcp.ToolAnnotations{IdempotentHint: true, DestructiveHint: new(false), OpenWorldHint: new(true)},
		arguments: []property{
			executionIDArgument,
			required("node_id", aText("node_id of the pending activity.")),
			required("outcome", outcomeSchema),
			optional("parallel_span", obj("Copy it if pending has one; not needed with idempotency_key.")),
			optional("idempotency_key", aText("Copy it: the outcome then counts for that attempt only.")),
			definitionAgain, inputAgain, modeArgument, waitArgument, sinceArgument, answerBytesArgument,
		},
		answer:  runAnswer(repeatedProperty, warningsProperty),
		inner:   map[string]string{"ok": "outcome", "result": "outcome", "error": "outcome", "code": "outcome", "delegate_correlation_id": "outcome", "external_task_id": "outcome"},
		invalid: problem.SubmitValidationError,
		call: func(ctx context.Context, s *server, a *arguments) (*answer, error) {
			req := graph.SubmitRequest{
				ExecutionID:    a.Require("execution_id").NonEmpty(),
				NodeID:         a.Require("node_id").NonEmpty(),
				Span:           a.span("parallel_span"),
				IdempotencyKey: a.Get("idempotency_key").NonEmpty(),
				Caller:         s.caller(a, problem.SubmitValidationError),
			}
			a.outcome("outcome", &req)
			if err := a.problem(); err != nil {
				return nil, err
			}
			run, err := s.drive(ctx, a, func() (*view.Run, error) { return s.SubmitActivity(ctx, req) })
			if err != nil {
				return s.lateOutcome(ctx, a, req, err)
			}
			return s.ran(ctx, a, run, err, " after activity submit", nil)
		},
	}
}

var outcomeNames = []string{"ok", "result", "error", "code", "delegate_correlation_id", "external_task_id"}

// outcomeSchema is one object and not a choice of two, because models fill in the one more reliably.
var outcomeSchema = described("What came of it.", []property{
	required("ok", describe("boolean", "Whether it succeeded.")),
	optional("result", obj("ok:true: the output; it must fit output_schema. Default {}.")),
	optional("error", aText("ok:false, required: what went wrong.")),
	optional("code", str("ok:false: a code for retry policies.")),
	optional("delegate_correlation_id", str("Delegate, ok:true: copy it.")),
	optional("external_task_id", str("Delegate: its task id.")),
}, true)

// outcome reads an outcome. Members of the form that ok does not choose are ignored (spec: mcp-tools, 8).
func (a *arguments) outcome(name string, req *graph.SubmitRequest) {
	value := readObject(a.Require(name))
	if value == nil {
		return
	}
	o := a.within(name, value, outcomeNames, map[string]string{
		"delegateCorrelationId": "delegate_correlation_id", "externalTaskId": "external_task_id",
	})
	ok := o.Require("ok")
	if req.OK = ok.Bool(); req.OK {
		req.Result = readObject(o.Get("result"))
		req.CorrelationID = o.Get("delegate_correlation_id").Text()
		req.ExternalTaskID = o.Get("external_task_id").Text()
	} else if ok.Plain == false {
		req.Error = o.Require("error").NonEmpty()
		req.Code = o.Get("code").Text()
	}
}

var spanNames = []string{"parallel_node_id", "join_target_id", "branch_name", "branch_entry_node_id"}

func (a *arguments) span(name string) *history.ParallelSpan {
	value := readObject(a.Get(name))
	if value == nil {
		return nil
	}
	s := a.within(name, value, spanNames, map[string]string{
		"parallelNodeId": "parallel_node_id", "joinTargetId": "join_target_id",
		"branchName": "branch_name", "branchEntryNodeId": "branch_entry_node_id",
	})
	return &history.ParallelSpan{
		ParallelNodeID: s.Require("parallel_node_id").NonEmpty(), JoinTargetID: s.Require("join_target_id").NonEmpty(),
		BranchName: s.Require("branch_name").NonEmpty(), BranchEntryNodeID: s.Require("branch_entry_node_id").NonEmpty(),
	}
}
