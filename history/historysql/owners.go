package historysql

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"slices"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/internal/storeclock"
)

// A process has a lease, a row of the table processes, and the column owner of a run names its process. An unexpired row
// of the table leases is an older version's claim to a run: it counts as an owner with an unexpired lease. See FORMAT.md.

const renewProcess = `INSERT INTO processes (process, expires) VALUES (?1, ?2) ON CONFLICT (process) DO UPDATE SET expires = excluded.expires`

// Renew makes the lease of a process last for ttl from now; see history.Store.
func (s *Store) Renew(ctx context.Context, process string, ttl time.Duration) error {
	end := func(now time.Time) int64 { return history.CeilMillis(now.Add(ttl)) }
	return s.setLease(ctx, "the lease was not renewed", renewProcess, process, end)
}

const releaseProcess = `UPDATE processes SET expires = ?2 WHERE process = ?1 AND expires > ?2`

// Release ends the lease of a process; see history.Store.
func (s *Store) Release(ctx context.Context, process string) error {
	return s.setLease(ctx, "the lease was not released", releaseProcess, process, time.Time.UnixMilli)
}

const dropProcesses = `DELETE FROM processes WHERE expires <= ?1 AND NOT EXISTS (SELECT 1 FROM executions WHERE owner = process) OR expires > ?2`

// setLease stores the end of a process's lease. It deletes expired processes that own no runs, and processes whose lease was set by a wrong
// clock.
func (s *Store) setLease(ctx context.Context, doing, text, process string, end func(now time.Time) int64) error {
	return s.share(ctx, doing, 0, func(c *conn) error {
		if err := s.agree(c); err != nil {
			return err
		}
		now := s.clock.Leases()
		if _, err := c.exec(text, process, end(now)); err != nil {
			return err
		}
		if _, err := c.exec(dropProcesses, now.UnixMilli(), now.Add(storeclock.MaxStep).UnixMilli()); err != nil {
			return err
		}
		_, err := c.exec(dropShares, now.UnixMilli())
		return err
	})
}

const claimExecution = `UPDATE executions SET owner = ?2, disowned = NULL, driven = driven > 0
WHERE execution_id = ?1 AND phase NOT IN ('completed', 'failed', 'cancelled', 'deleted')
    AND (owner IS NULL OR owner = ?2 OR NOT EXISTS (SELECT 1 FROM processes WHERE process = owner AND expires > ?3))
    AND NOT EXISTS (SELECT 1 FROM leases WHERE leases.execution_id = ?1 AND expires > ?3)`

// Claim makes a process the owner of runs; see history.Store.
func (s *Store) Claim(ctx context.Context, process string, executionIDs ...string) (claimed []string, err error) {
	return s.setOwner(ctx, "the runs were not claimed", claimExecution, process, executionIDs)
}

const disownExecution = `UPDATE executions SET owner = NULL, disowned = ?3 WHERE execution_id = ?1 AND owner IS COALESCE(?2, owner)`

// Disown releases runs that a process owns; see history.Store.
func (s *Store) Disown(ctx context.Context, process string, executionIDs ...string) error {
	_, err := s.setOwner(ctx, "the runs were not disowned", disownExecution, process, executionIDs)
	return err
}

// setOwner changes the rows of runs in one transaction and returns the changed runs.
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

const ownedElsewhere = `SELECT 1 FROM executions JOIN processes ON process = owner WHERE execution_id = ?1 AND owner <> ?2 AND expires > ?3
UNION ALL SELECT 1 FROM leases WHERE execution_id = ?1 AND expires > ?3`

// storeOwner stores the owner of the run after the batch, or refuses the batch.
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

const readOwner = `SELECT COALESCE(l.owner, e.owner, ''), COALESCE(l.expires, p.expires, e.disowned)
FROM executions AS e LEFT JOIN processes AS p ON p.process = e.owner
LEFT JOIN leases AS l ON l.execution_id = e.execution_id AND (l.expires > ?2 OR e.owner IS NULL AND e.disowned IS NULL)
WHERE e.execution_id = ?1 AND e.phase NOT IN ('completed', 'failed', 'cancelled', 'deleted')`

// Owner returns the owner of a run; see history.Store.
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

const ownedExecutions = `SELECT execution_id, (SELECT seq FROM history AS h WHERE h.execution_id = e.execution_id ORDER BY seq DESC LIMIT 1)
FROM executions AS e WHERE owner = ?1`

// Owned returns the runs that a process owns; see history.Store. It includes runs that an older version has ended, until they are disowned:
// excluding them would require the row of every run.
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

const liveProcesses = `SELECT process, expires, about, (SELECT count(*) FROM executions WHERE owner = process) FROM processes WHERE expires > ?1 ORDER BY process`

// Processes returns the processes with a live lease; see history.Roster. Their runs include those that an older version has ended; see Owned.
func (s *Store) Processes(ctx context.Context) (live []history.Process, err error) {
	now := s.now()
	err = reader{ctx, &s.readers}.query(liveProcesses, func(row []driver.Value) error {
		expires, _ := row[1].(int64)
		runs, _ := row[3].(int64)
		live = append(live, history.Process{
			Name: textOf(row[0]), Left: time.Duration(expires-now) * time.Millisecond, Runs: int(runs), About: history.ParseAbout([]byte(textOf(row[2]))),
		})
		return nil
	}, now)
	return live, failure("the processes could not be read", err)
}

// The kinds of rows of an overview.
const (
	overviewClock = iota
	overviewFlags
	overviewMore
	overviewLive
	overviewDeparted
)

const overview = `WITH RECURSIVE owners (name) AS (
    SELECT min(owner) FROM executions WHERE owner IS NOT NULL
    UNION ALL SELECT (SELECT min(owner) FROM executions WHERE owner > name) FROM owners WHERE name IS NOT NULL
)
SELECT 0, COALESCE(max(leases) FILTER (WHERE boot = ?1), 0), COALESCE(max(floor) FILTER (WHERE boot = ?1), 0), COALESCE(max(seen) FILTER (WHERE seen <= ?2), 0) FROM clocks
UNION ALL SELECT 1, EXISTS (SELECT 1 FROM executions WHERE owner = ?4), EXISTS (SELECT 1 FROM executions WHERE owner IS NULL AND driven = 1), EXISTS (SELECT 1 FROM ready)
UNION ALL SELECT 2, EXISTS (SELECT 1 FROM limits), (SELECT min(due) FROM timers), NULL
UNION ALL SELECT 3, process, NULL, NULL FROM processes WHERE expires > ?3
UNION ALL SELECT 4, name, NULL, NULL FROM owners
WHERE name IS NOT NULL AND NOT EXISTS (SELECT 1 FROM processes WHERE process = name AND expires > ?3)
    AND EXISTS (SELECT 1 FROM executions WHERE owner = name AND phase NOT IN ('completed', 'failed', 'cancelled', 'deleted'))`

// Overview answers the questions that a process repeats; see history.Store. Owns includes runs that an older version has ended; see Owned.
func (s *Store) Overview(ctx context.Context, process string) (o history.Overview, err error) {
	const doing = "the processes could not be read"
	if ctx.Err() != nil || s.closing.Err() != nil {
		return o, failure(doing, cmp.Or(context.Cause(ctx), error(errClosed)))
	}
	state := storeclock.State{Boot: s.clock.Boot()}
	err = reader{ctx, &s.readers}.query(overview, func(row []driver.Value) error {
		kind, _ := row[0].(int64)
		var n [3]int64
		for i := range n {
			n[i], _ = row[i+1].(int64)
		}
		switch kind {
		case overviewClock:
			state.Leases, state.Floor, state.Seen = n[0], n[1], n[2]
		case overviewFlags:
			o.Owns, o.Unowned, o.Ready = n[0] != 0, n[1] != 0, n[2] != 0
		case overviewMore:
			if o.Limited = n[0] != 0; row[2] != nil {
				o.NextTimer = time.UnixMilli(n[1]).UTC()
			}
		case overviewLive:
			o.Live = append(o.Live, textOf(row[1]))
		case overviewDeparted:
			o.Departed = append(o.Departed, textOf(row[1]))
		}
		return nil
	}, state.Boot, s.newest(), s.now(), process)
	if err != nil {
		return history.Overview{}, failure(doing, err)
	}
	slices.Sort(o.Live)
	slices.Sort(o.Departed)
	s.clock.Agree(state)
	o.Now = s.clock.Now()
	return o, nil
}

const unownedExecutions = `WITH RECURSIVE owners (name) AS (
    SELECT min(owner) FROM executions WHERE owner IS NOT NULL
    UNION ALL SELECT (SELECT min(owner) FROM executions WHERE owner > name) FROM owners WHERE name IS NOT NULL
),
gone (name) AS (
    SELECT name FROM owners WHERE name IS NULL OR NOT EXISTS (SELECT 1 FROM processes WHERE process = name AND expires > ?1)
)
SELECT e.execution_id FROM gone
CROSS JOIN executions AS e INDEXED BY executions_driven ON e.owner IS gone.name
LEFT JOIN processes AS p ON p.process = e.owner
LEFT JOIN leases AS l ON l.execution_id = e.execution_id
WHERE e.driven = 1 AND NOT EXISTS (SELECT 1 FROM ready WHERE ready.run = e.run) AND (l.expires IS NULL OR l.expires <= ?1)
ORDER BY COALESCE(p.expires, e.disowned, l.expires, e.updated_at), e.execution_id`

// Unowned returns runs that need a driver and have no owner; see history.Store. The index holds the candidates; Execution.Orphaned selects
// among them by the phases of parents and subworkflows.
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

// The processes that share a file agree on two clocks, which continue when the machine's clock steps; see storeclock and
// FORMAT.md. Each process writes its state of the clocks with its lease. It reads the state of others then and on each
// call of Now.

const readClocks = `SELECT COALESCE(max(leases) FILTER (WHERE boot = ?1), 0), COALESCE(max(floor) FILTER (WHERE boot = ?1), 0),
    COALESCE(max(seen) FILTER (WHERE seen <= ?2), 0) FROM clocks`

// Now returns the store's time; see history.Store.
func (s *Store) Now(ctx context.Context) (time.Time, error) {
	const doing = "the time was not read"
	if ctx.Err() != nil || s.closing.Err() != nil {
		return time.Time{}, failure(doing, cmp.Or(context.Cause(ctx), error(errClosed)))
	}
	state := storeclock.State{Boot: s.clock.Boot()}
	newest := s.newest()
	if _, err := s.readers.row(ctx, readClocks, []any{state.Boot, newest}, &state.Leases, &state.Floor, &state.Seen); err != nil {
		return time.Time{}, failure(doing, err)
	}
	s.clock.Agree(state)
	return s.clock.Now(), nil
}

// newest returns the latest time of another process's clock that counts as valid.
func (s *Store) newest() int64 { return s.clock.Now().Add(storeclock.MaxStep).UnixMilli() }

const putClock = `INSERT INTO clocks (boot, leases, floor, seen) VALUES (?1, ?2, ?3, ?4)
ON CONFLICT (boot) DO UPDATE SET floor = excluded.floor, seen = excluded.seen`

// agree reads the clock state of other processes and stores this one's, in a transaction.
func (s *Store) agree(c *conn) error {
	boot := s.clock.Boot()
	err := c.query(readClocks, func(row []driver.Value) error {
		state := storeclock.State{Boot: boot}
		for i, v := range []*int64{&state.Leases, &state.Floor, &state.Seen} {
			*v, _ = row[i].(int64)
		}
		s.clock.Agree(state)
		return nil
	}, boot, s.newest())
	if err != nil {
		return err
	}
	state := s.clock.State()
	_, err = c.exec(putClock, state.Boot, state.Leases, state.Floor, state.Seen)
	return err
}

// now returns the time used to judge leases.
func (s *Store) now() int64 { return s.clock.Leases().UnixMilli() }
