package historysql_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historysql"
)

// TestProbe: it writes, and leaves nothing.
func TestProbe(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "runs.db")
	s := openFile(t, path, historysql.Options{})
	size := func() int64 {
		info, err := os.Stat(path + "-wal")
		if err != nil {
			t.Fatal(err)
		}
		return info.Size()
	}
	before := size()
	if err := s.Probe(t.Context()); err != nil {
		t.Fatal(err)
	}
	if size() <= before {
		t.Errorf("the log has %d bytes, as before", size())
	}
	if counts, err := s.Verify(t.Context(), "", false, func(f history.Finding) { t.Error(f) }); err != nil || counts.Runs != 0 {
		t.Errorf("%+v, %v", counts, err)
	}
	if err := openFile(t, path, historysql.Options{ReadOnly: true}).Probe(t.Context()); !errors.Is(err, problem.StoreReadOnly) {
		t.Errorf("read only: %v", err)
	}
}
