package historysql_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history/historysql"
)

func link(t *testing.T, target, path string) {
	t.Helper()
	if err := os.Symlink(target, path); err != nil {
		t.Skipf("this user may make no symbolic links: %v", err)
	}
}

// TestADatabaseIsMadeWhereALinkLeads: through two links, one of them relative, to a file that is not there yet.
func TestADatabaseIsMadeWhereALinkLeads(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	data := filepath.Join(folder, "data")
	if err := os.Mkdir(data, 0o700); err != nil {
		t.Fatal(err)
	}
	link(t, filepath.Join("data", "r.db"), filepath.Join(folder, "inner.db"))
	path := filepath.Join(folder, "outer.db")
	link(t, filepath.Join(folder, "inner.db"), path)
	s, err := historysql.Open(t.Context(), path, historysql.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Lstat(filepath.Join(data, "r.db")); err != nil || !info.Mode().IsRegular() || info.Size() == 0 {
		t.Errorf("%v, %v", info, err)
	}
	if s, err = historysql.Open(t.Context(), path, historysql.Options{ReadOnly: true}); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

func TestLinksThatLeadNowhere(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	away := filepath.Join(folder, "away.db")
	link(t, filepath.Join("unmounted", "r.db"), away)
	_, err := historysql.Open(t.Context(), away, historysql.Options{})
	if !errors.Is(err, problem.StoreUnavailable) || !strings.Contains(err.Error(), "folder does not exist") {
		t.Errorf("a link to a missing folder: %v", err)
	}
	if _, err := os.Stat(filepath.Join(folder, "unmounted")); err == nil {
		t.Error("the folder was made")
	}
	circle := filepath.Join(folder, "circle.db")
	link(t, "circle.db", circle)
	_, err = historysql.Open(t.Context(), circle, historysql.Options{})
	if !errors.Is(err, problem.StoreUnavailable) || strings.Contains(err.Error(), "(14)") { // SQLite's way to say it
		t.Errorf("a circle: %v", err)
	}
	// The log stands beside the place of the database, and holds its newest steps.
	gone := filepath.Join(folder, "gone.db")
	link(t, "lost.db", gone)
	if err := os.WriteFile(filepath.Join(folder, "lost.db-wal"), []byte("steps"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := historysql.Open(t.Context(), gone, historysql.Options{}); !errors.Is(err, problem.HistoryCorrupt) {
		t.Errorf("beside a log: %v", err)
	}
	if !historysql.LeftoverWAL(gone) {
		t.Error("the log is not seen")
	}
}

func TestADeviceIsNoDatabase(t *testing.T) {
	t.Parallel()
	if info, err := os.Stat(os.DevNull); err != nil || info.Mode()&os.ModeDevice == 0 {
		t.Skipf("%s is not seen to be a device on this system", os.DevNull)
	}
	wantNoFile(t, os.DevNull, "is a device")
}

// wantNoFile opens what is no file in every way.
func wantNoFile(t *testing.T, path, want string) {
	t.Helper()
	for _, o := range []historysql.Options{{}, {ReadOnly: true}, {Existing: true}} {
		s, err := historysql.Open(t.Context(), path, o)
		if err == nil {
			_ = s.Close()
		}
		if !errors.Is(err, problem.StoreUnavailable) || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v", o, err)
		}
	}
}
