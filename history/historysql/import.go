package historysql

import (
	"bytes"
	"cmp"
	"context"
	"errors"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
)

var _ history.Importer = (*Store)(nil)

// Import adds whole runs; see history.Importer. Runs whose text equals this engine's encoding are stored like appends, so that large values
// are kept once; the texts of other runs are stored unchanged.
func (s *Store) Import(ctx context.Context, in history.Import) error {
	const doing = "the runs were not imported"
	batches, err := in.Batches()
	if err != nil {
		return err
	}
	return s.write(ctx, doing, func(c *conn) error {
		for i := range in.Definitions {
			if err := s.insertDefinition(c, &in.Definitions[i]); err != nil {
				return err
			}
		}
		for i := range batches {
			err := s.importRun(ctx, c, &batches[i])
			if h := in.Runs[i].Handled; h != nil && err == nil {
				err = storeHandled(c, h)
			}
			if errors.Is(err, problem.HistoryConflict) {
				if marked, err := c.one(readPhase, batches[i].ExecutionID); err != nil || textOf(marked) == markDeleted {
					return cmp.Or(err, history.BeingDeleted(batches[i].ExecutionID))
				}
				err = problem.New(problem.DuplicateExecutionID, "run %q exists already", batches[i].ExecutionID).
					WithPlace(problem.Place{ExecutionID: batches[i].ExecutionID})
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

func (s *Store) importRun(ctx context.Context, c *conn, b *history.Batch) error {
	switch found, err := c.one(rowExists, b.ExecutionID, int64(1)); {
	case err != nil:
		return err
	case found != nil:
		return b.Conflict()
	}
	var text []byte
	for i := range b.Records {
		r := &b.Records[i]
		if text = r.AppendPayload(text[:0], b.ExecutionID); r.Foreign || !bytes.Equal(text, r.Raw) {
			return s.importTexts(c, b)
		}
	}
	var a appending
	a.encode(ctx, s, *b)
	return a.change(c)
}

const insertRow = `INSERT INTO history (execution_id, seq, kind, name, payload_json, created_at, record_schema_version, writer)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, 1, 0)`

// importTexts inserts records with unchanged texts. They count as another engine's records, already folded into the projection.
func (s *Store) importTexts(c *conn, b *history.Batch) error {
	e := b.Execution
	for i := range b.Records {
		r := &b.Records[i]
		_, err := c.exec(insertRow, b.ExecutionID, int64(i+1), string(r.Kind), string(r.Name), string(r.Raw), history.FormatTimestamp(r.CreatedAt))
		if isDuplicate(err) {
			return b.Conflict()
		}
		if err != nil {
			return err
		}
		e.Bytes += int64(len(r.Raw))
	}
	if err := storeExecution(c, &e, "", int64(0), nil); err != nil {
		return err
	}
	return s.storeSideTables(c, b)
}
