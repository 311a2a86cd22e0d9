package historysql_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historysql"
	"github.com/workflows-engine/workflows-engine/history/historytest"
)

var stepA = history.Ready{Lane: history.Lane{Queue: "default", Needs: "step:a"}, Priority: 1, Tenant: "t"}

// beginReady begins runs that are ready.
func beginReady(t testing.TB, s *historysql.Store, ids ...string) {
	t.Helper()
	for _, id := range ids {
		b := historytest.NewTrace(t, id).Batch(historytest.Start("w", "in_process")...)
		b.Ready = &stepA
		if err := s.Append(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
}

// wantReady compares the ready runs of a file, in the order in which they became ready.
func wantReady(t *testing.T, s *historysql.Store, want string) {
	t.Helper()
	if got, err := s.Text("SELECT COALESCE(group_concat(execution_id, ' '), '') FROM (SELECT execution_id FROM ready LEFT JOIN executions USING (run) ORDER BY since, run)"); got != want || err != nil {
		t.Errorf("ready are %q, %v, want %q", got, err, want)
	}
}

func claimReady(t testing.TB, s *historysql.Store, process string, limit int) []string {
	t.Helper()
	ids, err := s.ClaimReady(t.Context(), history.ReadyClaim{Process: process, Serves: func(history.Lane) bool { return true }, Limit: limit})
	if err != nil {
		t.Fatal(err)
	}
	return ids
}

// TestReadyClaimersOfSeveralStores: handles of one file share the ready runs like processes do.
func TestReadyClaimersOfSeveralStores(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "runs.db")
	historytest.ContendForReady(t, 6, 60,
		openFile(t, path, historysql.Options{}), openFile(t, path, historysql.Options{}), openFile(t, path, historysql.Options{}))
}

// TestWatchingReadyRunsOfAnotherProcess: a watch wakes when another store of the file makes a run ready.
func TestWatchingReadyRunsOfAnotherProcess(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "runs.db")
	historytest.WatchReady(t, openFile(t, path, historysql.Options{}), openFile(t, path, historysql.Options{}))
}

// TestReadyRunsWithoutAServedLane: a process claims nothing, and does not wait for the file's lock, while no lane that it serves has runs.
func TestReadyRunsWithoutAServedLane(t *testing.T) {
	t.Parallel()
	s := openFile(t, filepath.Join(t.TempDir(), "runs.db"), historysql.Options{})
	beginReady(t, s, "x")
	defer s.Hold()()
	ids, err := s.ClaimReady(t.Context(), history.ReadyClaim{Process: "p", Serves: func(history.Lane) bool { return false }, Limit: 9})
	if len(ids) > 0 || err != nil {
		t.Errorf("claimed %v, %v", ids, err)
	}
}

// TestReadyRunsOfAReadOnlyStore: a store that only reads tells of ready runs, and changes none.
func TestReadyRunsOfAReadOnlyStore(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	path := filepath.Join(t.TempDir(), "runs.db")
	s := openFile(t, path, historysql.Options{})
	renew(t, s, "p", time.Hour)
	beginReady(t, s, "x", "y")
	if err := s.Describe(ctx, "p", history.About{Work: "all"}); err != nil {
		t.Fatal(err)
	}
	read := openFile(t, path, historysql.Options{ReadOnly: true})
	if lanes, err := read.Lanes(ctx); len(lanes) != 1 || lanes[0].Lane != stepA.Lane || lanes[0].Runs != 2 || err != nil {
		t.Errorf("lanes %+v, %v", lanes, err)
	}
	if p, ok, err := read.Place(ctx, "y"); !ok || p.Ahead != 1 || p.Ready != stepA || err != nil {
		t.Errorf("place %+v, %t, %v", p, ok, err)
	}
	if live, err := read.Processes(ctx); len(live) != 1 || live[0].Work != "all" || err != nil {
		t.Errorf("processes %+v, %v", live, err)
	}
	none := history.ReadyClaim{Process: "p", Serves: func(history.Lane) bool { return false }, Limit: 1}
	_, unclaimed := read.ClaimReady(ctx, none)
	for name, err := range map[string]error{
		"ClaimReady": unclaimed, "Offer": read.Offer(ctx, "p", history.Offer{ExecutionID: "x", Ready: stepA}), "Describe": read.Describe(ctx, "p", history.About{}),
	} {
		if !errors.Is(err, problem.StoreReadOnly) {
			t.Errorf("%s: %v", name, err)
		}
	}
	wantReady(t, s, "x y")
}

// TestOlderVersionsTakeReadyRuns: a process of an older version that has the file open knows of no ready runs. The runs that it claims, ends
// or deletes are not ready any more.
func TestOlderVersionsTakeReadyRuns(t *testing.T) {
	t.Parallel()
	old, s := openOlder(t)
	renew(t, s, "p", time.Hour)
	beginReady(t, s, "a", "b", "c", "d", "e", "f")
	for _, version14 := range []string{
		"UPDATE executions SET owner = 'v14', disowned = NULL WHERE execution_id = 'a'",
		"UPDATE executions SET seq = 6, phase = 'cancelled', listed_at = 0, driven = 0 WHERE execution_id = 'b'",
		"UPDATE executions SET phase = 'deleted', problem = 'deleted', driven = 0, owner = NULL WHERE execution_id = 'c'",
		"DELETE FROM executions WHERE execution_id = 'd'",
		"INSERT INTO processes (process, expires) VALUES ('v14', 9e15) ON CONFLICT (process) DO UPDATE SET expires = excluded.expires",
	} {
		if err := s.Script(version14); err != nil {
			t.Fatal(err)
		}
	}
	wantReady(t, s, "e f")
	old.wantAcquired("e", "old", time.Hour, true) // knows no owners either
	if ids := claimReady(t, s, "p", 9); !slices.Equal(ids, []string{"f"}) {
		t.Errorf("claimed %v", ids)
	}
	wantReady(t, s, "")
	old.exec(old.release, "e", "old")
	if ids, err := s.Unowned(t.Context(), 0); !slices.Equal(ids, []string{"e"}) || err != nil {
		t.Errorf("without an owner: %v, %v", ids, err)
	}
}

// TestReadyRunsAreVerified: a run that is ready is in order, and a repair does not touch it.
func TestReadyRunsAreVerified(t *testing.T) {
	t.Parallel()
	s := openFile(t, filepath.Join(t.TempDir(), "runs.db"), historysql.Options{})
	beginReady(t, s, "x", "y")
	historytest.NewTrace(t, "unowned").Append(s, historytest.Start("w", "in_process")...)
	x := historytest.NewTrace(t, "x")
	x.Execution = history.Project("x", mustRead(t, s, "x"))
	x.Append(s, "C ScheduleNode a")
	if found := verified(t, s, "", true); len(found) > 0 {
		t.Errorf("found %v", found)
	}
	wantReady(t, s, "x y")
	// A projection that is made again does not make the run unowned.
	if err := s.Script("UPDATE executions SET projection = '{}' WHERE execution_id = 'y'"); err != nil {
		t.Fatal(err)
	}
	if found := verified(t, s, "", true); !slices.Equal(found, []string{"y 0 PROJECTION_DIFFERS+"}) {
		t.Errorf("found %v", found)
	}
	if ids, err := s.Unowned(t.Context(), 0); !slices.Equal(ids, []string{"unowned"}) || err != nil {
		t.Errorf("without an owner: %v, %v", ids, err)
	}
	if ids := claimReady(t, s, "p", 9); !slices.Equal(ids, []string{"x", "y"}) {
		t.Errorf("claimed %v", ids)
	}
}

// TestALostReadyRunIsUnowned: a run whose place among the ready runs is lost is found as one without an owner.
func TestALostReadyRunIsUnowned(t *testing.T) {
	t.Parallel()
	s := openFile(t, filepath.Join(t.TempDir(), "runs.db"), historysql.Options{})
	beginReady(t, s, "x", "y")
	if err := s.Script("DELETE FROM ready WHERE run = 1"); err != nil {
		t.Fatal(err)
	}
	if ids, err := s.Unowned(t.Context(), 0); !slices.Equal(ids, []string{"x"}) || err != nil {
		t.Errorf("without an owner: %v, %v", ids, err)
	}
}

// TestManyReadyRuns: counts of ready runs are bounded.
func TestManyReadyRuns(t *testing.T) {
	t.Parallel()
	s := openFile(t, filepath.Join(t.TempDir(), "runs.db"), historysql.Options{Synchronous: historysql.Normal})
	const runs = history.MaxCounted + 3
	fillReady(t, s, runs, 1)
	lanes, err := s.Lanes(t.Context())
	if len(lanes) != 1 || lanes[0].Runs != history.MaxCounted || err != nil {
		t.Errorf("lanes %+v, %v", lanes, err)
	}
	for i, want := range map[int]int{1: 0, 2: 1, 100: 99, history.MaxCounted: history.MaxCounted - 1, runs: history.MaxCounted} {
		if p, ok, err := s.Place(t.Context(), readyID(i)); !ok || p.Ahead != want || err != nil {
			t.Errorf("run %d: %+v, %t, %v, want %d ahead", i, p, ok, err, want)
		}
	}
}

// TestAppendsRunNoTriggers: the statement of most appends runs no trigger, so that ready runs and labels cost it nothing.
func TestAppendsRunNoTriggers(t *testing.T) {
	t.Parallel()
	s := openFile(t, filepath.Join(t.TempDir(), "runs.db"), historysql.Options{})
	conn := plain(t, file(t, s))
	for text, want := range map[string]bool{historysql.AdvanceExecution: false, historysql.ClaimExecution: true} {
		rows, err := conn.QueryContext(t.Context(), "EXPLAIN "+text, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12)
		if err != nil {
			t.Fatal(err)
		}
		runs := false
		for rows.Next() {
			var opcode string
			var other any
			if err := rows.Scan(&other, &opcode, &other, &other, &other, &other, &other, &other); err != nil {
				t.Fatal(err)
			}
			runs = runs || opcode == "Program"
		}
		if err := errors.Join(rows.Err(), rows.Close()); runs != want || err != nil {
			t.Errorf("runs triggers: %t, %v, in\n%s", runs, err, text)
		}
	}
}

// file returns the path of a store's file.
func file(t testing.TB, s *historysql.Store) string {
	t.Helper()
	path, err := s.Text("SELECT file FROM pragma_database_list")
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// BenchmarkReady measures, with 200,000 ready runs in 50 lanes of which the process serves 3: a claim of ten and their offer, each a commit
// of its own; the lanes; the place of a run; runs without an owner, of which there are none; and a claim without a ready run in a served lane.
func BenchmarkReady(b *testing.B) {
	const runs, lanes, few = 200_000, 50, 10
	s := openFile(b, filepath.Join(b.TempDir(), "runs.db"), historysql.Options{Synchronous: historysql.Normal})
	renew(b, s, "p", time.Hour)
	each := float64(fillReady(b, s, runs, lanes)) / runs
	served := history.ReadyClaim{Process: "p", Limit: few, Serves: func(l history.Lane) bool {
		return l.Needs == "step:07" || l.Needs == "step:23" || l.Needs == "step:41"
	}}
	for _, oldest := range []bool{false, true} {
		served.Oldest = oldest
		b.Run(fmt.Sprintf("claim/oldest=%t", oldest), func(b *testing.B) {
			var claimed, offered time.Duration
			for b.Loop() {
				begun := time.Now()
				ids, err := s.ClaimReady(b.Context(), served)
				claimed += time.Since(begun)
				if err != nil || len(ids) != few {
					b.Fatal(len(ids), err)
				}
				offers := make([]history.Offer, few)
				for i := range ids {
					offers[i] = history.Offer{ExecutionID: ids[i], Ready: history.Ready{Lane: history.Lane{Queue: "default", Needs: "step:07"}, Tenant: fmt.Sprint("customer-", i)}}
				}
				begun = time.Now()
				if err := s.Offer(b.Context(), "p", offers...); err != nil {
					b.Fatal(err)
				}
				offered += time.Since(begun)
			}
			b.ReportMetric(float64(claimed.Microseconds())/float64(b.N), "claim-us")
			b.ReportMetric(float64(offered.Microseconds())/float64(b.N), "offer-us")
			b.ReportMetric(each, "bytes/run")
			b.ReportMetric(0, "ns/op")
		})
	}
	none := history.ReadyClaim{Process: "p", Limit: few, Serves: func(history.Lane) bool { return false }}
	for name, call := range map[string]func() error{
		"claim/idle": func() error { _, err := s.ClaimReady(b.Context(), none); return err },
		"lanes":      func() error { _, err := s.Lanes(b.Context()); return err },
		"place":      func() error { _, _, err := s.Place(b.Context(), readyID(runs/2)); return err },
		"unowned":    func() error { _, err := s.Unowned(b.Context(), 100); return err },
		"processes":  func() error { _, err := s.Processes(b.Context()); return err },
		"describe":   func() error { return s.Describe(b.Context(), "p", history.About{Started: time.Now()}) },
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := call(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	b.Run("claim/empty", func(b *testing.B) {
		s := openFile(b, filepath.Join(b.TempDir(), "runs.db"), historysql.Options{})
		b.ReportAllocs()
		for b.Loop() {
			if _, err := s.ClaimReady(b.Context(), served); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// fileBytes returns the size of a store's database, without its WAL.
func fileBytes(t testing.TB, s *historysql.Store) int64 {
	t.Helper()
	text, err := s.Text("SELECT page_count * page_size FROM pragma_page_count, pragma_page_size")
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// readyID returns the id of a run of fillReady; it is as long as the random ones.
func readyID(n int) string { return fmt.Sprintf("%08x-d9cb-469f-a165-%012d", n*2654435761%(1<<32), n) }

// fillReady makes runs with the numbers from 1, and makes them ready, spread over lanes and a thousand tenants. It returns the bytes that the
// ready rows take, without the runs.
func fillReady(t testing.TB, s *historysql.Store, runs, lanes int) (bytes int64) {
	t.Helper()
	for _, text := range []string{`WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < %[1]d)
INSERT INTO executions (run, execution_id, seq, phase, definition_name, created_at, updated_at, listed_at, driven, projection)
SELECT n, printf('%%08x-d9cb-469f-a165-%%012d', n * 2654435761 %% 4294967296, n), 1, 'running', 'w', 0, 0, 0, 1, '{"seq":1,"mode":"in_process"}' FROM n -- %[2]d`,
		`INSERT INTO ready (run, lane, priority, turn, tenant, since)
SELECT run, printf('default/step:%%02d', run %% %[2]d), 0, run, printf('customer-%%d', run %% 1000), 1795222800000 + run FROM executions WHERE run <= %[1]d`,
	} {
		before := fileBytes(t, s)
		if err := s.Script(fmt.Sprintf(text, runs, lanes)); err != nil {
			t.Fatal(err)
		}
		bytes = fileBytes(t, s) - before
	}
	return bytes
}
