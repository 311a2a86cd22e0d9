package historysql_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history/historysql"
	"github.com/workflows-engine/workflows-engine/history/historytest"
)

// crashed copies a database and the named files beside it, as a killed process would leave them.
func crashed(t *testing.T, path string, suffixes ...string) string {
	t.Helper()
	left := filepath.Join(t.TempDir(), "runs.db")
	for _, suffix := range append(suffixes, "") {
		text, err := os.ReadFile(path + suffix)
		if err != nil {
			t.Fatal(err)
		}
		write(t, left+suffix, text)
	}
	return left
}

// TestAMissingWALIsNoticed: after a crash the index of the WAL says that there was one. Nobody opens the file without it, it is left
// as it is, and with the WAL back every step is there.
func TestAMissingWALIsNoticed(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "runs.db")
	s := openFile(t, path, historysql.Options{})
	if err := s.Append(t.Context(), historytest.NewTrace(t, "r").Batch("E ExecutionStarted")); err != nil {
		t.Fatal(err)
	}
	for name, o := range everyOpening {
		lost := crashed(t, path, "-shm")
		before := folderOf(t, lost)
		opened, err := historysql.Open(t.Context(), lost, o)
		if p, ok := problem.As(err); !ok || p.Code != problem.HistoryCorrupt || !strings.Contains(p.Error(), "runs.db-wal is missing") || !strings.Contains(p.Hint, "runs.db-shm") {
			t.Errorf("%s: %v", name, err)
		}
		if err == nil {
			_ = opened.Close()
		}
		if after := folderOf(t, lost); strings.Join(after, "\n") != strings.Join(before, "\n") {
			t.Errorf("%s: before %s, after %s", name, before, after)
		}
		wal, err := os.ReadFile(path + "-wal")
		if err != nil {
			t.Fatal(err)
		}
		write(t, lost+"-wal", wal)
		again := openFile(t, lost, o)
		if e, err := again.Execution(t.Context(), "r"); err != nil || e.Seq != 1 {
			t.Errorf("%s: %+v, %v", name, e, err)
		}
	}
	without := crashed(t, path)
	if _, err := openFile(t, without, historysql.Options{}).Execution(t.Context(), "r"); !errors.Is(err, problem.ExecutionNotFound) && !errors.Is(err, problem.HistoryCorrupt) {
		t.Errorf("without both files: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	openFile(t, path, historysql.Options{})
}
