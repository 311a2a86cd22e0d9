package historypg

import (
	"context"
	"time"

	"github.com/workflows-engine/workflows-engine/history"
)

var _ history.Follower = (*Store)(nil)

// readLag is 0 for an original, and for a replica that has replayed what it has received from one that it follows; NULL without a replayed transaction.
const readLag = `SELECT pg_is_in_recovery(), CASE
    WHEN NOT pg_is_in_recovery() OR EXISTS (SELECT 1 FROM pg_stat_wal_receiver) AND pg_last_wal_receive_lsn() <= pg_last_wal_replay_lsn() THEN 0
    ELSE greatest(0, ceil(extract(epoch FROM clock_timestamp() - pg_last_xact_replay_timestamp()) * 1000))::bigint END`

// Lag tells how far a replica is behind; see history.Follower.
func (s *Store) Lag(ctx context.Context) (l history.Lag, err error) {
	err = s.read(ctx, "the state of the replica could not be read", func(q queries) (err error) {
		l, err = lagOf(ctx, q)
		return err
	})
	return l, err
}

func lagOf(ctx context.Context, q queries) (l history.Lag, err error) {
	var ms *int64
	_, err = first(ctx, q, readLag, nil, &l.Replica, &ms)
	if l.Known = ms != nil; l.Known {
		l.Behind = time.Duration(*ms) * time.Millisecond
	}
	return l, err
}
