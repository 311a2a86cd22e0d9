package graph

import (
	"context"
	"errors"

	"github.com/workflows-engine/workflows-engine/graph/admit"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
)

// History reads a run's records, redacted unless req.Reveal. The error is EXECUTION_NOT_FOUND for an unknown run.
func (r *Runner) History(ctx context.Context, req HistoryRequest) ([]history.Record, error) {
	if err := r.enter(ctx); err != nil {
		return nil, err
	}
	defer r.tasks.Done()
	if req.Limit < 0 {
		return nil, problem.New(problem.ValidationError, "limit %d is negative", req.Limit)
	}
	records, err := r.store.Read(ctx, req.ExecutionID, max(req.FromSeq, 1), req.Limit)
	if err != nil {
		return nil, err
	}
	// Of a run that is being deleted, some records may be there still.
	switch _, err := r.store.Execution(ctx, req.ExecutionID); {
	case errors.Is(err, problem.ExecutionNotFound), err != nil && len(records) == 0:
		return nil, admit.NotFoundAs(err, problem.ExecutionNotFound, req.ExecutionID)
	}
	for i := range records {
		records[i].Raw = records[i].Text(req.ExecutionID)
		if req.Reveal {
			continue
		}
		if err := records[i].Redact(r.opts.Redaction); err != nil {
			return nil, err
		}
	}
	return records, nil
}
