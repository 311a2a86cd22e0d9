package historysql_test

import (
	"bufio"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
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

func owner(t *testing.T, s history.Store, id string) history.Owner {
	t.Helper()
	o, err := s.Owner(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func claim(t *testing.T, s history.Store, process string, want bool, id string) {
	t.Helper()
	claimed, err := s.Claim(t.Context(), process, id)
	if err != nil || slices.Contains(claimed, id) != want {
		t.Errorf("%s claims %s: got %v, %v", process, id, claimed, err)
	}
}

func renew(t *testing.T, s history.Store, process string, ttl time.Duration) {
	t.Helper()
	if err := s.Renew(t.Context(), process, ttl); err != nil {
		t.Fatal(err)
	}
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
	if departed, err := s.Departed(ctx); len(departed) > 0 || err != nil {
		t.Errorf("departed: %v, %v", departed, err)
	}
	if err := s.Disown(ctx, "new", "x"); err != nil {
		t.Fatal(err)
	}
	if owned, err := s.Owned(ctx, "new"); len(owned) > 0 || err != nil {
		t.Errorf("a process owns the run that has ended: %v, %v", owned, err)
	}
}

// TestAnotherEngineEndsAnOwnedRun: then nobody owns it any more, and until then the owner does.
func TestAnotherEngineEndsAnOwnedRun(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	path := filepath.Join(t.TempDir(), "runs.db")
	s := openFile(t, path, historysql.Options{})
	renew(t, s, "p", time.Hour)
	x := historytest.NewTrace(t, "x")
	b := x.Batch("E ExecutionStarted", "C ScheduleNode a")
	b.Owner = "p"
	if err := s.Append(ctx, b); err != nil {
		t.Fatal(err)
	}
	other := openReference(t, path)
	other.append("x", "E NodeScheduled a")
	x.Batch("E NodeScheduled a")
	// What the projection has not seen yet makes no difference to who may end the run.
	aside := *x
	end := aside.Batch("E ExecutionCancelled")
	end.Owner = "q"
	if err := s.Append(ctx, end); !errors.Is(err, problem.LeaseHeld) {
		t.Errorf("q ends a run of p: %v", err)
	}
	other.append("x", "E ExecutionCompleted")
	if _, err := s.Execution(ctx, "x"); err != nil {
		t.Fatal(err)
	}
	if owned, err := s.Owned(ctx, "p"); len(owned) > 0 || err != nil {
		t.Errorf("a process owns the run that has ended: %v, %v", owned, err)
	}
}

// TestProcessesThatAreGoneLeaveNoRows, as long as they own nothing.
func TestProcessesThatAreGoneLeaveNoRows(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	at := historytest.Begin
	s := openFile(t, filepath.Join(t.TempDir(), "runs.db"), historysql.Options{Now: func() time.Time { return at }})
	historytest.NewTrace(t, "x").Append(s, historytest.Start("w", "in_process")...)
	rows := func(want string) {
		t.Helper()
		if got, err := s.Text("SELECT group_concat(process) FROM (SELECT process FROM processes ORDER BY process)"); got != want || err != nil {
			t.Errorf("the rows of %q, %v; want those of %q", got, err, want)
		}
	}
	for _, process := range []string{"crashed", "owner", "released"} {
		renew(t, s, process, time.Minute)
	}
	claim(t, s, "owner", true, "x")
	if err := s.Release(ctx, "released"); err != nil {
		t.Fatal(err)
	}
	rows("crashed,owner")
	at = at.Add(time.Hour)
	renew(t, s, "another", time.Minute)
	rows("another,owner")
	claim(t, s, "another", true, "x")
	renew(t, s, "another", time.Minute)
	rows("another")
}

// TestClaimersOfSeveralStores: handles of one file claim like processes do.
func TestClaimersOfSeveralStores(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "runs.db")
	historytest.ContendForRuns(t, 6, 60,
		openFile(t, path, historysql.Options{}), openFile(t, path, historysql.Options{}), openFile(t, path, historysql.Options{}))
}

// claimerFile makes the test binary claim and disown the runs of this file until it is killed; see claimForever.
const claimerFile = "HISTORYSQL_TEST_CLAIMER"

const claimedRuns = 20

// claimForever says on stdout that it has claimed all runs, and that it has given them up again. Beside that it drives a
// run, so that claims share transactions with appends.
func claimForever(path string) {
	ctx := context.Background()
	check := func(err error) {
		if err != nil {
			panic(err)
		}
	}
	s, err := historysql.Open(ctx, path, historysql.Options{})
	check(err)
	check(s.Renew(ctx, "child", time.Hour))
	_, err = s.Claim(ctx, "child", "driven")
	check(err)
	e, err := s.Execution(ctx, "driven")
	check(err)
	go func() {
		for {
			r, err := historytest.ParseRecord("C ScheduleNode a")
			check(err)
			r.CreatedAt = historytest.Begin
			b := history.Batch{ExecutionID: "driven", ExpectedSeq: e.Seq, Records: []history.Record{r}, Owner: "child"}
			e.Apply(r)
			b.Execution = e
			check(s.Append(ctx, b))
		}
	}()
	for {
		claimed, err := s.Claim(ctx, "child", claimedIDs()...)
		check(err)
		fmt.Println("claimed", len(claimed))
		check(s.Disown(ctx, "child", claimedIDs()...))
		fmt.Println("disowned")
	}
}

func claimedIDs() (ids []string) {
	for i := range claimedRuns {
		ids = append(ids, fmt.Sprintf("run%d", i))
	}
	return ids
}

// TestAClaimerThatIsKilled owns all runs that it has claimed or none, and keeps them until its lease ends.
func TestAClaimerThatIsKilled(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("-short leaves out what starts processes")
	}
	ctx := t.Context()
	path := filepath.Join(t.TempDir(), "runs.db")
	s := openFile(t, path, historysql.Options{})
	for _, id := range append(claimedIDs(), "driven") {
		historytest.NewTrace(t, id).Append(s, historytest.Start("w", "in_process")...)
	}
	for round := range 5 {
		cmd := exec.CommandContext(ctx, os.Args[0])
		cmd.Env = append(os.Environ(), claimerFile+"="+path)
		cmd.Stderr = t.Output()
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		said := bufio.NewScanner(out)
		for n := 0; n < 3+round && said.Scan(); n++ {
			if text := said.Text(); text != fmt.Sprint("claimed ", claimedRuns) && text != "disowned" {
				t.Fatalf("the process said %q", text)
			}
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait() // which reports that it was killed
		owned, err := s.Owned(ctx, "child")
		delete(owned, "driven")
		if err != nil || len(owned) != 0 && len(owned) != claimedRuns {
			t.Fatalf("round %d: the process that was killed owns %d of %d runs, %v", round, len(owned), claimedRuns, err)
		}
		renew(t, s, "parent", time.Hour)
		claim(t, s, "parent", false, "driven")
		if err := s.Release(ctx, "child"); err != nil {
			t.Fatal(err)
		}
		if departed, err := s.Departed(ctx); !slices.Equal(departed, []string{"child"}) || err != nil {
			t.Errorf("departed: %v, %v", departed, err)
		}
		for _, id := range append(claimedIDs(), "driven") {
			claim(t, s, "parent", true, id)
		}
		if err := s.Disown(ctx, "parent", append(claimedIDs(), "driven")...); err != nil {
			t.Fatal(err)
		}
	}
}

// TestWatchingAnotherProcess: a watch hears of what another store appends, also after the newest rows were deleted.
func TestWatchingAnotherProcess(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "runs.db")
	here, there := openFile(t, path, historysql.Options{}), openFile(t, path, historysql.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	heard := make(chan string, 1000)
	ended := make(chan error, 1)
	go func() {
		ended <- here.Watch(ctx, func(id string, seq int64) {
			select {
			case heard <- fmt.Sprint(id, seq):
			default:
			}
		})
	}()
	x := historytest.NewTrace(t, "x")
	hear := func() {
		t.Helper()
		deadline := time.After(10 * time.Second)
		for {
			select {
			case got := <-heard:
				if got == fmt.Sprint("x", x.Execution.Seq) {
					return
				}
			case <-time.After(300 * time.Millisecond):
				x.Append(there, "C ScheduleNode a")
			case <-deadline:
				t.Fatal("nobody was told of x")
			}
		}
	}
	x.Append(there, "E ExecutionStarted")
	hear()
	historytest.NewTrace(t, "gone").Append(there, append(historytest.Start("w", "in_process"), historytest.End()...)...)
	page, err := there.Prune(ctx, history.PruneQuery{Phases: []history.Phase{history.PhaseCompleted}, Limit: 10})
	if err != nil || len(page.Trees) != 1 {
		t.Fatalf("pruned %v, %v", page.Trees, err)
	}
	time.Sleep(100 * time.Millisecond)
	x.Append(there, "C ScheduleNode b")
	hear()
	if err := there.Shrink(ctx); err != nil {
		t.Fatal(err)
	}
	x.Append(there, "C ScheduleNode c")
	hear()
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// BenchmarkOwners measures what is asked about 20,000 runs of one process whose lease has not run out, and a claim of 500.
func BenchmarkOwners(b *testing.B) {
	s := openFile(b, filepath.Join(b.TempDir(), "runs.db"), historysql.Options{Synchronous: historysql.Normal})
	ctx := b.Context()
	check := func(err error) {
		if err != nil {
			b.Fatal(err)
		}
	}
	check(s.Renew(ctx, "p", time.Hour))
	var ids []string
	for i := range 20_000 {
		id := fmt.Sprintf("%08x-d9cb-469f-a165-%012d", uint32(i)*2654435761, i)
		ids = append(ids, id)
		h := historytest.NewTrace(b, id).Batch(historytest.Start("w", "in_process")...)
		h.Owner, h.Position = "p", make([]byte, 600)
		check(s.Append(ctx, h))
	}
	for _, bench := range []struct {
		name string
		call func() error
	}{
		{"departed", func() error { _, err := s.Departed(ctx); return err }},
		{"unowned", func() error { _, err := s.Unowned(ctx, 100); return err }},
		{"owner", func() error { _, err := s.Owner(ctx, ids[7]); return err }},
		{"owned", func() error { _, err := s.Owned(ctx, "p"); return err }},
		{"renew", func() error { return s.Renew(ctx, "p", time.Hour) }},
		{"claim and disown 500", func() error {
			_, err := s.Claim(ctx, "p", ids[:500]...)
			return errors.Join(err, s.Disown(ctx, "p", ids[:500]...))
		}},
	} {
		b.Run(bench.name, func(b *testing.B) {
			for b.Loop() {
				check(bench.call())
			}
		})
	}
	claimed, err := s.Claim(ctx, "p", ids[:500]...)
	check(err)
	if len(claimed) != 500 {
		b.Fatal(len(claimed))
	}
	check(s.Release(ctx, "p"))
	b.Run("unowned, 100 of 20000", func(b *testing.B) {
		for b.Loop() {
			found, err := s.Unowned(ctx, 100)
			if check(err); len(found) != 100 {
				b.Fatal(len(found))
			}
		}
	})
}

// BenchmarkWatch measures a look of a watch at a file that has not changed, and at one with a node of six records more.
func BenchmarkWatch(b *testing.B) {
	path := filepath.Join(b.TempDir(), "runs.db")
	s := openFile(b, path, historysql.Options{Synchronous: historysql.Normal})
	x := historytest.NewTrace(b, "x")
	x.Append(s, historytest.Start("w", "in_process")...)
	look, end, err := s.Look(func(string, int64) {})
	if err != nil {
		b.Fatal(err)
	}
	defer end()
	b.Run("idle", func(b *testing.B) {
		for b.Loop() {
			if err := look(); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("changed", func(b *testing.B) {
		for b.Loop() {
			b.StopTimer()
			x.Append(s, historytest.Node("a", "b")...)
			b.StartTimer()
			if err := look(); err != nil {
				b.Fatal(err)
			}
		}
	})
}
