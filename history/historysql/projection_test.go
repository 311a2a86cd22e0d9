package historysql_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historysql"
	"github.com/workflows-engine/workflows-engine/history/historytest"
)

// wantPhases compares the list with the phases of runs.
func wantPhases(t *testing.T, s history.Store, want map[string]history.Phase) {
	t.Helper()
	page, err := s.List(t.Context(), history.ListQuery{Limit: 100})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]history.Phase{}
	for _, e := range page.Executions {
		got[e.ID] = e.Phase
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("listed %v, want %v", got, want)
	}
}

func mustRead(t testing.TB, s history.Store, id string) []history.Record {
	t.Helper()
	rs, err := s.Read(t.Context(), id, 1, 0)
	if err != nil {
		t.Fatal(err)
	}
	return rs
}

// TestProjectionIsRebuilt: a projection that is missing, damaged or ahead of its run is made anew.
func TestProjectionIsRebuilt(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "runs.db")
	s := openFile(t, path, historysql.Options{})
	r := &reference{t, plain(t, path)}
	for i, damage := range []string{
		"DELETE FROM executions WHERE execution_id = ?",
		"UPDATE executions SET projection = '{' WHERE execution_id = ?",
		"UPDATE executions SET projection = '{}' WHERE execution_id = ?",
		"UPDATE executions SET seq = seq + 5 WHERE execution_id = ?",
		"UPDATE executions SET seq = 2, projection = '{\"seq\":2}' WHERE execution_id = ?",
		"UPDATE executions SET problem = 'HISTORY_CORRUPT: once' WHERE execution_id = ?",
		"DELETE FROM history WHERE seq > 3 AND execution_id = ?",
	} {
		id := fmt.Sprintf("x%d", i)
		x := historytest.NewTrace(t, id)
		x.Append(s, historytest.Start("w", "host_mediated")...)
		x.Append(s, historytest.Node("begin", "t")...)
		r.exec(damage, id)
		e, err := s.Execution(t.Context(), id)
		if i == 4 {
			// A projection that is behind counts; only what follows is folded.
			if err != nil || e.Seq != 11 {
				t.Errorf("%s: got %+v, %v", damage, e, err)
			}
			continue
		}
		if want := projected(t, s, id); err != nil || !reflect.DeepEqual(e, want) {
			t.Errorf("%s: got %+v, %v\nwant %+v", damage, e, err, want)
		}
		x.Execution = e
		x.Append(s, "C ScheduleNode z")
		if e, err := s.Execution(t.Context(), id); err != nil || !reflect.DeepEqual(e, projected(t, s, id)) {
			t.Errorf("%s, then appended: got %+v, %v", damage, e, err)
		}
	}
}

// TestUnreadableRuns: a run with rows that cannot be read is rejected with the right code, and is listed with the fields that
// can be read. The other runs do not suffer.
func TestUnreadableRuns(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "runs.db")
	s := openFile(t, path, historysql.Options{})
	r := &reference{t, plain(t, path)}
	for _, id := range []string{"good", "json", "newer", "gap", "kind", "time"} {
		historytest.NewTrace(t, id).Append(s, `E ExecutionStarted {"workflowName":"w"}`, "C ScheduleNode a", `E SignalWaitStarted a {"signalName":"s"}`)
	}
	r.exec("UPDATE history SET payload_json = '{\"executionId\":' WHERE execution_id = 'json' AND seq = 2")
	r.exec("UPDATE history SET record_schema_version = 2 WHERE execution_id = 'newer' AND seq = 3")
	r.exec("DELETE FROM history WHERE execution_id = 'gap' AND seq = 2")
	r.exec("UPDATE history SET kind = 'thing' WHERE execution_id = 'kind' AND seq = 2")
	r.exec("UPDATE history SET created_at = 'yesterday' WHERE execution_id = 'time' AND seq = 1")
	r.exec("UPDATE executions SET projection = '{}'")
	for round := range 2 { // the second time the problem is known
		for id, want := range map[string]problem.Code{
			"json": problem.HistoryCorrupt, "newer": problem.HistoryNewer, "gap": problem.HistoryCorrupt, "kind": problem.HistoryCorrupt,
			"time": problem.HistoryCorrupt,
		} {
			if _, err := s.Execution(t.Context(), id); !errors.Is(err, want) {
				t.Errorf("round %d, %s: got %v, want %s", round, id, err, want)
			}
			if _, err := s.Read(t.Context(), id, 1, 0); !errors.Is(err, want) {
				t.Errorf("round %d, read %s: got %v, want %s", round, id, err, want)
			}
		}
		if e, err := s.Execution(t.Context(), "good"); err != nil || e.Phase != history.PhaseAwaitingSignal {
			t.Errorf("round %d: got %+v, %v", round, e, err)
		}
		page, err := s.List(t.Context(), history.ListQuery{})
		if err != nil || len(page.Executions) != 6 {
			t.Fatalf("round %d: listed %d runs, %v", round, len(page.Executions), err)
		}
	}
	r.exec("UPDATE history SET payload_json = '{}' WHERE execution_id = 'json' AND seq = 2")
	if e, err := s.Execution(t.Context(), "json"); err != nil || e.Phase != history.PhaseAwaitingSignal {
		t.Errorf("repaired: %+v, %v", e, err)
	}
}

// TestReadOnly: a store that may not write reads what others write, in the same pages, and rejects what would write.
func TestReadOnly(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	path := filepath.Join(t.TempDir(), "runs.db")
	s := openFile(t, path, historysql.Options{})
	for i, id := range []string{"a", "b", "c", "d"} {
		x := historytest.NewTrace(t, id)
		x.Now = x.Now.Add(time.Duration(i) * time.Minute)
		x.Append(s, historytest.Start("w", "in_process")...)
		if id == "a" {
			x.Append(s, `E SignalWaitStarted s {"signalName":"s"}`)
		}
	}
	ro := openFile(t, path, historysql.Options{ReadOnly: true})
	historytest.NewTrace(t, "e").Append(s, "E ExecutionStarted", "C ScheduleNode a")
	wantPhases(t, ro, map[string]history.Phase{
		"a": history.PhaseAwaitingSignal, "b": history.PhaseRunning, "c": history.PhaseRunning, "d": history.PhaseRunning, "e": history.PhaseRunning,
	})
	var queries []history.ListQuery
	for limit := range 6 {
		queries = append(queries, history.ListQuery{Limit: limit}, history.ListQuery{Limit: limit, Phase: history.PhaseRunning},
			history.ListQuery{Limit: limit, DefinitionName: "w"},
			history.ListQuery{Limit: limit, Cursor: history.Cursor{UpdatedAt: historytest.Begin.Add(time.Minute), ExecutionID: "a"}.String()})
	}
	list := func(s history.Store) (pages []string) {
		for _, q := range queries {
			page, err := s.List(ctx, q)
			if err != nil {
				t.Fatal(err)
			}
			text := fmt.Sprintf("%+v: next %q", q, page.NextCursor)
			for _, e := range page.Executions {
				text += " " + e.ID + "/" + string(e.Phase)
			}
			pages = append(pages, text)
		}
		return pages
	}
	if reading, writing := list(ro), list(s); !slices.Equal(reading, writing) {
		t.Errorf("reading only gives\n%s\nwriting too\n%s", strings.Join(reading, "\n"), strings.Join(writing, "\n"))
	}
	if e, err := ro.Execution(ctx, "a"); err != nil || e.SignalName != "s" {
		t.Errorf("got %+v, %v", e, err)
	}
	if err := ro.Append(ctx, historytest.NewTrace(t, "z").Batch("E ExecutionStarted")); !errors.Is(err, problem.StoreReadOnly) {
		t.Errorf("append: got %v", err)
	}
	if err := ro.Renew(ctx, "o", time.Minute); !errors.Is(err, problem.StoreReadOnly) {
		t.Errorf("lease: got %v", err)
	}
	if _, err := historysql.Open(ctx, filepath.Join(t.TempDir(), "none.db"), historysql.Options{ReadOnly: true}); !errors.Is(err, problem.StoreUnavailable) {
		t.Errorf("missing file: got %v", err)
	}
}

// projected folds a run, and counts the bytes of its records.
func projected(t *testing.T, s history.Store, id string) history.Execution {
	t.Helper()
	records := mustRead(t, s, id)
	e := history.Project(id, records)
	for i := range records {
		e.Bytes += int64(len(records[i].Raw))
	}
	return e
}
