package historysql

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/internal/storeclock"
)

// A process has a lease, a row of the table processes, and the column owner of a run names its process. An unexpired row
// of the table leases is an older version's claim to a run: it counts as an owner whose lease has not run out. See FORMAT.md.

// Renew makes the lease of a process last for ttl from now; see history.Store.
func (s *Store) Renew(ctx context.Context, process string, ttl time.Duration) error {
	end := func(now time.Time) int64 { return history.CeilMillis(now.Add(ttl)) }
	return s.setLease(ctx, "the lease was not renewed", renewProcess, process, end)
}

// Release ends the lease of a process; see history.Store.
func (s *Store) Release(ctx context.Context, process string) error {
	return s.setLease(ctx, "the lease was not released", releaseProcess, process, time.Time.UnixMilli)
}

// setLease stores when the lease of a process ends. It deletes the rows of processes that are gone and own nothing, and
// of those whose lease was begun by a clock that was wrong.
func (s *Store) setLease(ctx context.Context, doing, text, process string, end func(now time.Time) int64) error {
	return s.share(ctx, doing, 0, func(c *conn) error {
		if err := s.agree(c); err != nil {
			return err
		}
		now := s.clock.Leases()
		if _, err := c.exec(text, process, end(now)); err != nil {
			return err
		}
		_, err := c.exec(dropProcesses, now.UnixMilli(), now.Add(storeclock.MaxStep).UnixMilli())
		return err
	})
}

// Claim makes a process the owner of runs; see history.Store.
func (s *Store) Claim(ctx context.Context, process string, executionIDs ...string) (claimed []string, err error) {
	return s.setOwner(ctx, "the runs were not claimed", claimExecution, process, executionIDs)
}

// Disown gives up runs that a process owns; see history.Store.
func (s *Store) Disown(ctx context.Context, process string, executionIDs ...string) error {
	_, err := s.setOwner(ctx, "the runs were not disowned", disownExecution, process, executionIDs)
	return err
}

// setOwner changes the rows of runs in one transaction and returns the runs whose row was changed.
func (s *Store) setOwner(ctx context.Context, doing, text, process string, executionIDs []string) (changed []string, err error) {
	err = s.share(ctx, doing, 0, func(c *conn) error {
		changed = nil // the transaction may be a second attempt
		now := s.now()
		for _, id := range executionIDs {
			n, err := c.exec(text, id, process, now)
			if err != nil {
				return err
			}
			if n > 0 {
				changed = append(changed, id)
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return changed, nil
}

// storeOwner stores who owns the run after the batch, or refuses it.
func (s *Store) storeOwner(c *conn, b *history.Batch) error {
	ends := b.Execution.Phase.Terminal()
	now := s.now()
	if b.Owner != "" {
		if held, err := c.one(ownedElsewhere, b.ExecutionID, b.Owner, now); err != nil || held != nil {
			return cmp.Or(err, b.LeaseHeld())
		}
	}
	var err error
	switch {
	case ends:
		_, err = c.exec(disownExecution, b.ExecutionID, nil, nil)
	case b.Disown:
		_, err = c.exec(disownExecution, b.ExecutionID, nil, now)
	case b.Owner != "":
		_, err = c.exec(claimExecution, b.ExecutionID, b.Owner, now)
	}
	return err
}

// Owner returns who owns a run; see history.Store.
func (s *Store) Owner(ctx context.Context, executionID string) (history.Owner, error) {
	var process string
	var end sql.NullInt64
	now := s.now()
	if _, err := s.readers.row(ctx, readOwner, []any{executionID, now}, &process, &end); err != nil {
		return history.Owner{}, failure("the owner could not be read", err)
	}
	if !end.Valid {
		return history.Owner{Process: process}, nil
	}
	return history.OwnerUntil(process, time.UnixMilli(end.Int64), time.UnixMilli(now)), nil
}

// Owned returns the runs that a process owns; see history.Store. A run that an older version has ended is among them until
// it is disowned: to leave it out would take reading the row of every run.
func (s *Store) Owned(ctx context.Context, process string) (map[string]int64, error) {
	owned := map[string]int64{}
	var id string
	var head sql.NullInt64
	err := s.readers.query(ctx, ownedExecutions, func(rows *sql.Rows) error {
		err := rows.Scan(&id, &head)
		owned[id] = head.Int64
		return err
	}, process)
	if err != nil {
		return nil, failure("the runs of the process could not be read", err)
	}
	return owned, nil
}

// Departed returns the processes without a lease that own runs; see history.Store.
func (s *Store) Departed(ctx context.Context) ([]string, error) {
	processes, err := column(reader{ctx, &s.readers}, departedProcesses, s.now())
	return processes, failure("the processes could not be read", err)
}

// Unowned returns runs that need a driver and have none; see history.Store. The index holds the candidates;
// Execution.Orphaned chooses among them by the phases of parents and subworkflows.
func (s *Store) Unowned(ctx context.Context, limit int) (ids []string, err error) {
	const doing = "the runs without an owner could not be read"
	candidates, err := column(reader{ctx, &s.readers}, unownedExecutions, s.now())
	phase := func(id string) (p history.Phase, ok bool) {
		found, failed := s.readers.row(ctx, readPhase, []any{id}, &p)
		if failed != nil {
			err = failed
		}
		return p, found
	}
	for _, id := range candidates {
		e, unread := s.Execution(ctx, id)
		switch {
		case isUnreadable(unread), errors.Is(unread, problem.ExecutionNotFound):
			continue
		case unread == nil && e.Orphaned(phase):
			ids = append(ids, id)
		}
		if err = cmp.Or(err, unread); err != nil || len(ids) == limit && limit > 0 {
			break
		}
	}
	if err != nil {
		return nil, failure(doing, err)
	}
	return ids, nil
}
