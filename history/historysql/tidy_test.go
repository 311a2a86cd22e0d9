package historysql_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/workflows-engine/workflows-engine/history/historysql"
	"github.com/workflows-engine/workflows-engine/history/historytest"
)

// beside lists what stands in the folder of a file, with sizes.
func beside(t *testing.T, path string) map[string]int64 {
	t.Helper()
	found := map[string]int64{}
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			t.Fatal(err)
		}
		found[e.Name()] = info.Size()
	}
	return found
}

// TestReadingLeavesNothingBehind: who only reads a file at rest leaves its folder as it was, also with several readers, and
// the file itself untouched.
func TestReadingLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	path := atRest(t)
	before, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var readers []*historysql.Store
	for range 2 {
		ro, err := historysql.Open(t.Context(), path, historysql.Options{ReadOnly: true})
		if err != nil {
			t.Fatal(err)
		}
		if rs := mustRead(t, ro, "x"); len(rs) != 1 {
			t.Errorf("read %d records", len(rs))
		}
		readers = append(readers, ro)
	}
	if err := readers[0].Close(); err != nil {
		t.Fatal(err)
	}
	if rs := mustRead(t, readers[1], "x"); len(rs) != 1 {
		t.Errorf("after the other reader has closed: read %d records", len(rs))
	}
	if err := readers[1].Close(); err != nil {
		t.Fatal(err)
	}
	if got := beside(t, path); len(got) != 1 {
		t.Errorf("left behind: %v", got)
	}
	after, err := os.Stat(path)
	if now, _ := os.ReadFile(path); err != nil || !after.ModTime().Equal(before.ModTime()) || string(now) != string(text) {
		t.Errorf("the file was changed: %v, %v", after, err)
	}
}

// TestReadingLeavesTheLogOfOthers: the log of a process that is at work, or that was killed, stays.
func TestReadingLeavesTheLogOfOthers(t *testing.T) {
	t.Parallel()
	path, left := filepath.Join(t.TempDir(), "runs.db"), filepath.Join(t.TempDir(), "left.db")
	s := openFile(t, path, historysql.Options{})
	x := historytest.NewTrace(t, "x")
	x.Append(s, "E ExecutionStarted")
	leave(t, path, left)
	for name, file := range map[string]string{"at work": path, "killed": left} {
		before := beside(t, file)
		ro, err := historysql.Open(t.Context(), file, historysql.Options{ReadOnly: true})
		if err != nil {
			t.Fatal(err)
		}
		if rs := mustRead(t, ro, "x"); len(rs) != 1 {
			t.Errorf("%s: read %d records", name, len(rs))
		}
		if err := ro.Close(); err != nil {
			t.Fatal(err)
		}
		after := beside(t, file)
		for _, suffix := range []string{"", "-wal"} {
			if base := filepath.Base(file) + suffix; after[base] != before[base] || before[base] == 0 {
				t.Errorf("%s: %s had %d bytes and has %d", name, base, before[base], after[base])
			}
		}
	}
	x.Append(s, "C ScheduleNode a")
	if rs := mustRead(t, s, "x"); len(rs) != 2 {
		t.Errorf("the process at work reads %d records", len(rs))
	}
}

// TestReadingBesideAnIdleWriter: a writer that has the file open and an empty log keeps the log, and what it then writes is
// seen by others.
func TestReadingBesideAnIdleWriter(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "runs.db")
	s, err := historysql.Open(t.Context(), path, historysql.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = openFile(t, path, historysql.Options{})
	if log, err := os.Stat(path + "-wal"); err != nil || log.Size() > 0 {
		t.Fatalf("the log is not empty: %v, %v", log, err)
	}
	ro, err := historysql.Open(t.Context(), path, historysql.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := ro.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path + "-wal"); err != nil {
		t.Errorf("the log of a writer was taken away: %v", err)
	}
	historytest.NewTrace(t, "y").Append(s, "E ExecutionStarted")
	other := openFile(t, path, historysql.Options{ReadOnly: true})
	if rs := mustRead(t, other, "y"); len(rs) != 1 {
		t.Errorf("another reader sees %d records", len(rs))
	}
}
