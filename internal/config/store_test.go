package config_test

import (
	"database/sql"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
)

func TestOpenStoreMakesTheDefaultFolder(t *testing.T) {
	t.Parallel()
	env := environment()
	env.GOOS, env.Home = runtime.GOOS, t.TempDir()
	c, err := load(t, env)
	if err != nil {
		t.Fatal(err)
	}
	store, err := c.OpenStore(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(c.StorePath); err != nil {
		t.Error(err)
	}
	if want := "execution history store: sqlite (" + c.StorePath + ")"; c.StoreLine() != want {
		t.Errorf("got %q, want %q", c.StoreLine(), want)
	}
}

func TestOpenStoreRefusesTypingErrors(t *testing.T) {
	t.Parallel()
	env := environment()
	env.Directory = t.TempDir()
	c, err := load(t, env, "--store-path", filepath.Join("no", "runs.db"))
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.OpenStore(t.Context())
	requireRefused(t, err, "not found")

	if c, err = load(t, env, "--store-path", "runs.db"); err != nil {
		t.Fatal(err)
	}
	_, err = c.OpenExistingStore(t.Context())
	requireRefused(t, err, "not found")
	if !c.MakesStore() {
		t.Error("a missing database would not be made")
	}
	if _, err := os.Stat(c.StorePath); err == nil {
		t.Error("the refused database was made")
	}
}

func TestOpenStoreMemory(t *testing.T) {
	t.Parallel()
	c, err := load(t, environment(), "--store", "memory")
	if err != nil {
		t.Fatal(err)
	}
	store, err := c.OpenExistingStore(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	if c.StoreLine() != "execution history store: memory" {
		t.Errorf("got %q", c.StoreLine())
	}
}

// TestOpenExistingStore: commands on runs that exist make no default database; one that is gone beside its log is refused.
func TestOpenExistingStore(t *testing.T) {
	t.Parallel()
	env := environment()
	env.Directory, env.Home = t.TempDir(), t.TempDir()
	c, err := load(t, env)
	if err != nil {
		t.Fatal(err)
	}
	store, err := c.OpenExistingStore(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := store.Execution(t.Context(), "x"); !errors.Is(err, problem.ExecutionNotFound) {
		t.Error(err)
	}
	if err := store.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(c.StorePath); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the default database: %v", err)
	}
	if err := os.MkdirAll(filepath.Dir(c.StorePath), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(c.StorePath+"-wal", []byte("steps"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := c.OpenExistingStore(t.Context()); !errors.Is(err, problem.HistoryCorrupt) {
		t.Error(err)
	}
}

// TestOpenStoreToRead: what reads leaves a database alone, and an absent default one holds nothing and stays absent.
func TestOpenStoreToRead(t *testing.T) {
	t.Parallel()
	env := environment()
	env.Directory, env.Home = t.TempDir(), t.TempDir()
	c, err := load(t, env, "--store-path", "runs.db")
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.OpenStoreToRead(t.Context())
	requireRefused(t, err, "not found")
	written, err := c.OpenStore(t.Context())
	if err == nil {
		err = written.Close()
	}
	if c.MakesStore() {
		t.Error("the database would be made again")
	}
	if err == nil {
		err = errors.Join(os.Chmod(c.StorePath, 0o400), os.Chmod(env.Directory, 0o500))
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chmod(env.Directory, 0o700) }) // so that it can be removed
	store, err := c.OpenStoreToRead(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	if _, err := store.List(t.Context(), history.ListQuery{}); err != nil {
		t.Error(err)
	}
	if err := store.PutDefinition(t.Context(), history.StoredDefinition{Hash: "h", Text: []byte("{}")}); err == nil {
		t.Error("the database was written to")
	}

	if c, err = load(t, env); err != nil {
		t.Fatal(err)
	}
	none, err := c.OpenStoreToRead(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer none.Close()
	if _, err := os.Stat(c.StorePath); err == nil {
		t.Error("the default database was made")
	}
	// A log without its default database is no absent one.
	if err := os.MkdirAll(filepath.Dir(c.StorePath), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(c.StorePath+"-wal", []byte("steps"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := c.OpenStoreToRead(t.Context()); !errors.Is(err, problem.HistoryCorrupt) {
		t.Errorf("the database is gone and its log is not: %v", err)
	}
}

// TestNoPlaceForACopyNamesTheCommand: who starts a program does not know the library's options.
func TestNoPlaceForACopyNamesTheCommand(t *testing.T) {
	t.Parallel()
	env := environment()
	env.Directory = t.TempDir()
	c, err := load(t, env, "--db", "runs.db")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join("..", "..", "history", "historysql", "testdata", "version4.sql"))
	if err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", c.StorePath)
	if err == nil {
		_, err = db.Exec(string(text))
	}
	if err == nil {
		err = db.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	// More bytes than a name of a file may have, once a version and a time are in it.
	long := filepath.Join(env.Directory, strings.Repeat("x", 240))
	if err := os.Rename(c.StorePath, long); err != nil {
		t.Fatal(err)
	}
	c.StorePath = long
	_, err = c.OpenStore(t.Context())
	if p, ok := problem.As(err); !ok || !strings.Contains(p.Hint, "workflows-engine db migrate --no-backup --db "+long) {
		t.Errorf("got %v, %+v", err, p)
	}
	if _, err := c.MigrateStore(t.Context(), false, false); err != nil {
		t.Error(err)
	}
}
