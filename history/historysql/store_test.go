package historysql_test

import (
	"path/filepath"
	"testing"

	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historysql"
	"github.com/workflows-engine/workflows-engine/history/historytest"
)

// open makes a store in a new file.
func open(t testing.TB) history.Store {
	return openFile(t, filepath.Join(t.TempDir(), "runs.db"), historysql.Options{})
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

func TestStore(t *testing.T) {
	t.Parallel()
	historytest.Run(t, open)
}
