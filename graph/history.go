package graph

import (
	"context"

	"github.com/workflows-engine/workflows-engine/graph/internal/run"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
)

// History returns records of a run, redacted unless req.Reveal. The error is EXECUTION_NOT_FOUND for an unknown run.
func (r *Runner) History(ctx context.Context, req HistoryRequest) ([]history.Record, error) {
	if err := r.enter(ctx); err != nil {
		return nil, err
	}
	defer r.p.Leave()
	if req.Limit < 0 {
		return nil, problem.New(problem.ValidationError, "limit must not be negative, found %d", req.Limit)
	}
	records, err := run.RecordPage(ctx, r.p.Store, req.ExecutionID, max(req.FromSeq, 1), req.Limit)
	for i := range records {
		if !req.Reveal && err == nil {
			err = records[i].Redact(r.opts.Redaction)
		}
	}
	return records, err
}
