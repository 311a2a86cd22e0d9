package mcphost_test

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/mcphost"
)

var noon = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

func read(t *testing.T, path string) mcphost.Content {
	t.Helper()
	c, err := mcphost.Read(path)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestWrite replaces a file that a symbolic link leads to: the link, the permissions and a copy of the old text stay.
func TestWrite(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	real, link := filepath.Join(folder, "dotfiles.json"), filepath.Join(folder, "mcp.json")
	if err := os.WriteFile(real, []byte("old"), 0o640); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("dotfiles.json", link); err != nil {
		t.Skipf("this user may make no symbolic links: %v", err)
	}
	for i, text := range []string{"new", "newer"} {
		saved, err := read(t, link).Write([]byte(text), noon)
		if err != nil {
			t.Fatal(err)
		}
		if got, _ := os.ReadFile(real); string(got) != text {
			t.Errorf("the file holds %q", got)
		}
		if got, _ := os.ReadFile(saved); string(got) != []string{"old", "new"}[i] {
			t.Errorf("the copy %s holds %q", saved, got)
		}
	}
	if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link is gone: %v %v", info, err)
	}
	if info, err := os.Stat(real); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o640 {
		t.Errorf("permissions %v %v", info.Mode(), err)
	}
	if earlier := read(t, link).Earlier(); len(earlier) != 2 || string(earlier[0]) != "new" {
		t.Errorf("earlier texts %q", earlier)
	}
	if left, _ := filepath.Glob(filepath.Join(folder, "*.new-*")); len(left) > 0 {
		t.Errorf("left over: %v", left)
	}
}

// TestWriteMakesFileAndFolder writes a file that a link without an end names, in a folder that is missing.
func TestWriteMakesFileAndFolder(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	link := filepath.Join(folder, "link")
	if err := os.Symlink(filepath.Join("missing", "mcp.json"), link); err != nil {
		t.Skipf("this user may make no symbolic links: %v", err)
	}
	saved, err := read(t, link).Write([]byte("x"), noon)
	if err != nil || saved != "" {
		t.Fatal(saved, err)
	}
	c := read(t, filepath.Join(folder, "missing", "mcp.json"))
	if string(c.Text) != "x" {
		t.Errorf("it holds %q", c.Text)
	}
	if saved, err = c.Write(nil, noon); err != nil || !strings.Contains(saved, ".bak-20261123T120000Z") || read(t, c.Path).Exists {
		t.Errorf("removed: %s %v", saved, err)
	}
}

// TestChangedFilesAreLeftAlone: what another program wrote meanwhile is not lost.
func TestChangedFilesAreLeftAlone(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "mcp.json")
	c := read(t, path)
	if err := os.WriteFile(path, []byte("theirs"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Write([]byte("ours"), noon); !errors.Is(err, problem.HostFileChanged) {
		t.Error(err)
	}
	if got := read(t, path); string(got.Text) != "theirs" {
		t.Errorf("it holds %q", got.Text)
	}
}

func TestFolderInThePlaceOfAFile(t *testing.T) {
	t.Parallel()
	if _, err := mcphost.Read(t.TempDir()); !errors.Is(err, problem.HostFileInvalid) {
		t.Error(err)
	}
}
