package config_test

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"
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
	requireRefused(t, err, "there is no such folder")

	if c, err = load(t, env, "--store-path", "runs.db"); err != nil {
		t.Fatal(err)
	}
	_, err = c.OpenExistingStore(t.Context())
	requireRefused(t, err, "there is no database")
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
