package graph

import (
	"context"

	"github.com/workflows-engine/workflows-engine/graph/internal/admit"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/graph/view"
)

// SubmitActivity submits the outcome of a pending activity or delegation of a host-mediated run, or of its subworkflow.
//
// Errors change nothing: ACTIVITY_SUBMIT_NOT_AWAITING, ACTIVITY_SUBMIT_NODE_MISMATCH, ACTIVITY_SUBMIT_PARALLEL_MISMATCH,
// SUBMIT_VALIDATION_ERROR (spec: execution, 8.6). A submit that repeats a recorded one, by its key or else by its content, returns the status
// (Run.Repeated). If it has another outcome, the error has the recorded one (Error.Hint, Error.Details). After a result that breaks
// output_schema, the attempt stays open.
func (r *Runner) SubmitActivity(ctx context.Context, req SubmitRequest) (*view.Run, error) {
	outcome, submitted, err := admit.Outcome(machine.Outcome{
		NodeID: req.NodeID, Span: req.Span, OK: req.OK, Error: req.Error, Code: req.Code,
		CorrelationID: req.CorrelationID, ExternalTaskID: req.ExternalTaskID, IdempotencyKey: req.IdempotencyKey,
	}, req.Result, r.opts.MaxDocumentBytes)
	if err != nil {
		return nil, err
	}
	return r.deliver(ctx, delivery{
		id: req.ExecutionID, caller: req.Caller, invalid: problem.SubmitValidationError, unknown: problem.SubmitNotAwaiting,
		input: func(string) machine.Input { return outcome },
		fit:   submitted.Fit,
		repeated: func(ctx context.Context, refusal error) error {
			search := admit.RepeatedSubmit{Submitted: submitted, Outcome: outcome}
			found, err := search.Search(ctx, r.p.Store, req.ExecutionID, r.opts.MaxDepth)
			if err != nil {
				return refusal
			}
			return found.Verdict(refusal, problem.SubmitNotAwaiting, problem.Place{ExecutionID: req.ExecutionID, NodeID: req.NodeID},
				problem.Format("idempotency key %q", req.IdempotencyKey))
		},
	})
}
