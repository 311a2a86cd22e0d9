package historysql_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historysql"
	"github.com/workflows-engine/workflows-engine/history/historytest"
)

// hurried is a run in process that has made some steps within one tenth of a second.
type hurried struct {
	*historytest.Trace
	t     *testing.T
	path  string
	store *historysql.Store
	raw   *reference
	steps int
}

func hurry(t *testing.T, steps int) *hurried {
	t.Helper()
	h := &hurried{Trace: historytest.NewTrace(t, "r"), t: t, path: filepath.Join(t.TempDir(), "runs.db")}
	h.store = openFile(t, h.path, historysql.Options{})
	h.Append(h.store, append(historytest.Start("w", "in_process"), "C ScheduleNode n0", "E NodeScheduled n0", `E ActivityRequested n0 {"nodeType":"step","attempt":1}`)...)
	h.raw = &reference{t, plain(t, h.path)}
	h.hasten(h.store, steps)
	return h
}

func (h *hurried) hasten(s history.Store, steps int) {
	h.t.Helper()
	for range steps {
		h.Append(s, historytest.StepLines(h.steps)...)
		h.Now = h.Now.Add(-time.Millisecond)
		h.steps++
	}
}

// row is the seq at which the run's row stands.
func (h *hurried) row() (seq int64) {
	h.t.Helper()
	h.raw.scan("SELECT seq FROM executions WHERE execution_id = 'r'", &seq)
	return seq
}

// answers checks that a store answers as of the last record.
func (h *hurried) answers(s *historysql.Store) {
	h.t.Helper()
	got, err := s.Execution(h.t.Context(), "r")
	if err != nil || !reflect.DeepEqual(got, h.Execution) {
		h.t.Errorf("the run is %+v, %v, want %+v", got, err, h.Execution)
	}
	page, err := s.List(h.t.Context(), history.ListQuery{})
	if err != nil || len(page.Executions) != 1 {
		h.t.Fatalf("the list is %+v, %v", page, err)
	}
	listed := page.Executions[0]
	if !reflect.DeepEqual(listed, h.Execution) {
		h.t.Errorf("the list has %+v, want %+v", listed, h.Execution)
	}
}

func TestTheProjectionStandsAtTheLastRecord(t *testing.T) {
	t.Parallel()
	h := hurry(t, 0)
	for range 45 {
		h.hasten(h.store, 1)
		if h.row() != h.Execution.Seq {
			t.Fatalf("the row stands at %d, the run at %d", h.row(), h.Execution.Seq)
		}
	}
	h.answers(h.store)
	h.answers(openFile(t, h.path, historysql.Options{}))
	h.answers(openFile(t, h.path, historysql.Options{ReadOnly: true}))
	if found := verified(t, h.store, "", false); len(found) > 0 {
		t.Error(found)
	}
}

// Up to version 4 of the file, the row of a run that a process drove at full speed could stand behind its records. It is brought
// up to date when the file is.
func TestRowsThatOlderVersionsLeftBehind(t *testing.T) {
	t.Parallel()
	path := load(t, "version4.sql")
	raw := &reference{t, plain(t, path)}
	const id = "v1-host"
	records := []string{`E ActivityCompleted t {"nodeType":"step","result":{"r":1}}`, `C CompleteNode t {"output":{"r":1}}`}
	var head int64
	raw.scan("SELECT max(seq) FROM history WHERE execution_id = '"+id+"'", &head)
	raw.exec("UPDATE executions SET driven = 1 WHERE execution_id = '" + id + "'")
	for i, line := range records {
		r, err := historytest.ParseRecord(line)
		if err != nil {
			t.Fatal(err)
		}
		raw.exec("INSERT INTO history (execution_id, seq, kind, name, payload_json, created_at, writer) VALUES (?, ?, ?, ?, ?, '2026-11-21T01:03:46.919Z', 1)",
			id, head+int64(i)+1, string(r.Kind), string(r.Name), string(r.AppendPayload(nil, id)))
	}
	s := openFile(t, path, historysql.Options{})
	var seq int64
	if raw.scan("SELECT seq FROM executions WHERE execution_id = '"+id+"'", &seq); seq != head+2 {
		t.Errorf("the row stands at %d, the run at %d", seq, head+2)
	}
	if found := verified(t, s, id, false); len(found) > 0 {
		t.Error(found)
	}
	var foreign int
	if raw.scan("SELECT count(*) FROM history WHERE writer IS NOT 1 AND execution_id = '"+id+"' AND seq > "+fmt.Sprint(head), &foreign); foreign != 0 {
		t.Errorf("%d records of this engine count as another's", foreign)
	}
}

// Another process goes on with a run, and the first one notices.
func TestAnotherProcessGoesOnWithARun(t *testing.T) {
	t.Parallel()
	h := hurry(t, 5)
	other := openFile(t, h.path, historysql.Options{})
	late := *h.Trace
	stale := late.Batch(historytest.StepLines(h.steps)...)
	h.hasten(other, 3)
	h.answers(h.store)
	if err := h.store.Append(t.Context(), stale); !errors.Is(err, problem.HistoryConflict) {
		t.Errorf("the append of the one that was overtaken gives %v", err)
	}
	h.hasten(h.store, 3)
	h.answers(other)
	h.hasten(other, 1)
	h.answers(h.store)
	if found := verified(t, h.store, "", false); len(found) > 0 {
		t.Error(found)
	}
}

// A transaction that is rolled back leaves no trace.
func TestAnAppendThatFailsLeavesTheRunAsItIs(t *testing.T) {
	t.Parallel()
	h := hurry(t, 5)
	before := *h.Trace
	failing := int32(1)
	if err := h.store.OnCommit(func() int32 { return failing }); err != nil {
		t.Fatal(err)
	}
	if err := h.store.Append(t.Context(), h.Batch(historytest.StepLines(h.steps)...)); err == nil {
		t.Fatal("the append did not fail")
	}
	failing = 0
	*h.Trace = before
	h.answers(h.store)
	h.hasten(h.store, 20)
	h.answers(h.store)
	h.answers(openFile(t, h.path, historysql.Options{}))
	if found := verified(t, h.store, "", false); len(found) > 0 {
		t.Error(found)
	}
}

// An append to a run that has been deleted is refused.
func TestAnAppendToADeletedRun(t *testing.T) {
	t.Parallel()
	h := hurry(t, 5)
	h.raw.exec("DELETE FROM history WHERE execution_id = 'r'")
	h.raw.exec("DELETE FROM executions WHERE execution_id = 'r'")
	if err := h.store.Append(t.Context(), h.Batch(historytest.StepLines(h.steps)...)); !errors.Is(err, problem.HistoryConflict) {
		t.Errorf("the append gives %v", err)
	}
	var rows int
	if h.raw.scan("SELECT count(*) FROM history", &rows); rows != 0 {
		t.Errorf("%d rows of a run that is gone", rows)
	}
}

// An append that expects more records than there are is refused.
func TestAnAppendBehindTheEndOfARun(t *testing.T) {
	t.Parallel()
	for _, lines := range [][]string{historytest.StepLines(9), {"E ExecutionCompleted"}} {
		h := hurry(t, 5)
		ahead := *h.Trace
		ahead.Batch(historytest.StepLines(h.steps)...)
		if err := h.store.Append(t.Context(), ahead.Batch(lines...)); !errors.Is(err, problem.HistoryConflict) {
			t.Errorf("the append gives %v", err)
		}
		h.answers(h.store)
		h.hasten(h.store, 3)
		h.answers(h.store)
		if found := verified(t, h.store, "", false); len(found) > 0 {
			t.Error(found)
		}
	}
}

// A run has been deleted and another one begun under its id. Whoever still takes it for the first one is refused.
func TestAnotherRunUnderTheSameID(t *testing.T) {
	t.Parallel()
	for _, lines := range [][]string{historytest.StepLines(9), {"E ExecutionCompleted"}} {
		h := hurry(t, 5)
		h.raw.exec("DELETE FROM history")
		h.raw.exec("DELETE FROM executions")
		other := openFile(t, h.path, historysql.Options{})
		again := historytest.NewTrace(t, "r")
		again.Append(other, append(historytest.Start("w", "in_process"), "C ScheduleNode n0", "E NodeScheduled n0", `E ActivityRequested n0 {"nodeType":"step","attempt":1}`)...)
		again.Append(other, historytest.StepLines(0)...)
		if err := h.store.Append(t.Context(), h.Batch(lines...)); !errors.Is(err, problem.HistoryConflict) {
			t.Errorf("the append gives %v", err)
		}
		again.Append(h.store, historytest.StepLines(1)...)
		h.Trace = again
		h.answers(h.store)
		h.answers(other)
		if found := verified(t, h.store, "", false); len(found) > 0 {
			t.Error(found)
		}
	}
}

// What lists go by is checked, and a row that stands behind the records is repaired.
func TestVerifyLooksAtTheRowOfADrivenRun(t *testing.T) {
	t.Parallel()
	for _, damage := range []string{
		"UPDATE executions SET updated_at = updated_at + 5",
		"UPDATE executions SET definition_name = 'other'",
		"UPDATE history SET created_at = '2026-11-21T03:00:00.000Z' WHERE seq = (SELECT max(seq) FROM history)",
		"UPDATE executions SET seq = seq - 6",
	} {
		h := hurry(t, 5)
		h.raw.exec(damage)
		if found := verified(t, h.store, "", true); !slices.Equal(found, []string{"r 0 PROJECTION_DIFFERS+"}) {
			t.Errorf("%s: found %q", damage, found)
		}
		if found := verified(t, h.store, "", false); len(found) > 0 {
			t.Errorf("%s: after the repair found %q", damage, found)
		}
		if h.row() != h.Execution.Seq {
			t.Errorf("%s: the row stands at %d", damage, h.row())
		}
	}
}

// Who reads a run while it is driven gets it as of some record, the bytes included.
func TestReadersBesideAHurriedRun(t *testing.T) {
	t.Parallel()
	h := hurry(t, 0)
	bytes := map[int64]int64{h.Execution.Seq: h.Execution.Bytes}
	over := make(chan struct{})
	var readers sync.WaitGroup
	seen := make([]map[int64]int64, 3)
	for i := range seen {
		s := openFile(t, h.path, historysql.Options{ReadOnly: i == 2})
		seen[i] = map[int64]int64{}
		readers.Go(func() {
			for last := int64(0); ; {
				select {
				case <-over:
					return
				default:
				}
				e, err := s.Execution(t.Context(), "r")
				if err != nil || e.Seq < last {
					t.Errorf("the run stands at %d after %d, %v", e.Seq, last, err)
					return
				}
				page, err := s.List(t.Context(), history.ListQuery{})
				if err != nil || len(page.Executions) != 1 || page.Executions[0].Seq < e.Seq {
					t.Errorf("the list has %+v, %v after record %d", page.Executions, err, e.Seq)
					return
				}
				last = page.Executions[0].Seq
				seen[i][e.Seq], seen[i][last] = e.Bytes, page.Executions[0].Bytes
			}
		})
	}
	for i := range 150 {
		lines := historytest.StepLines(h.steps)
		h.steps++
		if i%7 == 6 { // a branch asks somebody: another phase, and back
			lines = append(lines, "C RaiseInterrupt i", "E InterruptRaised i")
		} else if i%7 == 0 && i > 0 {
			lines = append([]string{"E InterruptResumed i {\"resumePayload\":{}}"}, lines...)
		}
		b := h.Batch(lines...)
		if i%5 == 4 && i%7 != 0 { // a large value
			b.Records[2].Payload.State = map[string]any{"text": strings.Repeat(fmt.Sprint(i), 40_000)}
		}
		if err := h.store.Append(t.Context(), b); err != nil {
			t.Fatal(err)
		}
		bytes[h.Execution.Seq] = h.Execution.Bytes
	}
	close(over)
	readers.Wait()
	for _, samples := range seen {
		for seq, n := range samples {
			if bytes[seq] != n {
				t.Errorf("at record %d the run had %d bytes, a reader was told %d", seq, bytes[seq], n)
			}
		}
	}
	h.answers(h.store)
	h.answers(openFile(t, h.path, historysql.Options{}))
}
