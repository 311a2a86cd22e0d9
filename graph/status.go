package graph

import (
	"context"
	"errors"
	"slices"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
)

// Status says where a run stands; it changes nothing but fires timers that are due. The error is EXECUTION_NOT_FOUND
// or the store's.
func (r *Runner) Status(ctx context.Context, req StatusRequest) (*Run, error) {
	if err := r.enter(); err != nil {
		return nil, err
	}
	defer r.tasks.Done()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	x := r.runs.hold(req.ExecutionID)
	defer r.runs.drop(x)
	var s standing
	err := r.stand(ctx, x, false, &s)
	if err == nil && req.Wait.Set && req.Wait.Limit > 0 && (req.Since == 0 || s.seq <= req.Since) {
		was := s
		err = r.await(ctx, x, req.Wait, func(now *standing) bool {
			return now.status != was.status || req.Since > 0 && now.family != was.family
		}, req.Since > 0)
	}
	if err != nil {
		return nil, notFoundAs(err, problem.ExecutionNotFound, req.ExecutionID)
	}
	return r.view(lasting(ctx), x)
}

// List gives a page of runs, newest first. A limit beyond 100 and an unknown phase are VALIDATION_ERROR, a cursor that
// no list call made INVALID_LIST_CURSOR.
func (r *Runner) List(ctx context.Context, q history.ListQuery) (history.ListPage, error) {
	if err := r.enter(); err != nil {
		return history.ListPage{}, err
	}
	defer r.tasks.Done()
	if _, err := q.PageSize(); err != nil {
		return history.ListPage{}, err
	}
	if q.Phase != "" && !slices.Contains(history.Phases(), q.Phase) {
		return history.ListPage{}, problem.New(problem.ValidationError, "phase %q is unknown", string(q.Phase))
	}
	return r.store.List(ctx, q)
}

// History reads a run's records, redacted unless req.Reveal. The error is EXECUTION_NOT_FOUND for an unknown run.
func (r *Runner) History(ctx context.Context, req HistoryRequest) ([]history.Record, error) {
	if err := r.enter(); err != nil {
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
		return nil, notFoundAs(err, problem.ExecutionNotFound, req.ExecutionID)
	}
	for i := range records {
		records[i].Raw = records[i].Text(req.ExecutionID)
		if req.Reveal {
			continue
		}
		if err := redact(&records[i]); err != nil {
			return nil, err
		}
	}
	return records, nil
}

// redact hides the secret members of a record, in its text and in what is read from it.
func redact(rec *history.Record) (err error) {
	rec.Raw = history.Redact(rec.Raw)
	rec.Payload, err = history.DecodePayload(rec.Name, rec.Raw)
	return err
}
