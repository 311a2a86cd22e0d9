package historysql_test

import (
	"errors"
	"path/filepath"
	"testing"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historysql"
	"github.com/workflows-engine/workflows-engine/history/historytest"
)

// longRun appends a run of many records that has ended.
func longRun(t *testing.T, s history.Store, id string, rows int) {
	t.Helper()
	x := historytest.NewTrace(t, id)
	lines := historytest.Start("w", "in_process")
	for len(lines) < rows-1 {
		lines = append(lines, "C ScheduleNode a")
	}
	x.Append(s, append(lines, "E ExecutionCompleted")...)
}

// TestAPruneThatWasKilledGoesOn has a process end between two steps of a large deletion. The run is gone for everybody
// all the same, its id cannot be used again until its last row is gone, and the next Prune goes on.
func TestAPruneThatWasKilledGoesOn(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "runs.db")
	s := openFile(t, path, historysql.Options{})
	longRun(t, s, "big", 7000)
	longRun(t, s, "other", 10)
	if err := s.BeginPrune("big"); err != nil {
		t.Fatal(err)
	}
	s = openFile(t, path, historysql.Options{}) // another process
	gone := func() {
		t.Helper()
		if e, err := s.Execution(t.Context(), "big"); !errors.Is(err, problem.ExecutionNotFound) {
			t.Errorf("%+v, %v", e, err)
		}
		page, err := s.List(t.Context(), history.ListQuery{})
		if err != nil || len(page.Executions) != 1 || page.Executions[0].ID != "other" {
			t.Errorf("listed %+v, %v", page.Executions, err)
		}
	}
	gone()
	if rs := mustRead(t, s, "big"); len(rs) != 5000 {
		t.Fatalf("%d rows are left after one step", len(rs))
	}
	_, err := s.Execution(t.Context(), "big")
	wantRefusal(t, "what is left", err, problem.DeletionUnfinished)
	again := historytest.NewTrace(t, "big").Batch("E ExecutionStarted")
	err = s.Import(t.Context(), history.Import{Runs: []history.ImportedRun{{ExecutionID: "big", Records: again.Records, Execution: again.Execution}}})
	wantRefusal(t, "import", err, problem.DeletionUnfinished)
	if would, err := s.Prune(t.Context(), history.PruneQuery{Phases: []history.Phase{history.PhaseFailed}, DryRun: true}); err != nil || would.Finished != 1 {
		t.Errorf("%d runs would be finished, %v", would.Finished, err)
	}
	err = s.Append(t.Context(), historytest.NewTrace(t, "big").Batch("E ExecutionStarted"))
	if !errors.Is(err, problem.HistoryConflict) {
		t.Errorf("a new run of the id: %v", err)
	}
	late := historytest.NewTrace(t, "big") // a driver that knows only of the records that are left
	late.Execution.Seq, late.Execution.Phase, late.Execution.CreatedAt = 5000, history.PhaseRunning, historytest.Begin
	if err := s.Append(t.Context(), late.Batch("C ScheduleNode b")); !errors.Is(err, problem.ExecutionNotFound) {
		t.Errorf("an append to what is left: %v", err)
	}
	page, err := s.Prune(t.Context(), history.PruneQuery{Phases: []history.Phase{history.PhaseFailed}})
	if err != nil || len(page.Trees) != 0 || page.Finished != 1 {
		t.Errorf("%+v, %v", page, err)
	}
	if _, err := s.Execution(t.Context(), "big"); history.IsBeingDeleted(err) {
		t.Errorf("after the last row: %v", err)
	}
	gone()
	if rs := mustRead(t, s, "big"); len(rs) != 0 {
		t.Errorf("%d rows are left", len(rs))
	}
	longRun(t, s, "big", 10)
}

// TestShrink deletes nearly everything and gives the space back.
func TestShrink(t *testing.T) {
	t.Parallel()
	s := openFile(t, filepath.Join(t.TempDir(), "runs.db"), historysql.Options{})
	longRun(t, s, "big", 20_000)
	longRun(t, s, "small", 10)
	if _, err := s.Prune(t.Context(), history.PruneQuery{Limit: 1}); err != nil {
		t.Fatal(err)
	}
	before, free, err := s.Size(t.Context())
	if err != nil || free < 1<<20 {
		t.Fatalf("%d bytes, %d free, %v", before, free, err)
	}
	if err := s.Shrink(t.Context()); err != nil {
		t.Fatal(err)
	}
	after, free, err := s.Size(t.Context())
	if err != nil || after > before/4 || free != 0 {
		t.Errorf("%d bytes became %d, %d free, %v", before, after, free, err)
	}
	if rs := mustRead(t, s, "small"); len(rs) != 10 {
		t.Errorf("%d records", len(rs))
	}
	longRun(t, s, "big", 10)
}

// TestADryRunPassesOverUnreadableRuns: it lists what a Prune would delete, which leaves such runs alone.
func TestADryRunPassesOverUnreadableRuns(t *testing.T) {
	t.Parallel()
	s := openFile(t, filepath.Join(t.TempDir(), "runs.db"), historysql.Options{})
	longRun(t, s, "damaged", 10)
	longRun(t, s, "sound", 10)
	if err := s.Script("UPDATE executions SET projection = 'x' WHERE execution_id = 'damaged'"); err != nil {
		t.Fatal(err)
	}
	for _, dry := range []bool{true, false} {
		page, err := s.Prune(t.Context(), history.PruneQuery{DryRun: dry})
		if err != nil || len(page.Trees) != 1 || page.Trees[0].ExecutionID != "sound" {
			t.Errorf("dry run %t: %+v, %v", dry, page, err)
		}
	}
}
