package cli

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historysql"
	"github.com/workflows-engine/workflows-engine/internal/config"
)

// TestADryRunOnlyReads: it opens the database in such a way that it cannot be written to, and so where nothing can, but
// knows what is configured to perform runs.
func TestADryRunOnlyReads(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "runs.db")
	store, err := historysql.Open(t.Context(), path, historysql.Options{})
	if err == nil {
		err = store.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, dry := range []bool{false, true} {
		a, _, _ := newTestApp(t, strings.NewReader(""), time.Now())
		root := &cobra.Command{}
		a.flags = config.Register(root.PersistentFlags())
		if err := root.ParseFlags([]string{"--store-path", path, "--profile", "demo"}); err != nil {
			t.Fatal(err)
		}
		o := recoverOptions{dryRun: dry}
		s, err := a.open(t.Context(), o.session())
		if err != nil {
			t.Fatal(err)
		}
		if s.executors.Activities == nil || s.without != nil {
			t.Errorf("dry %v: nothing can be performed: %v", dry, s.without)
		}
		err = s.store.PutDefinition(t.Context(), history.StoredDefinition{Hash: "h", Name: "n", Version: "1", Text: []byte("{}")})
		if refused := err != nil; refused != dry {
			t.Errorf("dry %v: written with %v", dry, err)
		}
		if err := s.close(); err != nil {
			t.Error(err)
		}
	}
}
