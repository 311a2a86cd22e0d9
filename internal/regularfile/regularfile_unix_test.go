//go:build unix

package regularfile_test

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/workflows-engine/workflows-engine/internal/regularfile"
)

// TestOnlyRegularFilesAreRead: whatever a name leads to, opening it returns at once, by every way of opening.
func TestOnlyRegularFilesAreRead(t *testing.T) {
	t.Parallel()
	folder, err := os.MkdirTemp("", "") // the path of a socket has a bound
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(folder) })
	at := func(name string) string { return filepath.Join(folder, name) }
	socket, err := net.Listen("unix", at("socket"))
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	if err := errors.Join(
		os.WriteFile(at("file"), []byte("text"), 0o600),
		syscall.Mkfifo(at("pipe"), 0o600),
		os.Mkdir(at("folder"), 0o700),
		os.Symlink("pipe", at("link to a pipe")),
		os.Symlink("file", at("link to a file")),
		os.Symlink("/dev/zero", at("link to a device")),
	); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(folder)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	ways := map[string]func(name string) ([]byte, error){
		"Read": func(name string) ([]byte, error) { return regularfile.Read(at(name), 10) },
		"OpenIn": func(name string) ([]byte, error) {
			f, _, err := regularfile.OpenIn(root, name)
			if err != nil {
				return nil, err
			}
			defer f.Close()
			return regularfile.ReadAll(f, 0)
		},
		"FS": func(name string) ([]byte, error) { return fs.ReadFile(regularfile.FS(folder), name) },
	}
	for way, read := range ways {
		for name, want := range map[string]string{
			"file": "text", "link to a file": "text", "none": "no such file", "pipe": "(a pipe)", "link to a pipe": "(a pipe)", "folder": "", "socket": "a socket", "link to a device": "",
		} {
			text, err := read(name)
			if want == "text" {
				if err != nil || string(text) != want {
					t.Errorf("%s, %s: %q, %v", way, name, text, err)
				}
				continue
			}
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s, %s: %v", way, name, err)
			}
			if way == "Read" && name != "none" && !errors.Is(err, regularfile.ErrNotRegular) {
				t.Errorf("%s: %v is not ErrNotRegular", name, err)
			}
		}
	}
	if _, err := regularfile.Read(at("file"), 3); err == nil || !strings.Contains(err.Error(), "larger than 3 bytes") {
		t.Errorf("a file of 4 bytes: %v", err)
	}
	if entries, err := fs.ReadDir(regularfile.FS(folder), "."); err != nil || len(entries) != 7 {
		t.Errorf("%d entries, %v", len(entries), err)
	}
}

// TestReplaceOpensNothing: a pipe that stands in the place of a file is left alone, and nobody waits for it.
func TestReplaceOpensNothing(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "file")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, was := range [][]byte{nil, {}} {
		r := regularfile.Replacement{Name: path, Was: was, Text: []byte("new"), Mode: 0o640}
		if err := r.Replace(); !errors.Is(err, regularfile.ErrNotRegular) {
			t.Errorf("%v", err)
		}
	}
	if info, err := os.Lstat(path); err != nil || info.Mode()&fs.ModeNamedPipe == 0 {
		t.Errorf("%v, %v", info, err)
	}
	leftBehind(t, path)
}
