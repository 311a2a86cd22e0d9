package historypg

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/workflows-engine/workflows-engine/history"
)

var (
	_ history.Queue  = (*Store)(nil)
	_ history.Roster = (*Store)(nil)
)

const (
	giveAway = `WITH {clock}, held AS (
    SELECT r.run FROM @runs AS r WHERE r.execution_id = ANY ($3::text[]) AND r.owner = $2::text AND r.phase NOT IN {ended} ORDER BY r.execution_id FOR UPDATE OF r)
UPDATE @runs AS r SET owner = NULL, disowned = {now}, driven = r.driven * 2::smallint FROM held WHERE r.run = held.run RETURNING r.execution_id`
	sendReady = `SELECT pg_notify($1::text, '')`
)

// offerRun is addReady for a run by its id.
var offerRun = `WITH {clock}, given AS (SELECT run, owner, phase FROM @runs WHERE execution_id = $2::text) ` +
	strings.NewReplacer("{source}", "given", "{lane}", "$3::text", "{priority}", "$4::bigint", "{tenant}", "$5::text").Replace(addReady)

// Offer makes runs ready that a process owns; see history.Queue.
func (s *Store) Offer(ctx context.Context, process string, runs ...history.Offer) error {
	const doing = "the runs were not offered"
	ids := make([]string, len(runs))
	for i := range runs {
		if err := runs[i].Ready.Check(); err != nil {
			return err
		}
		ids[i] = runs[i].ExecutionID
	}
	if len(runs) == 0 {
		return s.mayWrite(ctx, doing)
	}
	return s.transact(ctx, doing, false, func(ctx context.Context, tx pgx.Tx) error {
		taken, err := column(ctx, tx, s.texts.of(giveAway), s.at(), escaped(process), keys(ids))
		if err != nil || len(taken) == 0 {
			return err
		}
		left := map[string]bool{}
		for _, id := range taken {
			left[id] = true
		}
		var batch pgx.Batch
		for i := range runs {
			o := &runs[i]
			if !left[o.ExecutionID] {
				continue
			}
			left[o.ExecutionID] = false // a run that is offered twice gets the first place
			batch.Queue(s.texts.of(offerRun), s.at(), key(o.ExecutionID), escaped(o.Lane.String()), int64(o.Priority), escaped(o.Tenant))
		}
		if s.readyChannel != "" {
			batch.Queue(sendReady, s.readyChannel)
		}
		return tx.SendBatch(ctx, &batch).Close()
	})
}

// The lanes are few, and their runs many: each step of the recursion finds the next lane in the index.
const (
	withLanes = `WITH RECURSIVE lanes (lane) AS (
    SELECT min(lane) FROM @ready
    UNION ALL SELECT (SELECT min(q.lane) FROM @ready AS q WHERE q.lane > lanes.lane) FROM lanes WHERE lane IS NOT NULL)
`
	useOfLanes = withLanes + `SELECT lane, (SELECT count(*) FROM (SELECT 1 FROM @ready AS q WHERE q.lane = lanes.lane LIMIT $1::bigint) AS x),
    (SELECT min(q.since) FROM @ready AS q WHERE q.lane = lanes.lane) FROM lanes WHERE lane IS NOT NULL ORDER BY lane`

	// A claim looks at the first runs of each lane, some more than it may take, because others may be claiming them. It locks the row of the run
	// and that among the ready runs, and waits for neither. A lane without room for all of the limit gives only its first runs. The statement
	// returns the lanes, too. It claims nothing while one of them is not given: the caller decides about that lane, and claims again.
	claimReady = withLanes + `, near AS MATERIALIZED (
    SELECT x.run, l.room FROM unnest($2::text[], $3::bigint[]) AS l (lane, room)
    CROSS JOIN LATERAL (SELECT q.run FROM @ready AS q WHERE q.lane = l.lane ORDER BY {order} LIMIT l.room * 4) AS x
    WHERE NOT EXISTS (SELECT 1 FROM lanes AS o WHERE o.lane IS NOT NULL AND o.lane <> ALL ($2::text[]))),
locked AS MATERIALIZED (
    SELECT q.run, q.lane, q.priority, q.turn, q.since, near.room FROM near JOIN @ready AS q ON q.run = near.run JOIN @runs AS r ON r.run = q.run
    WHERE r.owner IS NULL AND r.phase NOT IN {ended} ORDER BY {order} LIMIT $5::bigint FOR UPDATE OF q, r SKIP LOCKED),
pick AS (
    SELECT run, lane, priority, turn, since FROM (SELECT *, row_number() OVER (PARTITION BY lane ORDER BY {order}) AS n FROM locked AS q) AS q
    WHERE n <= room ORDER BY {order} LIMIT $4::bigint),
unready AS (DELETE FROM @ready AS q USING pick WHERE q.run = pick.run),
claimed AS (UPDATE @runs AS r SET owner = $1::text, disowned = NULL, driven = least(r.driven, 1::smallint) FROM pick WHERE r.run = pick.run
    RETURNING r.execution_id, pick.lane, pick.priority, pick.turn, r.run, r.projection, r.bytes, r.position_seq, r.position)
SELECT execution_id, lane, priority, turn, run, projection, bytes, position_seq, position FROM claimed
UNION ALL SELECT NULL, lane, 0, 0, 0, '', 0, 0, NULL FROM lanes WHERE lane IS NOT NULL`
	byTurn = `q.priority DESC, q.turn, q.run`
	byAge  = `q.since, q.run`

	// A row whose run cannot be claimed has no place among the ready runs. It may have become ready while another process became its owner.
	staleReady = `SELECT q.run FROM unnest($1::text[]) AS l (lane)
CROSS JOIN LATERAL (SELECT o.run FROM @ready AS o WHERE o.lane = l.lane ORDER BY o.priority DESC, o.turn, o.run LIMIT $2::bigint) AS q
LEFT JOIN @runs AS r ON r.run = q.run WHERE r.run IS NULL OR r.owner IS NOT NULL OR r.phase IN {ended}`
	lockStale = `SELECT 1 FROM @runs WHERE run = ANY ($1::bigint[]) ORDER BY execution_id FOR UPDATE SKIP LOCKED`
	dropStale = `DELETE FROM @ready AS q WHERE q.run IN (SELECT o.run FROM @ready AS o LEFT JOIN @runs AS r ON r.run = o.run
    WHERE o.run = ANY ($1::bigint[]) AND (r.run IS NULL OR r.owner IS NOT NULL OR r.phase IN {ended}) ORDER BY o.run FOR UPDATE OF o SKIP LOCKED)`
)

var (
	claimFirst  = strings.ReplaceAll(claimReady, "{order}", byTurn)
	claimOldest = strings.ReplaceAll(claimReady, "{order}", byAge)
)

// ClaimReady makes a process the owner of ready runs; see history.Queue.
func (s *Store) ClaimReady(ctx context.Context, k history.ReadyClaim) (claimed []string, err error) {
	const doing = "the ready runs were not claimed"
	if err := k.Check(); err != nil {
		return nil, err
	}
	c := claim{store: s, process: escaped(k.Process), limit: k.Limit}
	for try := 0; try < maxTries; try++ {
		c.lanes, c.room = s.lanes.all(), nil
		for _, lane := range c.lanes {
			c.room = append(c.room, int64(k.In(history.ParseLane(unescaped(lane)))))
		}
		if k.Oldest {
			err = s.transact(ctx, doing, false, func(ctx context.Context, tx pgx.Tx) error {
				c.begin()
				if err := c.take(ctx, tx, claimOldest, 1); err != nil || k.Limit == 1 || len(c.claimed) == 0 {
					return err
				}
				return c.take(ctx, tx, claimFirst, k.Limit-1)
			})
		} else {
			err = s.write(ctx, doing, false, func(ctx context.Context, conn *pgxpool.Conn) error {
				c.begin()
				return c.take(ctx, conn, claimFirst, k.Limit)
			})
		}
		if err != nil {
			return nil, err
		}
		if !s.lanes.add(c.found) || len(c.claimed) > 0 { // usually; the second statement for Oldest may meet a new lane
			break
		}
	}
	if len(c.claimed) == 0 && c.served() {
		err = c.drop(ctx, doing)
	}
	if k.Found != nil {
		for _, r := range c.runs {
			k.Found(r)
		}
	}
	return c.claimed, err
}

// knownLanes are lanes that had ready runs. A claim gives them to its statement, which need not be asked for the lanes first.
type knownLanes struct {
	mu    sync.Mutex
	lanes []string // escaped
}

// maxLanes is the number of lanes from which those without ready runs are forgotten.
const maxLanes = 64

func (k *knownLanes) all() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Clone(k.lanes)
}

// add adds the lanes that have ready runs, and reports whether one of them was not known.
func (k *knownLanes) add(found []string) (added bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.lanes) > maxLanes {
		k.lanes = slices.DeleteFunc(k.lanes, func(lane string) bool { return !slices.Contains(found, lane) })
	}
	for _, lane := range found {
		if !slices.Contains(k.lanes, lane) {
			k.lanes, added = append(k.lanes, lane), true
		}
	}
	return added
}

// claim is a call of ClaimReady.
type claim struct {
	store   *Store
	process string
	limit   int
	// lanes are those that are known, room the number of runs to claim in each, and left how many of them are not claimed yet.
	lanes      []string
	room, left []int64
	// found are the lanes that have ready runs.
	found   []string
	claimed []string
	runs    []history.ReadyRun
}

// begin begins the claim, which may be a second attempt.
func (c *claim) begin() { c.claimed, c.runs, c.left = nil, nil, slices.Clone(c.room) }

// served reports whether a lane with ready runs has room.
func (c *claim) served() bool {
	return slices.ContainsFunc(c.found, func(lane string) bool {
		i := slices.Index(c.lanes, lane)
		return i >= 0 && c.room[i] > 0
	})
}

// take claims the first runs of a statement, at most limit.
func (c *claim) take(ctx context.Context, q queries, text string, limit int) error {
	locks := limit
	if slices.ContainsFunc(c.left, func(n int64) bool { return n > 0 && n < int64(limit) }) {
		locks *= 4
	}
	type run struct {
		id, lane               string
		priority, turn, number int64
	}
	var runs []run
	c.found = nil
	err := each(ctx, q, c.store.texts.of(text), func(row pgx.Rows) error {
		var r run
		var id *string
		var projection string
		var bytes int64
		var found history.ReadyRun
		err := row.Scan(&id, &r.lane, &r.priority, &r.turn, &r.number, &projection, &bytes, &found.PositionSeq, &found.Position)
		if id == nil {
			c.found = append(c.found, r.lane)
			return err
		}
		r.id = *id
		runs = append(runs, r)
		var unreadable error // the process finds out
		if found.Execution, unreadable = parseExecution(unescaped(r.id), projection, bytes); unreadable == nil {
			c.runs = append(c.runs, found)
		}
		return err
	}, c.process, c.lanes, c.left, int64(limit), int64(locks))
	slices.SortFunc(runs, func(a, b run) int {
		return cmp.Or(cmp.Compare(b.priority, a.priority), cmp.Compare(a.turn, b.turn), cmp.Compare(a.number, b.number))
	})
	for _, r := range runs {
		c.claimed = append(c.claimed, unescaped(r.id))
		c.left[slices.Index(c.lanes, r.lane)]--
	}
	return err
}

// drop deletes the rows of runs that cannot be claimed.
func (c *claim) drop(ctx context.Context, doing string) error {
	var stale []int64
	if err := c.store.read(ctx, doing, func(q queries) error {
		stale = nil
		return each(ctx, q, c.store.texts.of(staleReady), func(row pgx.Rows) error {
			var run int64
			err := row.Scan(&run)
			stale = append(stale, run)
			return err
		}, c.lanes, int64(4*c.limit))
	}); err != nil || len(stale) == 0 {
		return err
	}
	return c.store.transact(ctx, doing, true, func(ctx context.Context, tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, c.store.texts.of(lockStale), stale); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, c.store.texts.of(dropStale), stale)
		return err
	})
}

// Lanes returns the lanes with ready runs; see history.Queue.
func (s *Store) Lanes(ctx context.Context) (lanes []history.LaneUse, err error) {
	err = s.read(ctx, "the ready runs could not be read", func(q queries) error {
		lanes = nil
		return each(ctx, q, s.texts.of(useOfLanes), func(row pgx.Rows) error {
			var lane string
			var runs int64
			var since *int64
			err := row.Scan(&lane, &runs, &since)
			if since != nil {
				lanes = append(lanes, history.LaneUse{Lane: history.ParseLane(unescaped(lane)), Runs: int(runs), Since: timeOf(*since)})
			}
			return err
		}, int64(history.MaxCounted))
	})
	return lanes, err
}

const readPlace = `SELECT p.lane, p.priority, p.tenant, p.since, (SELECT count(*) FROM (
    SELECT 1 FROM @ready AS q WHERE q.lane = p.lane AND q.priority > p.priority
    UNION ALL SELECT 1 FROM @ready AS q WHERE q.lane = p.lane AND q.priority = p.priority AND q.turn < p.turn
    UNION ALL SELECT 1 FROM @ready AS q WHERE q.lane = p.lane AND q.priority = p.priority AND q.turn = p.turn AND q.run < p.run
    LIMIT $2::bigint) AS x)
FROM @ready AS p WHERE p.run = (SELECT run FROM @runs WHERE execution_id = $1::text)`

// Place returns the place of a ready run; see history.Queue.
func (s *Store) Place(ctx context.Context, executionID string) (p history.Place, ok bool, err error) {
	var lane string
	var since, ahead, priority int64
	err = s.read(ctx, "the place of the run could not be read", func(q queries) (err error) {
		ok, err = first(ctx, q, s.texts.of(readPlace), []any{key(executionID), int64(history.MaxCounted)}, &lane, &priority, &p.Tenant, &since, &ahead)
		return err
	})
	if err != nil || !ok {
		return history.Place{}, false, err
	}
	p.Lane, p.Tenant, p.Priority, p.Since, p.Ahead = history.ParseLane(unescaped(lane)), unescaped(p.Tenant), int(priority), timeOf(since), int(ahead)
	return p, true, nil
}

const readyIn = `SELECT r.execution_id FROM @ready AS q JOIN @runs AS r USING (run) WHERE q.lane = $1::text ORDER BY q.since, q.run LIMIT $2::bigint`

// ReadyIn returns the ready runs in a lane; see history.Queue.
func (s *Store) ReadyIn(ctx context.Context, l history.Lane, limit int) (ids []string, err error) {
	err = s.read(ctx, "the ready runs could not be read", func(q queries) (err error) {
		ids, err = column(ctx, q, s.texts.of(readyIn), escaped(l.String()), limitOf(limit))
		return err
	})
	return ids, err
}
