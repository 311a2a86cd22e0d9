package historysql_test

import (
	"database/sql"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historysql"
	"github.com/workflows-engine/workflows-engine/history/historytest"
)

// The statements of version 4, which knows leases of runs only, as it has them prepared when the file gets a new version.
const (
	acquireLease4 = `INSERT INTO leases (execution_id, owner, expires) VALUES (?1, ?2, ?3)
ON CONFLICT (execution_id) DO UPDATE SET owner = excluded.owner, expires = excluded.expires
WHERE owner = excluded.owner OR expires <= ?4`
	releaseLease4   = `DELETE FROM leases WHERE execution_id = ?1 AND owner = ?2`
	unleasedDriven4 = `SELECT e.execution_id, e.projection, (SELECT max(seq) FROM history WHERE execution_id = e.execution_id) FROM executions AS e INDEXED BY executions_driven
LEFT JOIN leases AS l ON l.execution_id = e.execution_id
WHERE e.driven = 1 AND (l.expires IS NULL OR l.expires <= ?1) ORDER BY COALESCE(l.expires, e.updated_at), e.execution_id`
	moveExecution4 = `UPDATE executions SET seq = ?3, phase = ?4, listed_at = ?5, updated_at = ?6, projection = ?8, bytes = bytes + ?11,
    position_seq = COALESCE(?9, position_seq), position = CASE WHEN ?9 IS NULL THEN position ELSE ?10 END
WHERE execution_id = ?1 AND seq = ?2 AND driven = ?7`
	putExecution4 = `INSERT INTO executions (execution_id, seq, phase, definition_name, created_at, updated_at, listed_at, driven, projection, problem, position_seq, position, bytes)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, COALESCE(?11, 0), ?12, ?13)
ON CONFLICT (execution_id) DO UPDATE SET
    seq = excluded.seq, phase = excluded.phase, definition_name = excluded.definition_name, created_at = excluded.created_at,
    updated_at = excluded.updated_at, listed_at = excluded.listed_at, driven = excluded.driven, projection = excluded.projection,
    problem = excluded.problem, bytes = excluded.bytes, position_seq = COALESCE(?11, position_seq), position = CASE WHEN ?11 IS NULL THEN position ELSE ?12 END
WHERE executions.problem IS NOT 'deleted'`
)

// older is a process of version 4 that has a file open.
type older struct {
	t                                            *testing.T
	acquire, release, unleased, move, insertions *sql.Stmt
}

// openOlder makes a file of version 4, opens it as a process of that version does, and then opens it as a store.
func openOlder(t *testing.T) (*older, *historysql.Store) {
	t.Helper()
	path := load(t, "version4.sql")
	conn := plain(t, path)
	if _, err := conn.ExecContext(t.Context(), "PRAGMA busy_timeout = 10000"); err != nil {
		t.Fatal(err)
	}
	prepare := func(text string) *sql.Stmt {
		t.Helper()
		stmt, err := conn.PrepareContext(t.Context(), text)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = stmt.Close() })
		return stmt
	}
	o := &older{t, prepare(acquireLease4), prepare(releaseLease4), prepare(unleasedDriven4), prepare(moveExecution4), prepare(putExecution4)}
	o.wantAcquired("v1-host", "old", time.Hour, true) // every statement has been used
	o.orphans()
	return o, openFile(t, path, historysql.Options{})
}

func (o *older) wantAcquired(id, owner string, ttl time.Duration, want bool) {
	o.t.Helper()
	now := time.Now()
	r, err := o.acquire.Exec(id, owner, now.Add(ttl).UnixMilli(), now.UnixMilli())
	if err != nil {
		o.t.Fatal(err)
	}
	// AcquireLease of version 4 returns whether rows were changed; its Append fails with LEASE_HELD if none was.
	if n, err := r.RowsAffected(); n > 0 != want || err != nil {
		o.t.Errorf("the older version acquires the lease of %s for %s: %d rows, %v", id, owner, n, err)
	}
}

func (o *older) exec(stmt *sql.Stmt, args ...any) {
	o.t.Helper()
	r, err := stmt.Exec(args...)
	if err != nil {
		o.t.Fatal(err)
	}
	if n, err := r.RowsAffected(); n != 1 || err != nil {
		o.t.Errorf("%d rows, %v", n, err)
	}
}

func (o *older) orphans() (ids []string) {
	o.t.Helper()
	rows, err := o.unleased.Query(time.Now().UnixMilli())
	if err != nil {
		o.t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var id, projection string
		var head int64
		if err := rows.Scan(&id, &projection, &head); err != nil {
			o.t.Fatal(err)
		}
		ids = append(ids, id)
	}
	return ids
}

// TestALeaseOfAnOlderVersionIsRespected until it runs out.
func TestALeaseOfAnOlderVersionIsRespected(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	old, s := openOlder(t)
	renew(t, s, "new", time.Hour)
	x := historytest.NewTrace(t, "x")
	x.Append(s, historytest.Start("w", "in_process")...)
	old.wantAcquired("x", "old", time.Hour, true)
	for _, id := range []string{"v1-host", "x"} {
		if o := owner(t, s, id); o.Process != "old" || !o.Live() || o.Left > time.Hour {
			t.Errorf("the owner of %s is %+v", id, o)
		}
		claim(t, s, "new", false, id)
		claim(t, s, "old", false, id) // a process of this version that happens to have that name
	}
	for what, disown := range map[string]bool{"appends": false, "gives up": true} {
		aside := *x
		b := aside.Batch("C ScheduleNode a")
		b.Owner, b.Disown = "new", disown
		if err := s.Append(ctx, b); !errors.Is(err, problem.LeaseHeld) {
			t.Errorf("new %s: %v", what, err)
		}
	}
	if ids, err := s.Unowned(ctx, 0); len(ids) > 0 || err != nil {
		t.Errorf("without an owner: %v, %v", ids, err)
	}
	x.Append(s, "C ScheduleNode a") // whoever owns it

	old.wantAcquired("x", "old", -time.Minute, true) // as a process leaves it that cannot go on
	if o := owner(t, s, "x"); o.Process != "old" || o.Live() || o.Left > -time.Minute {
		t.Errorf("the owner of x is %+v", o)
	}
	if ids, err := s.Unowned(ctx, 0); !slices.Equal(ids, []string{"x"}) || err != nil {
		t.Errorf("without an owner: %v, %v", ids, err)
	}
	claim(t, s, "new", true, "x")
	if o := owner(t, s, "x"); o.Process != "new" || !o.Live() {
		t.Errorf("the owner of x is %+v", o)
	}
	old.wantAcquired("x", "old", time.Hour, false)
}

// TestAnOlderVersionTakesNoOwnedRun while the owner has a lease, although it has the file open and knows of no owners.
func TestAnOlderVersionTakesNoOwnedRun(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	old, s := openOlder(t)
	renew(t, s, "new", time.Hour)
	x := historytest.NewTrace(t, "x")
	b := x.Batch(historytest.Start("w", "in_process")...)
	b.Owner = "new"
	if err := s.Append(ctx, b); err != nil {
		t.Fatal(err)
	}
	if ids := old.orphans(); !slices.Equal(ids, []string{"x"}) {
		t.Errorf("the older version sees the orphans %v", ids)
	}
	old.wantAcquired("x", "old", time.Hour, false)
	old.wantAcquired("x", "old", -time.Hour, false) // nor does it leave a note
	old.wantAcquired("y", "old", time.Hour, true)   // others are not affected
	b = x.Batch("C ScheduleNode a")
	b.Owner = "new"
	if err := s.Append(ctx, b); err != nil {
		t.Errorf("the owner appends: %v", err)
	}
	// Without a lease the owner loses the run to the older version as to any other, and for good.
	if err := s.Release(ctx, "new"); err != nil {
		t.Fatal(err)
	}
	old.wantAcquired("x", "old", -time.Hour, true)
	if o := owner(t, s, "x"); o.Process != "new" {
		t.Errorf("a lease that has run out makes %+v the owner", o)
	}
	old.wantAcquired("x", "old", time.Hour, true)
	renew(t, s, "new", time.Hour)
	if o := owner(t, s, "x"); o.Process != "old" || !o.Live() {
		t.Errorf("the owner of x is %+v", o)
	}
	aside := *x
	b = aside.Batch("C ScheduleNode b")
	b.Owner = "new"
	if err := s.Append(ctx, b); !errors.Is(err, problem.LeaseHeld) {
		t.Errorf("the former owner appends: %v", err)
	}
	if owned, err := s.Owned(ctx, "new"); len(owned) > 0 || err != nil {
		t.Errorf("the former owner owns %v, %v", owned, err)
	}
	old.exec(old.release, "x", "old")
	claim(t, s, "new", true, "x")
	// The older version ends the run, as a host that cancels it; it does not know that it has an owner.
	end := x.Batch("E ExecutionCancelled")
	e := end.Execution
	old.exec(old.insertions, "x", e.Seq-1, "running", "w", 0, 0, 0, 1, string(e.AppendText(nil)), nil, nil, nil, 0)
	old.exec(old.move, "x", e.Seq-1, e.Seq, "cancelled", 0, 0, 1, string(e.AppendText(nil)), 0, nil, 0)
	if o := owner(t, s, "x"); o != (history.Owner{}) {
		t.Errorf("a run that has ended is owned by %+v", o)
	}
	if err := s.Release(ctx, "new"); err != nil {
		t.Fatal(err)
	}
	if o, err := s.Overview(ctx, "new"); len(o.Departed) > 0 || err != nil {
		t.Errorf("%+v, %v", o, err)
	}
	if err := s.Disown(ctx, "new", "x"); err != nil {
		t.Fatal(err)
	}
	if owned, err := s.Owned(ctx, "new"); len(owned) > 0 || err != nil {
		t.Errorf("a process owns the run that has ended: %v, %v", owned, err)
	}
}
