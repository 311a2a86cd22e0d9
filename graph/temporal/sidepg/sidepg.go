// Package sidepg is a side store for runs on Temporal in PostgreSQL.
package sidepg

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/graph/temporal"
)

// Store is a temporal.SideStore.
type Store struct{ pool *pgxpool.Pool }

var _ temporal.SideStore = (*Store)(nil)

// tables creates the tables. Their schema is the first one of the connection's search_path.
const tables = `
CREATE TABLE IF NOT EXISTS awp_blobs (hash text COLLATE "C" PRIMARY KEY, value bytea NOT NULL);
CREATE TABLE IF NOT EXISTS awp_journals (attempt bytea NOT NULL, n integer NOT NULL, entry bytea NOT NULL, PRIMARY KEY (attempt, n))`

// Open connects to a database by its URL and creates the tables if they are absent.
func Open(ctx context.Context, url string) (*Store, error) {
	pool, err := pgxpool.New(ctx, url)
	if err != nil {
		return nil, problem.New(problem.UsageError, "the address of the side store is not valid").
			WithHint("Use a URL such as postgres://user@host/database.")
	}
	s := &Store{pool}
	err = pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock(hashtext('awp_side_store'))"); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, tables)
		return err
	})
	if err != nil {
		pool.Close()
		return nil, failure(err)
	}
	return s, nil
}

// failure returns an error without the address, which may name a user.
func failure(err error) error {
	e := problem.New(problem.StoreUnavailable, "the side store on PostgreSQL cannot be used").
		WithHint("Check that the database runs and that the user may write to it. Runs continue once it works again.")
	if p, ok := errors.AsType[*pgconn.PgError](err); ok {
		return e.WithCause(errors.New(p.Code + " " + p.Message))
	}
	return e
}

// Close closes the connections.
func (s *Store) Close() error {
	s.pool.Close()
	return nil
}

// PutBlob implements temporal.SideStore.
func (s *Store) PutBlob(ctx context.Context, hash string, value []byte) error {
	if _, err := s.pool.Exec(ctx, "INSERT INTO awp_blobs (hash, value) VALUES ($1, $2) ON CONFLICT DO NOTHING", hash, value); err != nil {
		return failure(err)
	}
	return nil
}

// GetBlob implements temporal.SideStore.
func (s *Store) GetBlob(ctx context.Context, hash string) (value []byte, err error) {
	if err := s.pool.QueryRow(ctx, "SELECT value FROM awp_blobs WHERE hash = $1", hash).Scan(&value); err != nil {
		return nil, failure(err)
	}
	return value, nil
}

// AppendJournal implements temporal.SideStore. The primary key is the fence: of two workers that append after the same entry, one succeeds.
func (s *Store) AppendJournal(ctx context.Context, attempt string, count int, entries [][]byte) error {
	conflict := problem.New(problem.HistoryConflict, "another worker has written to the journal of attempt %s", attempt)
	err := pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		var n int
		if err := tx.QueryRow(ctx, "SELECT count(*) FROM awp_journals WHERE attempt = $1", []byte(attempt)).Scan(&n); err != nil {
			return err
		}
		if n != count {
			return conflict
		}
		for i, entry := range entries {
			if _, err := tx.Exec(ctx, "INSERT INTO awp_journals (attempt, n, entry) VALUES ($1, $2, $3)", []byte(attempt), count+i, entry); err != nil {
				return err
			}
		}
		return nil
	})
	if p, ok := errors.AsType[*pgconn.PgError](err); ok && p.Code == "23505" || errors.Is(err, conflict) {
		return conflict
	}
	if err != nil {
		return failure(err)
	}
	return nil
}

// Journal implements temporal.SideStore.
func (s *Store) Journal(ctx context.Context, attempt string) ([][]byte, error) {
	rows, err := s.pool.Query(ctx, "SELECT entry FROM awp_journals WHERE attempt = $1 ORDER BY n", []byte(attempt))
	if err != nil {
		return nil, failure(err)
	}
	entries, err := pgx.CollectRows(rows, pgx.RowTo[[]byte])
	if err != nil {
		return nil, failure(err)
	}
	return entries, nil
}
