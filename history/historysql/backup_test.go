package historysql_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historysql"
)

// TestBackupDuringWrites: a backup of a database in use is one file without findings. It has every run that was recorded before the backup.
func TestBackupDuringWrites(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	path := filepath.Join(folder, "runs.db")
	writer, err := historysql.Open(t.Context(), path, historysql.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer writer.Close()
	begin(t, writer, "first")
	recorded := int64(1)
	for i := range 5 {
		reader, err := historysql.Open(t.Context(), path, historysql.Options{Existing: true, ReadOnly: true}) // as another process
		if err != nil {
			t.Fatal(err)
		}
		before, writes := recorded, make(chan error, 1)
		ctx, stop := context.WithCancel(t.Context())
		go func() { // as long as the backup takes
			for {
				if err := writer.Append(t.Context(), firstRecord(fmt.Sprintf("r%06d", recorded))); err != nil || ctx.Err() != nil {
					writes <- err
					return
				}
				recorded++
			}
		}()
		copied := filepath.Join(folder, fmt.Sprintf("backup-%d.db", i))
		err = reader.Backup(t.Context(), copied)
		stop()
		if err := errors.Join(err, <-writes); err != nil {
			t.Fatal(err)
		}
		recorded++ // the last one, during which the backup ended
		if err := reader.Close(); err != nil {
			t.Fatal(err)
		}
		if left, err := filepath.Glob(copied + "?*"); err != nil || len(left) > 0 {
			t.Errorf("beside the backup: %v, %v", left, err)
		}
		if info, err := os.Stat(copied); err != nil || info.Mode().Perm() != 0o600 && os.PathSeparator == '/' {
			t.Errorf("got %v, %v", info, err)
		}
		s, err := historysql.Open(t.Context(), copied, historysql.Options{Existing: true})
		if err != nil {
			t.Fatal(err)
		}
		counts, err := s.Verify(t.Context(), "", false, func(f history.Finding) { t.Errorf("backup %d: %+v", i, f) })
		if err != nil || counts.Runs < before {
			t.Errorf("backup %d has %d runs of at least %d, %v", i, counts.Runs, before, err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestBackupReplacesNothing: an existing file stays as it is, and a failed backup leaves no file.
func TestBackupReplacesNothing(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	s, err := historysql.Open(t.Context(), filepath.Join(folder, "runs.db"), historysql.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	begin(t, s, "r")
	taken := filepath.Join(folder, "taken.db")
	write(t, taken, []byte("mine"))
	if err := s.Backup(t.Context(), taken); !errors.Is(err, problem.UsageError) {
		t.Errorf("got %v", err)
	}
	if content, err := os.ReadFile(taken); err != nil || string(content) != "mine" {
		t.Errorf("got %q, %v", content, err)
	}
	if err := s.Backup(t.Context(), filepath.Join(folder, "missing", "b.db")); !errors.Is(err, problem.StoreUnavailable) {
		t.Errorf("got %v", err)
	}
	entries, err := os.ReadDir(folder)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if err != nil || slices.ContainsFunc(names, func(n string) bool { return filepath.Ext(n) == ".partial" }) {
		t.Errorf("left: %v, %v", names, err)
	}
}
