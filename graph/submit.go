package graph

import (
	"context"
	"strings"

	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// SubmitActivity reports the outcome of a pending activity or delegate of a host-mediated run. For a run that waits for
// a subworkflow the outcome goes to the subworkflow that waits for it.
//
// Errors, none of which changes anything: ACTIVITY_SUBMIT_NOT_AWAITING, ACTIVITY_SUBMIT_NODE_MISMATCH,
// ACTIVITY_SUBMIT_PARALLEL_MISMATCH and SUBMIT_VALIDATION_ERROR (spec: execution, 8.6).
func (r *Runner) SubmitActivity(ctx context.Context, req SubmitRequest) (*Run, error) {
	const code = problem.SubmitValidationError
	if strings.TrimSpace(req.NodeID) == "" {
		return nil, problem.New(code, "node_id is missing").WithHint("Give the node_id of the pending activity.")
	}
	result, err := r.object("result", req.Result, code)
	if err != nil {
		return nil, err
	}
	outcome := machine.Outcome{
		NodeID: req.NodeID, Span: req.Span, Host: true, OK: req.OK, Error: req.Error, Code: req.Code,
		CorrelationID: req.CorrelationID, ExternalTaskID: req.ExternalTaskID, IdempotencyKey: req.IdempotencyKey,
	}
	switch {
	case req.OK:
		outcome.Output, outcome.Error, outcome.Code = result, "", ""
	case strings.TrimSpace(req.Error) == "":
		return nil, problem.New(code, "a failed outcome needs an error text").WithHint("Say what went wrong in error.")
	}
	return r.deliver(ctx, delivery{
		id: req.ExecutionID, caller: req.Caller, invalid: code, unknown: problem.SubmitNotAwaiting,
		input: func(string) machine.Input { return outcome },
		wanted: func(id string, w machine.Wait) fit {
			switch {
			case w.Kind != machine.WaitActivity && w.Kind != machine.WaitDelegate || !w.Host:
				return fitNot
			case w.NodeID != req.NodeID:
				return fitKind
			case !sameSpan(w.Span, req.Span), req.IdempotencyKey != "" && req.IdempotencyKey != idempotencyKey(id, w.Key):
				return fitName
			default:
				return fitWell
			}
		},
		repeated: func(ctx context.Context) bool { return r.submittedBefore(ctx, req, outcome) },
	})
}

func sameSpan(a, b *history.ParallelSpan) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}

// submittedBefore reports whether a refused submit repeats one that was recorded: the same attempt with the same
// outcome. Its caller did not get the answer the first time.
func (r *Runner) submittedBefore(ctx context.Context, req SubmitRequest, o machine.Outcome) bool {
	if req.IdempotencyKey == "" {
		return false
	}
	at := strings.LastIndex(req.IdempotencyKey, ":"+req.NodeID+"#")
	if at < 0 {
		return false
	}
	id := req.IdempotencyKey[:at]
	if id != req.ExecutionID && !strings.HasPrefix(id, req.ExecutionID+childMark) {
		return false
	}
	const page = 1000
	for from := int64(1); ; from += page {
		records, err := r.store.Read(ctx, id, from, page)
		if err != nil {
			return false
		}
		for i := range records {
			if records[i].Payload.IdempotencyKey == req.IdempotencyKey {
				return sameOutcome(&records[i], o)
			}
		}
		if len(records) < page {
			return false
		}
	}
}

// sameOutcome compares a submitted outcome with a recorded one.
func sameOutcome(rec *history.Record, o machine.Outcome) bool {
	p := &rec.Payload
	if rec.Name == history.ActivityFailed {
		// A result that broke output_schema was recorded as a failure, without the result.
		return !o.OK && p.Error == o.Error && p.Code == o.Code || o.OK && p.Code == string(problem.OutputSchemaViolation)
	}
	out, ok := o.Output.(map[string]any)
	if !o.OK || !ok {
		return false
	}
	recorded, _ := p.Result.Value.(map[string]any)
	if p.Correlation == "" {
		return jsonvalue.Equal(recorded, out)
	}
	plain := jsonvalue.CloneMap(out)
	delete(plain, "delegateCorrelationId")
	delete(plain, "externalTaskId")
	return jsonvalue.Equal(recorded, plain)
}
