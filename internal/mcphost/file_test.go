package mcphost_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
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

// TestEditsOfOneFile: each edit is made of what the file holds by then, also where another program writes the file without asking for the lock.
func TestEditsOfOneFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "missing", "mcp.json")
	var all sync.WaitGroup
	for i := range 12 {
		all.Go(func() {
			if _, err := mcphost.Edit(path, noon, func(c mcphost.Content) ([]byte, error) {
				return fmt.Appendf(nil, "%sedit %d\n", c.Text, i), nil
			}); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if n := strings.Count(string(read(t, path).Text), "edit"); n != 12 {
		t.Errorf("%d edits are left", n)
	}
	tries := 0
	_, err := mcphost.Edit(path, noon, func(c mcphost.Content) ([]byte, error) {
		if tries++; tries < 3 {
			if err := os.WriteFile(path, fmt.Appendf(nil, "%stheirs %d\n", c.Text, tries), 0o600); err != nil {
				t.Error(err)
			}
		}
		return fmt.Appendf(nil, "%sours\n", c.Text), nil
	})
	text := string(read(t, path).Text)
	if err != nil || strings.Count(text, "edit") != 12 || !strings.HasSuffix(text, "theirs 1\ntheirs 2\nours\n") {
		t.Errorf("%v\n%s", err, text)
	}
	copies, _ := filepath.Glob(path + ".bak-*")
	if _, err := mcphost.Edit(path, noon, func(c mcphost.Content) ([]byte, error) {
		return []byte("ours"), os.WriteFile(path, append(c.Text, "always\n"...), 0o600)
	}); !errors.Is(err, problem.HostFileChanged) || !strings.HasSuffix(string(read(t, path).Text), "always\n") {
		t.Errorf("a program that always writes: %v", err)
	}
	if now, _ := filepath.Glob(path + ".bak-*"); len(now) != len(copies) {
		t.Errorf("copies of a file that was not written: %v", now)
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(path), ".*")); len(left) > 0 {
		t.Errorf("left over: %v", left)
	}
}
