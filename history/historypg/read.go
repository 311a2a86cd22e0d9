package historypg

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
)

// deleted is the phase of a run that is being deleted.
const deleted = "deleted"

// storedRow is a row of the table records.
type storedRow struct {
	seq     int64
	name    string
	at      int64
	form    int16
	payload []byte
}

const readRows = `SELECT e.seq, e.name, e.at, e.form, e.payload FROM @records AS e
WHERE e.run = (SELECT run FROM @runs WHERE execution_id = $1::text AND phase <> 'deleted') AND e.seq >= $2::bigint ORDER BY e.seq LIMIT $3::bigint`

// rowsOf returns at most limit rows of a run (0: all), starting at seq firstSeq.
func (s *Store) rowsOf(ctx context.Context, q queries, executionID string, firstSeq int64, limit int) (rows []storedRow, err error) {
	err = each(ctx, q, s.texts.of(readRows), func(row pgx.Rows) error {
		var r storedRow
		var payload string
		err := row.Scan(&r.seq, &r.name, &r.at, &r.form, &payload)
		r.payload = []byte(unescaped(payload))
		rows = append(rows, r)
		return err
	}, key(executionID), firstSeq, limitOf(limit))
	return rows, err
}

// limitOf returns a limit as PostgreSQL has it; 0 means all.
func limitOf(limit int) any {
	if limit <= 0 {
		return nil
	}
	return int64(limit)
}

// Read returns records of a run; see history.Store. Unreadable rows and gaps return HISTORY_CORRUPT.
func (s *Store) Read(ctx context.Context, executionID string, fromSeq int64, limit int) (out []history.Record, err error) {
	const doing = "the history could not be read"
	start := max(fromSeq, 1)
	err = s.read(ctx, doing, func(q queries) error {
		rows, err := s.rowsOf(ctx, q, executionID, start, limit)
		if err != nil {
			return err
		}
		x := newRowReader(executionID, &shelf{ctx, s, q, executionID}, false)
		out = slices.Grow([]history.Record(nil), len(rows))
		for i := range rows {
			if want := start + int64(i); rows[i].seq != want {
				err = rows[i].damaged(executionID, "follows a gap: record %d is missing", want)
			}
			var record history.Record
			if err == nil {
				record, err = x.record(&rows[i])
			}
			if err != nil {
				break
			}
			out = append(out, record)
			rows[i].payload = nil
		}
		if _, damaged := problem.As(err); damaged { // or the run was deleted between the two queries
			var phase string
			var seq int64
			found, lookErr := first(ctx, q, s.texts.of(readHead), []any{key(executionID)}, &seq, &phase)
			if lookErr != nil {
				return lookErr
			}
			if !found || phase == deleted || seq < rows[len(rows)-1].seq {
				out = nil
				return nil
			}
		}
		return err
	})
	if err != nil || len(out) == 0 {
		return nil, err
	}
	return out, nil
}

const readPosition = `SELECT position_seq, position FROM @runs WHERE execution_id = $1::text`

// Position returns the newest stored machine position of a run; see history.Store.
func (s *Store) Position(ctx context.Context, executionID string) (seq int64, data []byte, err error) {
	err = s.read(ctx, "the position could not be read", func(q queries) error {
		_, err := first(ctx, q, s.texts.of(readPosition), []any{key(executionID)}, &seq, &data)
		return err
	})
	if err != nil {
		return 0, nil, err
	}
	return seq, data, nil
}

const readExecution = `SELECT seq, phase, projection, bytes FROM @runs WHERE execution_id = $1::text`

// Execution returns a run's projection; see history.Store.
func (s *Store) Execution(ctx context.Context, executionID string) (e history.Execution, err error) {
	err = s.read(ctx, "the run could not be read", func(q queries) (err error) {
		e, err = s.execution(ctx, q, executionID)
		return err
	})
	if err != nil {
		return history.Execution{}, err
	}
	return e, nil
}

func (s *Store) execution(ctx context.Context, q queries, executionID string) (e history.Execution, err error) {
	var seq, bytes int64
	var phase, projection string
	found, err := first(ctx, q, s.texts.of(readExecution), []any{key(executionID)}, &seq, &phase, &projection, &bytes)
	switch {
	case err != nil:
		return e, err
	case !found:
		return e, history.NotFound(executionID)
	case phase == deleted:
		return e, history.BeingDeleted(executionID)
	}
	return parseExecution(executionID, projection, bytes)
}

func parseExecution(executionID, projection string, bytes int64) (history.Execution, error) {
	e, err := history.ParseExecution(executionID, []byte(unescaped(projection)))
	if p, ok := problem.As(err); ok {
		err = p.WithHint(hintProject)
	}
	e.Bytes = bytes
	return e, err
}

const treeUse = `SELECT count(*), coalesce(sum((projection::json ->> 'visits')::bigint), 0)::bigint, coalesce(sum(seq), 0)::bigint, coalesce(sum(bytes), 0)::bigint,
    coalesce(sum((SELECT count(*) FROM json_array_elements(coalesce(projection::json -> 'waits', '[]')) AS w WHERE w ->> 'kind' IN ('activity', 'backoff')))
        FILTER (WHERE phase NOT IN {ended}), 0)::bigint
FROM @runs WHERE (execution_id = $1::text OR execution_id >= $2::text AND execution_id < $3::text) AND phase <> 'deleted'`

// Tree returns the resources used by the runs of a tree; see history.Store.
func (s *Store) Tree(ctx context.Context, executionID string) (u history.TreeUse, err error) {
	from, to := history.DescendantRange(key(executionID))
	err = s.read(ctx, "the use of the tree could not be read", func(q queries) error {
		_, err := first(ctx, q, s.texts.of(treeUse), []any{key(executionID), from, to}, &u.Runs, &u.Visits, &u.Records, &u.Bytes, &u.Pending)
		return err
	})
	return u, err
}
