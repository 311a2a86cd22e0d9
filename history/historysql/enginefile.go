package historysql

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
)

// EngineFile is a snapshot of a database of the npm engine, the protocol's reference engine. Its only table is history (spec: cli-and-config,
// 5.2). Not safe for concurrent use.
type EngineFile struct {
	path   string
	conn   *conn
	rows   string
	finish func()
}

// OpenEngineFile opens a database of the npm engine for reading. It also reads the records in the WAL, does not change the file, and works
// while the file is in use. The error is USAGE_ERROR for a database of this engine, HISTORY_CORRUPT for any other file.
func OpenEngineFile(ctx context.Context, path string) (*EngineFile, error) {
	s, err := newStore(path, Options{ReadOnly: true})
	if err != nil {
		return nil, err
	}
	f, err := s.openEngineFile(ctx)
	if err != nil {
		s.removeEmptyWAL(s.path)
	}
	return f, failure("the database "+s.path+" cannot be read", err)
}

func (s *Store) openEngineFile(ctx context.Context) (*EngineFile, error) {
	source, id, err := s.readableAny(ctx)
	switch {
	case err != nil:
		return nil, err
	case id.application == applicationID:
		return nil, problem.New(problem.UsageError, "%s is a database of this engine", s.path).WithHint("Open it as a store, or export its runs.")
	case !id.ofEngine():
		return nil, problem.New(problem.HistoryCorrupt, "%s is not a database of the npm engine: its table history lacks columns or the key", s.path)
	}
	c, err := s.connect(source)
	if err != nil {
		return nil, err
	}
	// The first read of the transaction fixes the moment that all reads see.
	if err := c.script("BEGIN; SELECT count(*) FROM sqlite_schema"); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	version := "1"
	if _, ok := id.columns["record_schema_version"]; ok {
		version = "record_schema_version"
	}
	return &EngineFile{
		path: s.path, conn: c, finish: func() { s.removeEmptyWAL(s.path) },
		rows: fmt.Sprintf("SELECT seq, kind, name, payload_json, created_at, %s, 0 FROM history WHERE execution_id = ?1 ORDER BY seq", version),
	}, nil
}

// Close closes the file.
func (f *EngineFile) Close() error {
	err := f.conn.Close()
	f.finish()
	return err
}

const engineRuns = `SELECT DISTINCT execution_id FROM history ORDER BY execution_id`

// Runs returns the ids of all runs, including subworkflows.
func (f *EngineFile) Runs() ([]string, error) {
	ids, err := column(f.conn, engineRuns)
	return ids, failure("the runs of "+f.path+" cannot be listed", err)
}

// Records returns all records of a run, marked as recorded by another engine. An unreadable row or a gap returns HISTORY_CORRUPT or
// HISTORY_VERSION_UNSUPPORTED, with the run's id.
func (f *EngineFile) Records(executionID string) ([]history.Record, error) {
	var rows []storedRow
	err := f.conn.query(f.rows, func(row []driver.Value) error {
		rows = append(rows, storedRowOf(row))
		return nil
	}, executionID)
	if err != nil {
		err = failure(fmt.Sprintf("the records of run %q cannot be read", executionID), err)
		if e, ok := problem.As(err); ok {
			e.At.ExecutionID = executionID
		}
		return nil, err
	}
	records := make([]history.Record, len(rows))
	for i := range rows {
		if want := int64(i + 1); rows[i].seq != want {
			return nil, rows[i].gap(executionID, want)
		}
		if records[i], err = rows[i].record(executionID); err != nil {
			return nil, err
		}
	}
	return records, nil
}
