package historysql

import (
	"context"
	"database/sql/driver"
	"slices"
	"time"

	"github.com/workflows-engine/workflows-engine/history"
)

// Links returns the links of a run, from its origin and to the runs that began with its past; see history.Store.
func (s *Store) Links(ctx context.Context, executionID string) ([]history.Link, error) {
	links, err := readLinks(reader{ctx, &s.readers}.query, executionID)
	return links, failure("the links of the run could not be read", err)
}

const linksOf = `SELECT l.from_id, l.to_id, l.kind, l.seq, l.actor, l.at, e.phase FROM run_links AS l INDEXED BY run_links_by_origin
LEFT JOIN executions AS e ON e.execution_id = l.to_id WHERE l.from_id = ?1
UNION ALL
SELECT l.from_id, l.to_id, l.kind, l.seq, l.actor, l.at, e.phase FROM run_links AS l
LEFT JOIN executions AS e ON e.execution_id = l.to_id WHERE l.to_id = ?1 ORDER BY 6, 2`

// readLinks reads the links of a run with the query function of a connection or reader.
func readLinks(query func(text string, each func(row []driver.Value) error, args ...any) error, executionID string) (links []history.Link, err error) {
	err = query(linksOf, func(row []driver.Value) error {
		seq, _ := row[3].(int64)
		at, _ := row[5].(int64)
		l := history.Link{
			From: textOf(row[0]), To: textOf(row[1]), Kind: history.LinkKind(textOf(row[2])), Seq: seq, Actor: textOf(row[4]),
			At: time.UnixMilli(at).UTC(), Phase: history.Phase(textOf(row[6])),
		}
		if l.Phase == markDeleted {
			l.Phase = ""
		}
		links = append(links, l)
		return nil
	}, executionID)
	return links, err
}

// retriesOf returns the links of all retries of the work of a run, within the transaction.
func retriesOf(c *conn, executionID string) ([]history.Link, error) {
	return history.Retries(executionID, func(id string) ([]history.Link, error) { return readLinks(c.query, id) })
}

const (
	putLink        = `INSERT INTO run_links (to_id, from_id, kind, seq, actor, at) VALUES (?1, ?2, ?3, ?4, ?5, ?6)`
	handledByRetry = `SELECT retry_id FROM handled WHERE execution_id = ?1`
)

// storeLink stores the link of a batch. It refuses a second retry of the same work, unless Link.Again is set. Check and insert share a
// transaction, so the second of two concurrent retries sees the first.
func storeLink(c *conn, b *history.Batch) error {
	l := b.Link
	if l == nil {
		return nil
	}
	if l.Kind == history.Retried && !l.Again {
		related, err := retriesOf(c, l.From)
		if err != nil {
			return err
		}
		done, err := c.one(handledByRetry, l.From)
		if err == nil {
			err = l.AlreadyRetried(related, textOf(done))
		}
		if err != nil {
			return err
		}
	}
	var actor any
	if l.Actor != "" {
		actor = l.Actor
	}
	_, err := c.exec(putLink, b.ExecutionID, l.From, string(l.Kind), l.Seq, actor, l.At.UnixMilli())
	return err
}

// Handle marks a run as handled; see history.Store.
func (s *Store) Handle(ctx context.Context, h history.Handling) error {
	if err := h.Check(); err != nil {
		return err
	}
	e, err := s.Execution(ctx, h.ExecutionID) // an ended run never changes its phase
	if err == nil {
		err = history.NotToHandle(e.ID, e.Phase)
	}
	if err != nil {
		return err
	}
	return s.mark(ctx, h.ExecutionID, func(c *conn) error { return storeHandled(c, &h) })
}

const dropHandled = `DELETE FROM handled WHERE execution_id = ?1`

// Unhandle removes the mark of a run; see history.Store.
func (s *Store) Unhandle(ctx context.Context, executionID string) error {
	return s.mark(ctx, executionID, func(c *conn) error {
		_, err := c.exec(dropHandled, executionID)
		return err
	})
}

const readPhase = `SELECT phase FROM executions WHERE execution_id = ?1`

// mark changes the mark of an existing run.
func (s *Store) mark(ctx context.Context, executionID string, change func(c *conn) error) error {
	return s.write(ctx, "the mark of the run was not changed", func(c *conn) error {
		switch phase, err := c.one(readPhase, executionID); {
		case err != nil:
			return err
		case phase == nil || textOf(phase) == markDeleted:
			return history.NotFound(executionID)
		}
		return change(c)
	})
}

const putHandled = `INSERT INTO handled (execution_id, note, retry_id, actor, at) VALUES (?1, ?2, ?3, ?4, ?5)
ON CONFLICT (execution_id) DO UPDATE SET note = excluded.note, retry_id = excluded.retry_id, actor = excluded.actor, at = excluded.at`

func storeHandled(c *conn, h *history.Handling) error {
	args := []any{h.ExecutionID, h.Note, h.Retry, h.Actor, h.At.UnixMilli()}
	for i := 1; i <= 3; i++ {
		if args[i] == "" {
			args[i] = nil
		}
	}
	_, err := c.exec(putHandled, args...)
	return err
}

const handleEnded = `INSERT INTO handled (execution_id, retry_id, at) SELECT execution_id, ?2, ?3 FROM executions WHERE execution_id = ?1 AND phase IN ('failed', 'cancelled')
ON CONFLICT (execution_id) DO NOTHING`

// handleRetried marks the runs whose work the batch completes, or an earlier retry completed.
func handleRetried(c *conn, b *history.Batch) error {
	if !b.EndsFork() {
		return nil
	}
	related, err := retriesOf(c, b.ExecutionID)
	if err != nil {
		return err
	}
	ids, retry := b.Handles(related)
	for _, id := range ids {
		if _, err := c.exec(handleEnded, id, retry, b.Execution.UpdatedAt.UnixMilli()); err != nil {
			return err
		}
	}
	return nil
}

const readHandled = `SELECT note, retry_id, actor, at FROM handled WHERE execution_id = ?1`

// Handled returns the marks of runs; see history.Store.
func (s *Store) Handled(ctx context.Context, executionIDs ...string) (map[string]history.Handling, error) {
	marks := map[string]history.Handling{}
	for _, id := range executionIDs {
		for _, marked := range slices.Compact([]string{history.Root(id), id}) { // the run's own mark overrides its root's mark
			err := reader{ctx, &s.readers}.query(readHandled, func(row []driver.Value) error {
				at, _ := row[3].(int64)
				marks[id] = history.Handling{
					ExecutionID: marked, Note: textOf(row[0]), Retry: textOf(row[1]), Actor: textOf(row[2]), At: time.UnixMilli(at).UTC(),
				}
				return nil
			}, marked)
			if err != nil {
				return nil, failure("the marks of the runs could not be read", err)
			}
		}
	}
	return marks, nil
}
