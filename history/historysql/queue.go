package historysql

import (
	"context"
	"database/sql/driver"
	"maps"
	"time"

	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

var (
	_ history.Queue  = (*Store)(nil)
	_ history.Roster = (*Store)(nil)
)

const (
	putReady = `INSERT INTO ready (run, lane, priority, turn, tenant, since)
SELECT e.run, ?2, ?3, max(
        COALESCE((SELECT max(turn) + 1 FROM ready WHERE tenant = ?4 AND run <> e.run), 0),
        COALESCE((SELECT min(turn) FROM ready WHERE lane = ?2 AND priority = ?3 AND run <> e.run), 0)), ?4, ?5
FROM executions AS e WHERE execution_id = ?1 AND owner IS NULL AND phase NOT IN ('completed', 'failed', 'cancelled', 'deleted')
ON CONFLICT (run) DO UPDATE SET lane = excluded.lane, priority = excluded.priority, turn = excluded.turn, tenant = excluded.tenant
WHERE lane <> excluded.lane OR priority <> excluded.priority`
	giveAway = `UPDATE executions SET owner = NULL, disowned = ?3
WHERE execution_id = ?1 AND owner = ?2 AND phase NOT IN ('completed', 'failed', 'cancelled', 'deleted')`
)

// makeReady makes a run ready if it is open and has no owner. A ready run moves only if its lane or priority changes.
func (s *Store) makeReady(c *conn, id string, r *history.Ready) error {
	_, err := c.exec(putReady, id, r.Lane.String(), int64(r.Priority), r.Tenant, s.clock.Now().UnixMilli())
	return err
}

// Offer makes runs ready that a process owns; see history.Queue.
func (s *Store) Offer(ctx context.Context, process string, runs ...history.Offer) error {
	const doing = "the runs were not offered"
	for i := range runs {
		if err := runs[i].Ready.Check(); err != nil {
			return failure(doing, err)
		}
	}
	return s.share(ctx, doing, 0, func(c *conn) error {
		now := s.now()
		for i := range runs {
			n, err := c.exec(giveAway, runs[i].ExecutionID, process, now)
			if err == nil && n > 0 {
				err = s.makeReady(c, runs[i].ExecutionID, &runs[i].Ready)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// The lanes are few, and their runs many: each step of the recursion finds the next lane in the index.
const (
	withLanes = `WITH RECURSIVE lanes (lane) AS (
    SELECT min(lane) FROM ready
    UNION ALL SELECT (SELECT min(lane) FROM ready WHERE lane > lanes.lane) FROM lanes WHERE lane IS NOT NULL
)
SELECT lane`
	readyLanes = withLanes + ` FROM lanes WHERE lane IS NOT NULL`
	useOfLanes = withLanes + `, (SELECT count(*) FROM (SELECT 1 FROM ready WHERE lane = lanes.lane LIMIT ?1)), (SELECT min(since) FROM ready WHERE lane = lanes.lane)
FROM lanes WHERE lane IS NOT NULL`

	// The first runs of each lane are found in its index; only these are sorted. A row without a run is found too.
	firstReady = `SELECT r.run, COALESCE(e.execution_id, ''), r.lane FROM json_each(?1) AS l
CROSS JOIN ready AS r ON r.run IN (SELECT run FROM ready WHERE lane = l.value ORDER BY priority DESC, turn, run LIMIT ?2)
LEFT JOIN executions AS e ON e.run = r.run
ORDER BY r.priority DESC, r.turn, r.run LIMIT ?2`
	oldestReady = `SELECT r.run, COALESCE(e.execution_id, ''), r.lane FROM json_each(?1) AS l
CROSS JOIN ready AS r ON r.run IN (SELECT run FROM ready WHERE lane = l.value ORDER BY since, run LIMIT ?2)
LEFT JOIN executions AS e ON e.run = r.run
ORDER BY r.since, r.run LIMIT ?2`
	dropReady = `DELETE FROM ready WHERE run = ?1`
)

// ClaimReady makes a process the owner of ready runs; see history.Queue. It takes the file's write lock only if a run is ready in a lane that
// the process serves.
func (s *Store) ClaimReady(ctx context.Context, k history.ReadyClaim) (claimed []string, err error) {
	const doing = "the ready runs were not claimed"
	if err := k.Check(); err != nil {
		return nil, failure(doing, err)
	}
	if s.options.ReadOnly {
		return nil, failure(doing, errReadOnly)
	}
	lanes, err := column(reader{ctx, &s.readers}, readyLanes)
	if err != nil {
		return nil, failure(doing, err)
	}
	room := map[string]int{}
	for _, lane := range lanes {
		if n := k.In(history.ParseLane(lane)); n > 0 {
			room[lane] = n
		}
	}
	if len(room) == 0 {
		return nil, nil
	}
	err = s.share(ctx, doing, 0, func(c *conn) error {
		cl := claim{Store: s, c: c, process: k.Process, room: maps.Clone(room)} // the transaction may be a second attempt
		if k.Oldest {
			if _, err := cl.first(oldestReady, 1); err != nil {
				return err
			}
		}
		for more := true; more && len(cl.claimed) < k.Limit; {
			var err error
			if more, err = cl.first(firstReady, k.Limit-len(cl.claimed)); err != nil {
				return err
			}
		}
		claimed = cl.claimed
		return nil
	})
	if err != nil {
		return nil, err
	}
	return claimed, nil
}

// claim is a claim in its transaction.
type claim struct {
	*Store
	c       *conn
	process string
	room    map[string]int // the number of runs to claim, by lane; no entry for other lanes
	claimed []string
}

// first claims the first runs of a query, at most limit. It deletes rows of runs that cannot be claimed, which have no place among the ready
// runs. more is true if it has passed runs of a lane without room: further runs may follow.
func (cl *claim) first(text string, limit int) (more bool, err error) {
	if len(cl.room) == 0 {
		return false, nil
	}
	type row struct {
		run      int64
		id, lane string
	}
	var rows []row
	lanes := make([]any, 0, len(cl.room))
	for lane := range cl.room {
		lanes = append(lanes, lane)
	}
	err = cl.c.query(text, func(v []driver.Value) error {
		run, _ := v[0].(int64)
		rows = append(rows, row{run, textOf(v[1]), textOf(v[2])})
		return nil
	}, string(jsonvalue.Append(nil, lanes)), int64(limit))
	if err != nil {
		return false, err
	}
	now := cl.now()
	for _, r := range rows {
		if cl.room[r.lane] == 0 {
			more = true
			continue
		}
		n, err := cl.c.exec(claimExecution, r.id, cl.process, now)
		switch {
		case err != nil:
			return false, err
		case n > 0:
			cl.claimed = append(cl.claimed, r.id)
			if cl.room[r.lane]--; cl.room[r.lane] == 0 {
				delete(cl.room, r.lane)
			}
		default:
			if _, err = cl.c.exec(dropReady, r.run); err != nil {
				return false, err
			}
		}
	}
	return more, nil
}

// Lanes returns the lanes with ready runs; see history.Queue.
func (s *Store) Lanes(ctx context.Context) (lanes []history.LaneUse, err error) {
	err = reader{ctx, &s.readers}.query(useOfLanes, func(row []driver.Value) error {
		runs, _ := row[1].(int64)
		since, _ := row[2].(int64)
		lanes = append(lanes, history.LaneUse{Lane: history.ParseLane(textOf(row[0])), Runs: int(runs), Since: time.UnixMilli(since).UTC()})
		return nil
	}, int64(history.MaxCounted))
	return lanes, failure("the ready runs could not be read", err)
}

const readPlace = `SELECT lane, priority, tenant, since, (SELECT count(*) FROM (
    SELECT 1 FROM ready WHERE lane = r.lane AND priority > r.priority
    UNION ALL SELECT 1 FROM ready WHERE lane = r.lane AND priority = r.priority AND turn < r.turn
    UNION ALL SELECT 1 FROM ready WHERE lane = r.lane AND priority = r.priority AND turn = r.turn AND run < r.run
    LIMIT ?2))
FROM ready AS r WHERE run = (SELECT run FROM executions WHERE execution_id = ?1)`

// Place returns the place of a ready run; see history.Queue.
func (s *Store) Place(ctx context.Context, executionID string) (p history.Place, ok bool, err error) {
	var lane string
	var since int64
	ok, err = s.readers.row(ctx, readPlace, []any{executionID, history.MaxCounted}, &lane, &p.Priority, &p.Tenant, &since, &p.Ahead)
	if err != nil || !ok {
		return history.Place{}, false, failure("the place of the run could not be read", err)
	}
	p.Lane, p.Since = history.ParseLane(lane), time.UnixMilli(since).UTC()
	return p, true, nil
}

const readyIn = `SELECT execution_id FROM ready JOIN executions USING (run) WHERE lane = ?1 ORDER BY since, run LIMIT ?2`

// ReadyIn returns the ready runs in a lane; see history.Queue.
func (s *Store) ReadyIn(ctx context.Context, l history.Lane, limit int) ([]string, error) {
	if limit == 0 {
		limit = -1 // all
	}
	ids, err := column(reader{ctx, &s.readers}, readyIn, l.String(), int64(limit))
	return ids, failure("the ready runs could not be read", err)
}

const describeProcess = `UPDATE processes SET about = ?2 WHERE process = ?1 AND expires > ?3 AND about IS NOT ?2`

// Describe replaces the description of a process; see history.Roster.
func (s *Store) Describe(ctx context.Context, process string, a history.About) error {
	const doing = "the process was not described"
	text, err := a.AppendText(nil)
	if err != nil {
		return failure(doing, err)
	}
	return s.share(ctx, doing, 0, func(c *conn) error {
		_, err := c.exec(describeProcess, process, string(text), s.now())
		return err
	})
}

// WatchReady calls wake whenever runs may have become ready; see history.Queue. It is called for any commit while a run is ready.
func (s *Store) WatchReady(ctx context.Context, wake func()) error {
	return s.watch(ctx, "the ready runs could not be read", func(c *conn) error {
		found, err := c.one(anyReady)
		if found != nil {
			wake()
		}
		return err
	})
}

const anyReady = `SELECT 1 FROM ready LIMIT 1`
