package historysql_test

import (
	"errors"
	"fmt"
	"os"
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

// TestReferenceText holds testdata/reference.sql against the traces it is made of.
func TestReferenceText(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "ref.db")
	r := openReference(t, path)
	runs := referenceRuns(t)
	var ids []string
	for id := range runs {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	for _, id := range ids {
		r.append(id, runs[id]...)
	}
	got := dump(t, path)
	golden := filepath.Join("testdata", "reference.sql")
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if want, err := os.ReadFile(golden); err != nil || string(want) != got {
		t.Errorf("the dump of a file of the reference differs from %s, %v:\n%s", golden, err, got)
	}
}

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

var referencePhases = map[string]history.Phase{
	"ref-linear": history.PhaseCompleted, "ref-signal": history.PhaseAwaitingSignal, "ref-lighthouse": history.PhaseInterrupted,
	"ref-delegate": history.PhaseAwaitingActivity, "ref-failed": history.PhaseFailed,
}

// TestReferenceFileIsTakenOver: a file of the reference engine, current or of the form before record versions, is
// opened, listed and continued.
func TestReferenceFileIsTakenOver(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"reference.sql", "reference_old.sql"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := load(t, name)
			s := openFile(t, path, historysql.Options{})
			wantPhases(t, s, referencePhases)
			for id, lines := range referenceRuns(t) {
				records, err := s.Read(t.Context(), id, 1, 0)
				if err != nil || len(records) != len(lines) {
					t.Fatalf("%s: read %d records, %v, want %d", id, len(records), err, len(lines))
				}
				e, err := s.Execution(t.Context(), id)
				if want := projected(t, s, id); err != nil || !reflect.DeepEqual(e, want) {
					t.Errorf("%s: got %+v, %v\nwant %+v", id, e, err, want)
				}
			}
			e, err := s.Execution(t.Context(), "ref-signal")
			if err != nil || e.SignalName != "approved" || e.DefinitionName != "conformance-signal-wait" {
				t.Fatalf("got %+v, %v", e, err)
			}
			x := historytest.NewTrace(t, "ref-signal")
			x.Execution, x.Now = e, x.Now.Add(time.Hour)
			x.Append(s, `C DeliverSignal await_approval {"signalName":"approved","payload":{}}`,
				`E SignalReceived await_approval {"signalName":"approved","payload":{}}`)
			if e, err = s.Execution(t.Context(), "ref-signal"); err != nil || e.Phase != history.PhaseRunning || e.Seq != 11 {
				t.Errorf("continued: %+v, %v", e, err)
			}
		})
	}
}

// TestReferenceAndStoreTakeTurns: both engines write to the same runs of one file at the same time, and each sees what
// the other wrote.
func TestReferenceAndStoreTakeTurns(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "runs.db")
	s := openFile(t, path, historysql.Options{})
	x := historytest.NewTrace(t, "x")
	x.Append(s, historytest.Start("w", "host_mediated")...)
	b := x.Batch(historytest.Node("begin", "t")...)
	b.SetTimers, b.Timers = true, []history.Timer{{Key: "deadline", Due: historytest.Begin}}
	if err := s.Append(t.Context(), b); err != nil {
		t.Fatal(err)
	}

	r := openReference(t, path)
	r.append("x", `E ActivityCompleted t {"nodeType":"step","result":{}}`, `C CompleteNode t {"output":{}}`)
	r.append("theirs", "E ExecutionStarted", "C ScheduleNode a", `E ActivityRequested a {"nodeType":"step","attempt":1}`)
	wantPhases(t, s, map[string]history.Phase{"x": history.PhaseRunning, "theirs": history.PhaseAwaitingActivity})

	// A batch that does not know of the other engine's rows is refused, one that does is taken, read or not.
	if err := s.Append(t.Context(), x.Batch("C ScheduleNode z")); !errors.Is(err, problem.HistoryConflict) {
		t.Errorf("got %v", err)
	}
	e, err := s.Execution(t.Context(), "x")
	if err != nil || e.Seq != 13 {
		t.Fatalf("got seq %d, %v", e.Seq, err)
	}
	r.append("x", "C ScheduleNode u")
	records, err := s.Read(t.Context(), "x", 14, 0)
	if err != nil || len(records) != 1 {
		t.Fatal(records, err)
	}
	e.Apply(records[0])
	x.Execution, x.Now = e, x.Now.Add(time.Minute)
	x.Append(s, "E NodeScheduled u")
	want := projected(t, s, "x")
	want.Bytes = x.Execution.Bytes // this writer did not look at what the other wrote
	if got, err := s.Execution(t.Context(), "x"); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v", got, err)
	}
	// The reference goes on behind rows of this engine, and its end of a run drops the timers.
	r.append("x", `E ExecutionCompleted {"result":null}`)
	wantPhases(t, s, map[string]history.Phase{"x": history.PhaseCompleted, "theirs": history.PhaseAwaitingActivity})
	if due, err := s.DueTimers(t.Context(), historytest.Begin.Add(time.Hour), 0); err != nil || len(due) != 0 {
		t.Errorf("timers of a run that another engine has ended: %v, %v", due, err)
	}
	var foreign []int64
	for _, record := range mustRead(t, s, "x") {
		if record.Foreign {
			foreign = append(foreign, record.Seq)
		}
	}
	if want := []int64{12, 13, 14, 16}; !slices.Equal(foreign, want) {
		t.Errorf("records %v are said to be the reference's, want %v", foreign, want)
	}
	var seqs, types string
	r.scan("SELECT group_concat(seq) FROM history WHERE execution_id = 'x'", &seqs)
	if want := "1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16"; seqs != want {
		t.Errorf("the reference reads seqs %s", seqs)
	}
	r.scan(`SELECT group_concat(DISTINCT typeof(execution_id) || typeof(seq) || typeof(kind) || typeof(name) || typeof(payload_json) ||
		typeof(created_at) || length(created_at) || record_schema_version) FROM history`, &types)
	if want := "textintegertexttexttexttext241"; types != want {
		t.Errorf("rows are stored as %s", types)
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

// TestUnreadableRuns: a run with rows that cannot be read is refused with the right code, and is listed with what can
// be told of it. The other runs do not suffer.
func TestUnreadableRuns(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "runs.db")
	s := openFile(t, path, historysql.Options{})
	r := openReference(t, path)
	for _, id := range []string{"good", "json", "newer", "gap", "kind", "time"} {
		r.append(id, `E ExecutionStarted {"workflowName":"w"}`, "C ScheduleNode a", `E SignalWaitStarted a {"signalName":"s"}`)
	}
	r.exec("UPDATE history SET payload_json = '{\"executionId\":' WHERE execution_id = 'json' AND seq = 2")
	r.exec("UPDATE history SET record_schema_version = 2 WHERE execution_id = 'newer' AND seq = 3")
	r.exec("DELETE FROM history WHERE execution_id = 'gap' AND seq = 2")
	r.exec("UPDATE history SET kind = 'thing' WHERE execution_id = 'kind' AND seq = 2")
	r.exec("UPDATE history SET created_at = 'yesterday' WHERE execution_id = 'time' AND seq = 1")
	for round := range 2 { // the second time the problem is known
		page, err := s.List(t.Context(), history.ListQuery{})
		if err != nil || len(page.Executions) != 6 {
			t.Fatalf("round %d: listed %d runs, %v", round, len(page.Executions), err)
		}
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
	}
	r.exec("UPDATE history SET payload_json = '{}' WHERE execution_id = 'json' AND seq = 2")
	if e, err := s.Execution(t.Context(), "json"); err != nil || e.Phase != history.PhaseAwaitingSignal {
		t.Errorf("repaired: %+v, %v", e, err)
	}
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

// TestReadOnly: a store that may not write shows what other engines have written all the same.
func TestReadOnly(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	path := filepath.Join(t.TempDir(), "runs.db")
	s := openFile(t, path, historysql.Options{})
	for i, id := range []string{"a", "b", "c"} {
		x := historytest.NewTrace(t, id)
		x.Now = x.Now.Add(time.Duration(i) * time.Minute)
		x.Append(s, historytest.Start("w", "in_process")...)
	}
	r := openReference(t, path)
	r.append("a", `E SignalWaitStarted s {"signalName":"s"}`)
	ro := openFile(t, path, historysql.Options{ReadOnly: true})
	r.append("d", "E ExecutionStarted", "C ScheduleNode a")
	wantPhases(t, ro, map[string]history.Phase{
		"a": history.PhaseAwaitingSignal, "b": history.PhaseRunning, "c": history.PhaseRunning, "d": history.PhaseRunning,
	})
	var queries []history.ListQuery
	for limit := range 5 {
		queries = append(queries, history.ListQuery{Limit: limit}, history.ListQuery{Limit: limit, Phase: history.PhaseRunning},
			history.ListQuery{Limit: limit, DefinitionName: "w"},
			history.ListQuery{Limit: limit, Cursor: history.Cursor{UpdatedAt: historytest.Begin.Add(time.Minute), ExecutionID: "a"}.String()})
	}
	list := func(s history.Store) (out []string) {
		for _, q := range queries {
			page, err := s.List(ctx, q)
			if err != nil {
				t.Fatal(err)
			}
			text := fmt.Sprintf("%+v: next %q", q, page.NextCursor)
			for _, e := range page.Executions {
				text += " " + e.ID + "/" + string(e.Phase)
			}
			out = append(out, text)
		}
		return out
	}
	before := list(ro)
	if healed := list(s); !slices.Equal(before, healed) {
		t.Errorf("reading only gives\n%s\nwriting too\n%s", strings.Join(before, "\n"), strings.Join(healed, "\n"))
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
