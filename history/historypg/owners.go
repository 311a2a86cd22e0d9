package historypg

import (
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
)

// A process has a lease, a row of the table processes, and the column owner of a run names its process. Leases are set and compared by the server's
// clock; see FORMAT.md.

const readNow = `WITH {clock} SELECT at FROM clock`

// Now returns the store's time; see history.Store.
func (s *Store) Now(ctx context.Context) (time.Time, error) {
	var ms int64
	err := s.read(ctx, "the time was not read", func(q queries) error {
		_, err := first(ctx, q, s.texts.of(readNow), []any{s.at()}, &ms)
		return err
	})
	if err != nil {
		return time.Time{}, err
	}
	return timeOf(ms), nil
}

// keepTime stores the newest time with each lease. If the server's clock is behind it by more than a second, the clock has stepped back: the store's
// time goes on from there, ahead of the server's. A lead is worked off by 1 % of the time that passes.
const keepTime = `stepped AS (UPDATE @meta AS m SET
    ahead = CASE WHEN m.seen > ` + serverTime + ` + m.ahead + ` + tolerance + ` AND m.seen <= ` + serverTime + ` + m.ahead + ` + day + ` THEN m.seen - ` + serverTime + `
        ELSE greatest(0, m.ahead - greatest(0, {now} - m.seen) / 100) END,
    seen = {now} WHERE m.one RETURNING m.id, m.min_writer)`

const (
	renewProcess = `WITH {clock}, ` + keepTime + `, dropped AS (` + dropProcesses + `), returned AS (` + dropShares + ` AND s.process <> $2::text),
leased AS (INSERT INTO @processes (process, expires) VALUES ($2::text, {now} + $3::bigint) ON CONFLICT (process) DO UPDATE SET expires = excluded.expires)
SELECT id, min_writer FROM stepped`
	releaseProcess = `WITH {clock}, ` + keepTime + `, dropped AS (` + dropProcesses + `), returned AS (` + dropShares + ` OR s.process = $2::text),
leased AS (UPDATE @processes SET expires = {now} WHERE process = $2::text AND {live} AND $3::bigint = 0)
SELECT id, min_writer FROM stepped`
	// dropProcesses forgets the processes whose lease has ended and that own no run, and those whose lease a wrong clock has set.
	dropProcesses = `DELETE FROM @processes AS p WHERE p.process <> $2::text
    AND (p.expires <= {now} AND NOT EXISTS (SELECT 1 FROM @runs AS r WHERE r.owner = p.process) OR p.expires > {now} + ` + day + `)
    AND p.process IN (SELECT o.process FROM @processes AS o WHERE NOT (o.expires > {now} AND o.expires <= {now} + ` + day + `) FOR UPDATE SKIP LOCKED)`
)

// Renew makes the lease of a process last for ttl from now; see history.Store.
func (s *Store) Renew(ctx context.Context, process string, ttl time.Duration) error {
	return s.setLease(ctx, "the lease was not renewed", renewProcess, process, int64((ttl+time.Millisecond-1)/time.Millisecond))
}

// Release ends the lease of a process; see history.Store.
func (s *Store) Release(ctx context.Context, process string) error {
	return s.setLease(ctx, "the lease was not released", releaseProcess, process, 0)
}

// setLease stores the end of a lease. It also learns whether the store is still the same one, and of a version that this engine may write to.
func (s *Store) setLease(ctx context.Context, doing, text, process string, ttl int64) error {
	var id string
	var minWriter int
	err := s.write(ctx, doing, true, func(ctx context.Context, c *pgxpool.Conn) error {
		_, err := first(ctx, c, s.texts.of(text), []any{s.at(), escaped(process), ttl}, &id, &minWriter)
		return err
	})
	if err != nil {
		return err
	}
	return s.same(identity{minWriter: minWriter, id: id})
}

// same returns an error if the store is no longer the one that was opened, or needs a newer release. No write follows that error.
func (s *Store) same(id identity) (err error) {
	needs := id.minReader
	if !s.options.ReadOnly {
		needs = max(needs, id.minWriter)
	}
	switch {
	case id.id != s.id:
		err = problem.New(problem.StoreReplaced, "the store in %s was replaced by another one", s.where).
			WithHint("Nothing was written. Restart the process: it then uses the store that is there.")
	case needs > newest:
		err = tooNew(s.where, needs)
	default:
		return nil
	}
	s.replaced.Store(&err)
	return err
}

const (
	claimRuns = `WITH {clock}, held AS (
    SELECT r.run FROM @runs AS r WHERE r.execution_id = ANY ($3::text[]) AND r.phase NOT IN {ended}
        AND (r.owner IS NULL OR r.owner = $2::text OR NOT EXISTS (SELECT 1 FROM @processes WHERE process = r.owner AND {live}))
    ORDER BY r.execution_id FOR UPDATE OF r),
unready AS (DELETE FROM @ready AS q USING held WHERE q.run = held.run)
UPDATE @runs AS r SET owner = $2::text, disowned = NULL, driven = least(r.driven, 1::smallint) FROM held WHERE r.run = held.run RETURNING r.execution_id`
	disownRuns = `WITH {clock}, held AS (
    SELECT r.run FROM @runs AS r WHERE r.execution_id = ANY ($3::text[]) AND r.owner = $2::text ORDER BY r.execution_id FOR UPDATE OF r)
UPDATE @runs AS r SET owner = NULL, disowned = {now} FROM held WHERE r.run = held.run RETURNING r.execution_id`
)

// Claim makes a process the owner of runs; see history.Store.
func (s *Store) Claim(ctx context.Context, process string, executionIDs ...string) ([]string, error) {
	return s.setOwner(ctx, "the runs were not claimed", claimRuns, process, executionIDs)
}

// Disown releases runs that a process owns; see history.Store.
func (s *Store) Disown(ctx context.Context, process string, executionIDs ...string) error {
	_, err := s.setOwner(ctx, "the runs were not disowned", disownRuns, process, executionIDs)
	return err
}

// setOwner changes the owner of runs, and returns the changed ones in the order given.
func (s *Store) setOwner(ctx context.Context, doing, text, process string, ids []string) (changed []string, err error) {
	if len(ids) == 0 {
		return nil, s.mayWrite(ctx, doing)
	}
	var set []string
	err = s.write(ctx, doing, true, func(ctx context.Context, c *pgxpool.Conn) (err error) {
		set, err = column(ctx, c, s.texts.of(text), s.at(), escaped(process), keys(ids))
		return err
	})
	if err != nil {
		return nil, err
	}
	for _, id := range ids {
		if slices.Contains(set, id) {
			changed = append(changed, id)
		}
	}
	return changed, nil
}

const readOwner = `WITH {clock} SELECT coalesce(r.owner, ''), coalesce(p.expires, r.disowned), {now} FROM @runs AS r LEFT JOIN @processes AS p ON p.process = r.owner
WHERE r.execution_id = $2::text AND r.phase NOT IN {ended}`

// Owner returns the owner of a run; see history.Store.
func (s *Store) Owner(ctx context.Context, executionID string) (history.Owner, error) {
	var process string
	var end *int64
	var now int64
	err := s.read(ctx, "the owner could not be read", func(q queries) error {
		_, err := first(ctx, q, s.texts.of(readOwner), []any{s.at(), key(executionID)}, &process, &end, &now)
		return err
	})
	switch {
	case err != nil:
		return history.Owner{}, err
	case end == nil:
		return history.Owner{Process: unescaped(process)}, nil
	}
	return history.OwnerUntil(unescaped(process), timeOf(*end), timeOf(now)), nil
}

const ownedRuns = `SELECT execution_id, seq FROM @runs WHERE owner = $1::text`

// Owned returns the runs that a process owns; see history.Store.
func (s *Store) Owned(ctx context.Context, process string) (owned map[string]int64, err error) {
	err = s.read(ctx, "the runs of the process could not be read", func(q queries) error {
		owned = map[string]int64{}
		return each(ctx, q, s.texts.of(ownedRuns), func(row pgx.Rows) error {
			var id string
			var seq int64
			err := row.Scan(&id, &seq)
			owned[unescaped(id)] = seq
			return err
		}, escaped(process))
	})
	if err != nil {
		return nil, err
	}
	return owned, nil
}

const liveProcesses = `WITH {clock} SELECT process, expires - {now}, coalesce(about, ''), (SELECT count(*) FROM @runs AS r WHERE r.owner = process)
FROM @processes WHERE {live} ORDER BY process`

// Processes returns the processes with a live lease; see history.Roster.
func (s *Store) Processes(ctx context.Context) (live []history.Process, err error) {
	err = s.read(ctx, "the processes could not be read", func(q queries) error {
		live = nil
		return each(ctx, q, s.texts.of(liveProcesses), func(row pgx.Rows) error {
			var p history.Process
			var left, runs int64
			var about string
			err := row.Scan(&p.Name, &left, &about, &runs)
			p.Name, p.Left, p.Runs, p.About = unescaped(p.Name), time.Duration(left)*time.Millisecond, int(runs), history.ParseAbout([]byte(unescaped(about)))
			live = append(live, p)
			return err
		}, s.at())
	})
	return live, err
}

const describeProcess = `WITH {clock} UPDATE @processes SET about = $3::text WHERE process = $2::text AND {live} AND about IS DISTINCT FROM $3::text`

// Describe replaces the description of a process; see history.Roster.
func (s *Store) Describe(ctx context.Context, process string, a history.About) error {
	text, err := a.AppendText(nil)
	if err != nil {
		return err
	}
	return s.write(ctx, "the process was not described", true, func(ctx context.Context, c *pgxpool.Conn) error {
		_, err := c.Exec(ctx, s.texts.of(describeProcess), s.at(), escaped(process), escaped(string(text)))
		return err
	})
}

// The owners are few, and their runs many: each step of the recursion finds the next owner in the index.
const (
	owners = `WITH RECURSIVE {clock}, owners (name) AS (
    SELECT min(owner) FROM @runs WHERE owner IS NOT NULL
    UNION ALL SELECT (SELECT min(r.owner) FROM @runs AS r WHERE r.owner > owners.name) FROM owners WHERE name IS NOT NULL),
gone (name) AS (SELECT name FROM owners WHERE name IS NOT NULL AND NOT EXISTS (SELECT 1 FROM @processes WHERE process = name AND {live}))
`
	overview = owners + `SELECT {now}, ARRAY(SELECT process FROM @processes WHERE {live}), ARRAY(SELECT name FROM gone),
    EXISTS (SELECT 1 FROM @runs WHERE owner = $2::text), EXISTS (SELECT 1 FROM @runs WHERE driven = 1 AND owner IS NULL),
    EXISTS (SELECT 1 FROM @ready), EXISTS (SELECT 1 FROM @limits), (SELECT min(due) FROM @timers), version, min_reader, min_writer, id FROM @meta`
	unownedRuns = owners + `SELECT execution_id FROM (
    SELECT r.run, r.execution_id, coalesce(r.disowned, r.updated_at) AS since FROM @runs AS r WHERE r.driven = 1 AND r.owner IS NULL
    UNION ALL SELECT r.run, r.execution_id, coalesce(p.expires, r.disowned, r.updated_at) FROM gone JOIN @runs AS r ON r.owner = gone.name AND r.driven > 0
        LEFT JOIN @processes AS p ON p.process = gone.name
) AS x WHERE NOT EXISTS (SELECT 1 FROM @ready AS q WHERE q.run = x.run) ORDER BY since, execution_id`
)

// Overview answers the questions that a process repeats; see history.Store. It is one statement, which also tells that the store was replaced, or
// that a newer release has migrated it.
func (s *Store) Overview(ctx context.Context, process string) (o history.Overview, err error) {
	var now int64
	var due *int64
	var id identity
	err = s.read(ctx, "the processes could not be read", func(q queries) error {
		o.Live, o.Departed = nil, nil
		found, err := first(ctx, q, s.texts.of(overview), []any{s.at(), escaped(process)},
			&now, &o.Live, &o.Departed, &o.Owns, &o.Unowned, &o.Ready, &o.Limited, &due, &id.version, &id.minReader, &id.minWriter, &id.id)
		if err == nil && !found {
			err = s.noMeta()
		}
		return err
	})
	if err == nil {
		err = s.same(id)
	}
	if err != nil {
		return history.Overview{}, err
	}
	o.Now, o.Live, o.Departed = timeOf(now), names(o.Live), names(o.Departed)
	if due != nil {
		o.NextTimer = timeOf(*due)
	}
	return o, nil
}

// names returns names that were stored, in order.
func names(stored []string) (out []string) {
	for _, name := range stored {
		out = append(out, unescaped(name))
	}
	slices.Sort(out)
	return out
}

const readPhase = `SELECT phase FROM @runs WHERE execution_id = $1::text AND phase <> 'deleted'`

// Unowned returns runs that need a driver and have no owner; see history.Store. The index holds the candidates; Execution.Orphaned selects
// among them by the phases of parents and subworkflows.
func (s *Store) Unowned(ctx context.Context, limit int) (ids []string, err error) {
	err = s.read(ctx, "the runs without an owner could not be read", func(q queries) error {
		ids = nil
		candidates, err := column(ctx, q, s.texts.of(unownedRuns), s.at())
		if err != nil {
			return err
		}
		var failed error
		phase := func(id string) (p history.Phase, ok bool) {
			var text string
			ok, err := first(ctx, q, s.texts.of(readPhase), []any{key(id)}, &text)
			if err != nil {
				failed = err
			}
			return history.Phase(text), ok
		}
		for _, id := range candidates {
			e, err := s.execution(ctx, q, id)
			switch p, ok := problem.As(err); {
			case ok && (isUnreadable(err) || p.Is(problem.ExecutionNotFound)):
				continue
			case err != nil:
				return err
			}
			if e.Orphaned(phase) {
				ids = append(ids, id)
			}
			if failed != nil || len(ids) == limit && limit > 0 {
				break
			}
		}
		return failed
	})
	if err != nil {
		return nil, err
	}
	return ids, nil
}
