package historysql_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
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
		if p, ok, err := s.Place(t.Context(), fmt.Sprintf("%08x-d9cb-469f-a165-%012d", i, i)); !ok || p.Ahead != want || err != nil {
			t.Errorf("run %d: %+v, %t, %v, want %d ahead", i, p, ok, err, want)
		}
	}
}

// fillReady makes runs with the numbers from 1 ready, spread over lanes, in one transaction.
func fillReady(t testing.TB, s *historysql.Store, runs, lanes int) {
	t.Helper()
	const text = `WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < %[1]d)
INSERT INTO executions (run, execution_id, seq, phase, definition_name, created_at, updated_at, listed_at, driven, projection)
SELECT n, printf('%%08x-d9cb-469f-a165-%%012d', n, n), 1, 'running', 'w', 0, 0, 0, 1, '{"seq":1,"mode":"in_process"}' FROM n;
INSERT INTO ready (run, lane, priority, turn, tenant, since)
SELECT run, printf('default/step:%%02d', run %% %[2]d), 0, run, printf('customer-%%d', run %% 1000), 1795222800000 + run FROM executions`
	if err := s.Script(fmt.Sprintf(text, runs, lanes)); err != nil {
		t.Fatal(err)
	}
}
