package historypg

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/workflows-engine/workflows-engine/history"
)

// Links returns the links of a run, from its origin and to the runs that began with its past; see history.Store.
func (s *Store) Links(ctx context.Context, executionID string) (links []history.Link, err error) {
	err = s.read(ctx, "the links of the run could not be read", func(q queries) (err error) {
		links, err = s.linksOf(ctx, q, executionID)
		return err
	})
	return links, err
}

const linksOf = `SELECT l.from_id, l.to_id, l.kind, l.seq, l.actor, l.at, coalesce(r.phase, '') FROM @run_links AS l
LEFT JOIN @runs AS r ON r.execution_id = l.to_id AND r.phase <> 'deleted' WHERE l.from_id = $1::text
UNION ALL
SELECT l.from_id, l.to_id, l.kind, l.seq, l.actor, l.at, coalesce(r.phase, '') FROM @run_links AS l
LEFT JOIN @runs AS r ON r.execution_id = l.to_id AND r.phase <> 'deleted' WHERE l.to_id = $1::text ORDER BY 6, 2`

func (s *Store) linksOf(ctx context.Context, q queries, executionID string) (links []history.Link, err error) {
	err = each(ctx, q, s.texts.of(linksOf), func(row pgx.Rows) error {
		var l history.Link
		var kind, phase string
		var at int64
		err := row.Scan(&l.From, &l.To, &kind, &l.Seq, &l.Actor, &at, &phase)
		l.From, l.To, l.Kind, l.Actor, l.At, l.Phase = unescaped(l.From), unescaped(l.To), history.LinkKind(kind), unescaped(l.Actor), timeOf(at), history.Phase(phase)
		links = append(links, l)
		return err
	}, key(executionID))
	return links, err
}

// lockLinks lets one transaction at a time decide by links of runs: which retry of some work begins, and which runs a retry has handled. It is taken
// before any row of a run.
const lockLinks = `LOCK TABLE @run_links IN SHARE ROW EXCLUSIVE MODE`

// retriesOf returns the links of all retries of the work of a run.
func (s *Store) retriesOf(ctx context.Context, q queries, executionID string) ([]history.Link, error) {
	return history.Retries(executionID, func(id string) ([]history.Link, error) { return s.linksOf(ctx, q, id) })
}

const (
	putLink = `INSERT INTO @run_links (to_id, from_id, kind, seq, actor, at) VALUES ($1::text, $2::text, $3::text, $4::bigint, $5::text, $6::bigint)
ON CONFLICT (to_id) DO UPDATE SET from_id = excluded.from_id, kind = excluded.kind, seq = excluded.seq, actor = excluded.actor, at = excluded.at`
	handledByRetry = `SELECT retry_id FROM @handled WHERE execution_id = $1::text`
)

// storeLink stores the link of a batch. It refuses a second retry of the same work, unless Link.Again is set.
func (s *Store) storeLink(ctx context.Context, tx pgx.Tx, b *history.Batch) error {
	l := b.Link
	if l == nil {
		return nil
	}
	if l.Kind == history.Retried && !l.Again {
		related, err := s.retriesOf(ctx, tx, l.From)
		if err != nil {
			return err
		}
		var done string
		if _, err = first(ctx, tx, s.texts.of(handledByRetry), []any{key(l.From)}, &done); err != nil {
			return err
		}
		if err := l.AlreadyRetried(related, unescaped(done)); err != nil {
			return err
		}
	}
	_, err := tx.Exec(ctx, s.texts.of(putLink), key(b.ExecutionID), key(l.From), string(l.Kind), l.Seq, escaped(l.Actor), l.At.UnixMilli())
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
	return s.mark(ctx, h.ExecutionID, func(ctx context.Context, tx pgx.Tx) error { return s.storeHandled(ctx, tx, &h) })
}

const dropHandled = `DELETE FROM @handled WHERE execution_id = $1::text`

// Unhandle removes the mark of a run; see history.Store.
func (s *Store) Unhandle(ctx context.Context, executionID string) error {
	return s.mark(ctx, executionID, func(ctx context.Context, tx pgx.Tx) error {
		_, err := tx.Exec(ctx, s.texts.of(dropHandled), key(executionID))
		return err
	})
}

const lockRun = `SELECT phase FROM @runs WHERE execution_id = $1::text AND phase <> 'deleted' FOR UPDATE`

// mark changes the mark of an existing run.
func (s *Store) mark(ctx context.Context, executionID string, change func(ctx context.Context, tx pgx.Tx) error) error {
	return s.transact(ctx, "the mark of the run was not changed", true, func(ctx context.Context, tx pgx.Tx) error {
		var phase string
		switch found, err := first(ctx, tx, s.texts.of(lockRun), []any{key(executionID)}, &phase); {
		case err != nil:
			return err
		case !found:
			return history.NotFound(executionID)
		}
		return change(ctx, tx)
	})
}

const putHandled = `INSERT INTO @handled (execution_id, note, retry_id, actor, at) VALUES ($1::text, $2::text, $3::text, $4::text, $5::bigint)
ON CONFLICT (execution_id) DO UPDATE SET note = excluded.note, retry_id = excluded.retry_id, actor = excluded.actor, at = excluded.at`

func (s *Store) storeHandled(ctx context.Context, tx pgx.Tx, h *history.Handling) error {
	_, err := tx.Exec(ctx, s.texts.of(putHandled), key(h.ExecutionID), escaped(h.Note), escaped(h.Retry), escaped(h.Actor), h.At.UnixMilli())
	return err
}

const handleEnded = `INSERT INTO @handled (execution_id, note, retry_id, actor, at)
SELECT execution_id, '', $2::text, '', $3::bigint FROM @runs WHERE execution_id = $1::text AND phase IN ('failed', 'cancelled')
ON CONFLICT (execution_id) DO NOTHING`

// handleRetried marks the runs whose work the batch completes, or an earlier retry completed.
func (s *Store) handleRetried(ctx context.Context, tx pgx.Tx, b *history.Batch) error {
	if !b.EndsFork() {
		return nil
	}
	related, err := s.retriesOf(ctx, tx, b.ExecutionID)
	if err != nil {
		return err
	}
	ids, retry := b.Handles(related)
	for _, id := range ids {
		if _, err := tx.Exec(ctx, s.texts.of(handleEnded), key(id), key(retry), b.Execution.UpdatedAt.UnixMilli()); err != nil {
			return err
		}
	}
	return nil
}

const readHandled = `SELECT execution_id, note, retry_id, actor, at FROM @handled WHERE execution_id = ANY ($1::text[])`

// Handled returns the marks of runs; see history.Store.
func (s *Store) Handled(ctx context.Context, executionIDs ...string) (marks map[string]history.Handling, err error) {
	var asked []string
	for _, id := range executionIDs {
		asked = append(asked, slices.Compact([]string{key(history.Root(id)), key(id)})...)
	}
	stored := map[string]history.Handling{}
	err = s.read(ctx, "the marks of the runs could not be read", func(q queries) error {
		if len(asked) == 0 {
			return nil
		}
		return each(ctx, q, s.texts.of(readHandled), func(row pgx.Rows) error {
			var h history.Handling
			var at int64
			err := row.Scan(&h.ExecutionID, &h.Note, &h.Retry, &h.Actor, &at)
			h = history.Handling{ExecutionID: unescaped(h.ExecutionID), Note: unescaped(h.Note), Retry: unescaped(h.Retry), Actor: unescaped(h.Actor), At: timeOf(at)}
			stored[h.ExecutionID] = h
			return err
		}, asked)
	})
	if err != nil {
		return nil, err
	}
	marks = map[string]history.Handling{}
	for _, id := range executionIDs {
		for _, marked := range []string{history.Root(id), id} { // the run's own mark overrides its root's mark
			if h, ok := stored[marked]; ok {
				marks[id] = h
			}
		}
	}
	return marks, nil
}
