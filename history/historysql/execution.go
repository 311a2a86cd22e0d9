package historysql

import (
	"context"
	"database/sql"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
)

// Execution gives a run's projection; see history.Store. It looks at the run's last record too, and folds what the
// projection has not seen.
func (s *Store) Execution(ctx context.Context, executionID string) (history.Execution, error) {
	e, fresh, err := s.storedExecution(ctx, executionID)
	if err != nil || fresh {
		return e, err
	}
	return s.heal(ctx, executionID)
}

// storedExecution gives the stored projection. fresh is false if it is missing, behind or unreadable, in which case
// only the history can tell.
func (s *Store) storedExecution(ctx context.Context, executionID string) (e history.Execution, fresh bool, err error) {
	var seq, head sql.NullInt64
	var projection []byte
	var unreadable sql.NullString
	if _, err := s.readers.row(ctx, readExecution, []any{executionID}, &seq, &projection, &unreadable, &head); err != nil {
		return e, false, failure("the run could not be read", err)
	}
	switch {
	case !head.Valid:
		return e, false, history.NotFound(executionID)
	case !seq.Valid || seq.Int64 != head.Int64 || unreadable.Valid:
		return e, false, nil
	}
	e, err = history.ParseExecution(executionID, projection)
	return e, err == nil && e.Seq == seq.Int64, nil
}

// folding is a projection on its way to the run's last record.
type folding struct {
	execution history.Execution
	// unreadable is the problem of the first row that could not be read. Such a row counts with what its columns tell,
	// so that lists go on showing the run.
	unreadable *problem.Error
}

func (f *folding) apply(r *storedRow) {
	if f.execution.Seq+1 != r.seq {
		f.note(r.damaged(f.execution.ID, "stands where record %d is missing", f.execution.Seq+1))
	}
	record, err := r.record(f.execution.ID)
	if err != nil {
		if e, ok := problem.As(err); ok {
			f.note(e)
		}
	}
	f.execution.Apply(record)
}

func (f *folding) note(e *problem.Error) {
	if f.unreadable == nil {
		f.unreadable = e
	}
}

// err is nil or the error that a reader of the run gets.
func (f *folding) err() error {
	if f.unreadable == nil {
		return nil
	}
	return f.unreadable
}

// fold brings the projection of a run up to date in memory. It goes on from the stored one if that can be trusted.
func (s *Store) fold(ctx context.Context, executionID string) (*folding, error) {
	f := &folding{execution: history.Execution{ID: executionID}}
	var projection []byte
	var seq, head sql.NullInt64
	var unreadable sql.NullString
	if _, err := s.readers.row(ctx, readExecution, []any{executionID}, &seq, &projection, &unreadable, &head); err != nil {
		return nil, err
	}
	if seq.Valid && !unreadable.Valid && seq.Int64 <= head.Int64 {
		if e, err := history.ParseExecution(executionID, projection); err == nil && e.Seq == seq.Int64 {
			f.execution = e
		}
	}
	err := s.readers.query(ctx, readRows, func(rows *sql.Rows) error {
		var r storedRow
		if err := rows.Scan(&r.seq, &r.kind, &r.name, &r.payload, &r.createdAt, &r.version); err != nil {
			return err
		}
		f.apply(&r)
		return nil
	}, executionID, f.execution.Seq+1, int64(-1))
	return f, err
}
