package historysql_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historysql"
	"github.com/workflows-engine/workflows-engine/history/historytest"
)

// open makes a store in a new file.
func open(t testing.TB, now func() time.Time) history.Store {
	return openFile(t, filepath.Join(t.TempDir(), "runs.db"), historysql.Options{Now: now})
}

func openFile(t testing.TB, path string, o historysql.Options) *historysql.Store {
	t.Helper()
	s, err := historysql.Open(t.Context(), path, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// atRest makes a file with a run of one record, "x", that nobody has open.
func atRest(t testing.TB) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "runs.db")
	s := openFile(t, path, historysql.Options{})
	historytest.NewTrace(t, "x").Append(s, "E ExecutionStarted")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// leave makes a copy of a file and its log as a process leaves them that is killed.
func leave(t testing.TB, path, left string) {
	t.Helper()
	for _, suffix := range []string{"", "-wal"} {
		data, err := os.ReadFile(path + suffix)
		if err == nil {
			err = os.WriteFile(left+suffix, data, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestStore(t *testing.T) {
	t.Parallel()
	historytest.Run(t, open)
}

func TestStoreKeepsWhatIsWritten(t *testing.T) {
	t.Parallel()
	historytest.RunPersistent(t, func(t testing.TB, dir string, now func() time.Time) history.Store {
		return openFile(t, filepath.Join(dir, "runs.db"), historysql.Options{Now: now})
	})
}
