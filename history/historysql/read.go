package historysql

import (
	"context"
	"database/sql/driver"
	"slices"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
)

// Read returns records of a run; see history.Store. Unreadable rows and gaps return HISTORY_CORRUPT.
func (s *Store) Read(ctx context.Context, executionID string, fromSeq int64, limit int) ([]history.Record, error) {
	first := max(fromSeq, 1)
	q := reader{ctx, &s.readers}
	rows, err := rowsOf(q, executionID, first, sqlLimit(limit))
	for i := range rows {
		if want := first + int64(i); rows[i].seq != want {
			rows, err = rows[:i], rows[i].gap(executionID, want)
			break
		}
	}
	// References are resolved after the query, because they need another connection and the pool is small.
	x := newRowReader(executionID, shelf{q}, false)
	out := slices.Grow([]history.Record(nil), len(rows))
	last := int64(0)
	for i := range rows {
		last = rows[i].seq
		var record history.Record
		if err == nil {
			record, err = x.record(&rows[i])
			out = append(out, record)
		}
		rows[i] = storedRow{}
	}
	if _, damaged := problem.As(err); damaged && last > 0 {
		// The run may have been deleted between the query and the resolution of its references.
		switch there, lookErr := s.readers.holds(ctx, executionID, last); {
		case lookErr != nil:
			err = lookErr
		case !there:
			return nil, nil
		}
	}
	if err != nil {
		return nil, failure("the history could not be read", err)
	}
	return out, nil
}

// holds reports whether a run still has a record and is not being deleted.
func (r *readers) holds(ctx context.Context, executionID string, seq int64) (bool, error) {
	found, err := r.row(ctx, rowExists, []any{executionID, seq}, new(int))
	if err != nil || !found {
		return false, err
	}
	var phase string
	_, err = r.row(ctx, readPhase, []any{executionID}, &phase)
	return phase != markDeleted, err
}

// storedRow is a row of the table history.
type storedRow struct {
	seq       int64
	kind      string
	name      string
	payload   []byte
	createdAt string
	version   any
	// writer identifies the engine that wrote the row; see FORMAT.md.
	writer int64
}

const readRows = `SELECT seq, kind, name, payload_json, created_at, record_schema_version, writer FROM history
WHERE execution_id = ?1 AND seq >= ?2 ORDER BY seq LIMIT ?3`

// rowsOf returns at most limit rows of a run (-1: all), starting at seq first. A column of an unexpected type counts as empty.
func rowsOf(q querier, executionID string, first, limit int64) (rows []storedRow, err error) {
	err = q.query(readRows, func(row []driver.Value) error {
		rows = append(rows, storedRowOf(row))
		return nil
	}, executionID, first, limit)
	return rows, err
}

// storedRowOf parses a row of readRows.
func storedRowOf(row []driver.Value) storedRow {
	r := storedRow{
		kind: textOf(row[1]), name: textOf(row[2]), payload: []byte(textOf(row[3])), createdAt: textOf(row[4]), version: row[5],
	}
	r.seq, _ = row[0].(int64)
	r.writer, _ = row[6].(int64)
	return r
}

// ownRow is the value of the column writer in rows of this engine.
const ownRow = 1

// record returns the row as a record. With an error, the record holds the readable part.
func (r *storedRow) record(executionID string) (history.Record, error) {
	out := history.Record{Seq: r.seq, Kind: history.Kind(r.kind), Name: history.Name(r.name), Raw: r.payload, Foreign: r.writer != ownRow}
	at, atErr := history.ParseTimestamp(r.createdAt)
	out.CreatedAt = at
	if err := history.CheckRowVersion(executionID, r.seq, r.version); err != nil {
		return out, err
	}
	if atErr != nil {
		return out, r.damaged(executionID, "has no valid time").WithCause(atErr)
	}
	if out.Kind != history.Command && out.Kind != history.Event {
		return out, r.damaged(executionID, "has the unknown kind %q", r.kind)
	}
	p, err := history.DecodePayload(out.Name, r.payload)
	if err != nil {
		return out, r.damaged(executionID, "has an unreadable payload").WithCause(err)
	}
	out.Payload = p
	return out, nil
}

// gap returns the error for a row found in place of a missing record.
func (r *storedRow) gap(executionID string, want int64) *problem.Error {
	return r.damaged(executionID, "follows a gap: record %d is missing", want)
}

func (r *storedRow) damaged(executionID, what string, args ...any) *problem.Error {
	args = append([]any{r.seq, executionID}, args...)
	return problem.New(problem.HistoryCorrupt, "record %d of run %q "+what, args...).
		WithPlace(problem.Place{ExecutionID: executionID}).
		WithHint("The row was not changed. Restore the database from a backup, or end the run with the engine that wrote the row.")
}

const readPosition = `SELECT e.position_seq, COALESCE(e.position, p.position) FROM executions AS e
LEFT JOIN positions AS p ON e.position IS NULL AND e.position_seq > 0 AND p.execution_id = e.execution_id
WHERE e.execution_id = ?1`

// Position returns the newest stored machine position of a run; see history.Store.
func (s *Store) Position(ctx context.Context, executionID string) (seq int64, data []byte, err error) {
	if _, err := s.readers.row(ctx, readPosition, []any{executionID}, &seq, &data); err != nil {
		return 0, nil, failure("the position could not be read", err)
	}
	return seq, data, nil
}
