package run

import (
	"context"
	"errors"

	"github.com/workflows-engine/workflows-engine/graph/internal/admit"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
)

// RecordPage reads records of a run, with their texts. The error is EXECUTION_NOT_FOUND for an unknown run.
func RecordPage(ctx context.Context, store history.Store, executionID string, from int64, limit int) ([]history.Record, error) {
	records, err := store.Read(ctx, executionID, from, limit)
	if err != nil {
		return nil, err
	}
	// Of a run that is being deleted, some records may be there still.
	switch _, err := store.Execution(ctx, executionID); {
	case errors.Is(err, problem.ExecutionNotFound), err != nil && len(records) == 0:
		return nil, admit.NotFoundAs(err, problem.ExecutionNotFound, executionID)
	}
	for i := range records {
		records[i].Raw = records[i].Text(executionID)
	}
	return records, nil
}
