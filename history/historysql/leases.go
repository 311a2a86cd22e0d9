package historysql

import (
	"context"
	"database/sql"
	"time"

	"github.com/workflows-engine/workflows-engine/history"
)

// AcquireLease makes owner the driver of a run; see history.Store.
func (s *Store) AcquireLease(ctx context.Context, executionID, owner string, now, expires time.Time) (bool, error) {
	var changed int64
	err := s.share(ctx, "the lease was not acquired", 0, func(c *conn) (err error) {
		changed, err = c.exec(acquireLease, executionID, owner, expires.UnixMilli(), now.UnixMilli())
		return err
	})
	return changed > 0, err
}

// ReleaseLease gives a lease back; see history.Store.
func (s *Store) ReleaseLease(ctx context.Context, executionID, owner string) error {
	return s.share(ctx, "the lease was not given back", 0, func(c *conn) error {
		_, err := c.exec(releaseLease, executionID, owner)
		return err
	})
}

// Lease gives the lease of a run; see history.Store.
func (s *Store) Lease(ctx context.Context, executionID string) (history.Lease, error) {
	var owner string
	var expires int64
	switch found, err := s.readers.row(ctx, readLease, []any{executionID}, &owner, &expires); {
	case err != nil:
		return history.Lease{}, failure("the lease could not be read", err)
	case !found:
		return history.Lease{}, nil
	}
	return history.Lease{Owner: owner, Expires: time.UnixMilli(expires).UTC()}, nil
}

// Orphans gives runs that need a driver and have none; see history.Store. The index leads to the runs that need one;
// whether a run waits for a subworkflow that goes on by itself is told by that subworkflow's phase.
func (s *Store) Orphans(ctx context.Context, now time.Time, limit int) ([]string, error) {
	var candidates []history.Execution
	err := s.readers.query(ctx, unleasedDriven, func(rows *sql.Rows) error {
		var id string
		var projection []byte
		var head sql.NullInt64
		if err := rows.Scan(&id, &projection, &head); err != nil {
			return err
		}
		if e, unreadable := history.ParseExecution(id, projection); unreadable == nil {
			candidates = append(candidates, e)
		}
		return nil
	}, now.UnixMilli())
	phase := func(id string) (p history.Phase, ok bool) {
		found, failed := s.readers.row(ctx, readPhase, []any{id}, &p)
		if failed != nil {
			err = failed
		}
		return p, found
	}
	var ids []string
	for i := range candidates {
		if err != nil || limit > 0 && len(ids) == limit {
			break
		}
		if e := &candidates[i]; e.Orphaned(phase) {
			ids = append(ids, e.ID)
		}
	}
	if err != nil {
		return nil, failure("the runs without a driver could not be read", err)
	}
	return ids, nil
}
