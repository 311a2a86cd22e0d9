package historysql

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
)

// Execution returns a run's projection; see history.Store. If the stored projection is behind the run's last record, it folds the missing
// records.
func (s *Store) Execution(ctx context.Context, executionID string) (history.Execution, error) {
	e, head, err := s.storedExecution(ctx, executionID)
	switch {
	case err != nil:
		return history.Execution{}, failure("the run could not be read", err)
	case e.Seq == head && head > 0:
		return e, nil
	}
	return s.refreshProjection(ctx, e, head)
}

const (
	readExecution = `SELECT e.seq, e.projection, e.problem, (SELECT max(seq) FROM history WHERE execution_id = ?1), e.bytes
FROM (SELECT 1) LEFT JOIN executions AS e ON e.execution_id = ?1`
	blobBytes = `SELECT COALESCE(sum(octet_length(content)), 0) FROM blobs WHERE number IN (SELECT blob FROM blob_refs WHERE execution_id = ?1)`
)

// storedExecution returns the stored projection and the seq of the run's last record. An unreadable projection is returned empty.
func (s *Store) storedExecution(ctx context.Context, executionID string) (e history.Execution, head int64, err error) {
	var seq, last sql.NullInt64
	var projection []byte
	var unreadable sql.NullString
	var bytes sql.NullInt64
	_, err = s.readers.row(ctx, readExecution, []any{executionID}, &seq, &projection, &unreadable, &last, &bytes)
	if unreadable.String == markDeleted {
		return history.Execution{}, 0, history.BeingDeleted(executionID)
	}
	if err == nil && seq.Valid && seq.Int64 <= last.Int64 && !unreadable.Valid {
		var damaged error
		if e, damaged = history.ParseExecution(executionID, projection); damaged == nil && e.Seq == seq.Int64 {
			e.Bytes = bytes.Int64
			return e, last.Int64, nil
		}
	}
	e = history.Execution{ID: executionID}
	if err == nil && last.Valid {
		_, err = s.readers.row(ctx, blobBytes, []any{executionID}, &e.Bytes)
	}
	return e, last.Int64, err
}

const treeUse = `SELECT count(*), COALESCE(sum(visits), 0), COALESCE(sum(seq), 0), COALESCE(sum(bytes), 0), COALESCE(sum(pending), 0) FROM (
    SELECT seq, bytes, CASE WHEN json_valid(projection) THEN projection ->> '$.visits' END AS visits,
        CASE WHEN json_valid(projection) AND phase NOT IN ('completed', 'failed', 'cancelled') THEN (
            SELECT count(*) FROM json_each(projection, '$.waits') WHERE value ->> '$.kind' IN ('activity', 'backoff')
        ) END AS pending
    FROM executions
    WHERE (execution_id = ?1 OR execution_id >= ?2 AND execution_id < ?3) AND problem IS NOT 'deleted'
)`

// Tree returns the resources used by the runs of a tree; see history.Store.
func (s *Store) Tree(ctx context.Context, executionID string) (u history.TreeUse, err error) {
	from, to := history.DescendantRange(executionID)
	_, err = s.readers.row(ctx, treeUse, []any{executionID, from, to}, &u.Runs, &u.Visits, &u.Records, &u.Bytes, &u.Pending)
	return u, failure("the use of the tree could not be read", err)
}

// folding is a projection during a catch-up.
type folding struct {
	execution history.Execution
	reader    rowReader
	// unreadable is the problem of the first unreadable row. Such a row is folded from its columns alone, so that lists still show the run.
	unreadable *problem.Error
}

// apply folds a row and notes its problem. If the database returns an error, apply returns it and folds nothing.
func (f *folding) apply(r *storedRow) error {
	if f.execution.Seq+1 != r.seq {
		f.note(r.gap(f.execution.ID, f.execution.Seq+1))
	}
	record, err := f.reader.record(r)
	if err != nil {
		e, ok := problem.As(err)
		if !ok {
			return err
		}
		f.note(e)
	}
	f.execution.Apply(record)
	f.execution.Bytes += int64(len(r.payload))
	return nil
}

func (f *folding) note(e *problem.Error) {
	if f.unreadable == nil {
		f.unreadable = e
	}
}

// err returns the error for a reader of the run, or nil if all rows were readable.
func (f *folding) err() error {
	if f.unreadable == nil {
		return nil
	}
	return f.unreadable
}

// fold folds the missing records up to head into a projection, in memory.
func (s *Store) fold(ctx context.Context, e history.Execution, head int64) (*folding, error) {
	q := reader{ctx, &s.readers}
	f := &folding{execution: e, reader: newRowReader(e.ID, shelf{q}, true)}
	for {
		const page = 1000
		rows, err := rowsOf(q, e.ID, f.execution.Seq+1, min(page, head-f.execution.Seq))
		if err != nil {
			return f, err
		}
		for i := range rows {
			if err := f.apply(&rows[i]); err != nil {
				return f, err
			}
		}
		if len(rows) < page {
			return f, nil
		}
	}
}

// refreshProjection folds the missing records into a run's projection and stores the result. A read-only store folds them up to head and
// stores nothing.
//
// It reads records before it takes the write lock, because the reference engine does not wait for locks. Later records are read under the
// lock.
func (s *Store) refreshProjection(ctx context.Context, e history.Execution, head int64) (history.Execution, error) {
	const doing = "the run could not be brought up to date"
	if head == 0 {
		return history.Execution{}, history.NotFound(e.ID)
	}
	f, err := s.fold(ctx, e, head)
	if err != nil {
		return history.Execution{}, failure(doing, err)
	}
	if s.options.ReadOnly {
		return f.execution, f.err()
	}
	err = s.write(ctx, doing, func(c *conn) error { return f.finish(c, f.execution.Seq+1) })
	if err == nil {
		err = f.err()
	}
	return f.execution, err
}

// finish folds the records from seq within a transaction and stores the projection.
func (f *folding) finish(c *conn, seq int64) error {
	rows, err := rowsOf(c, f.execution.ID, seq, -1)
	if err != nil {
		return err
	}
	f.reader = newRowReader(f.execution.ID, shelf{c}, true)
	for i := range rows {
		if err := f.apply(&rows[i]); err != nil {
			return err
		}
	}
	e := &f.execution
	// The run may have been deleted meanwhile.
	switch found, err := c.one(rowExists, e.ID, e.Seq); {
	case err != nil:
		return err
	case found == nil:
		return history.NotFound(e.ID)
	}
	unreadable := ""
	if f.unreadable != nil {
		unreadable = fmt.Sprintf("%s: %s", f.unreadable.Code, f.unreadable.Message)
	}
	var positionSeq any
	if e.Phase.Terminal() {
		positionSeq = int64(0)
	}
	if err := storeExecution(c, e, unreadable, positionSeq, nil); err != nil {
		return err
	}
	if e.Phase.Terminal() {
		for _, text := range []string{dropPosition, dropTimers} {
			if _, err := c.exec(text, e.ID); err != nil {
				return err
			}
		}
		if _, err := c.exec(disownExecution, e.ID, nil, nil); err != nil {
			return err
		}
	}
	return nil
}
