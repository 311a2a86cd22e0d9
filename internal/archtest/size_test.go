package archtest_test

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// How long a file and how large a room may be, in lines without tests.
const (
	maxFileLines = 450
	maxRoomLines = 2500
)

// engine are the rooms of the engine: its front and what stands between that and the machine.
var engine = []string{
	"graph", "graph/perform", "graph/limit", "graph/schedule", "graph/notify", "graph/standing", "graph/outbox", "graph/replay", "graph/transfer", "graph/survey", "graph/library", "graph/execution", "graph/attempt", "graph/admit",
	"graph/runview", "graph/recorded", "graph/tree", "graph/actor",
}

// Exceptions to the rules below. One that is no longer needed fails the test: remove it.
var (
	longFiles  []string
	largeRooms []string
	unsafeIn   []string
)

// sources returns the Go files of this module that are no tests, by path below root.
func sources(t *testing.T) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	err := fs.WalkDir(os.DirFS(root), ".", func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() && path != "." && strings.HasPrefix(entry.Name(), ".") {
			return fs.SkipDir
		}
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		files[path], err = os.ReadFile(filepath.Join(root, path))
		return err
	})
	if err != nil || len(files) < 200 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	return files
}

// holds checks that a rule is broken by its exceptions and by nothing else.
func holds(t *testing.T, rule string, broken, exceptions []string) {
	t.Helper()
	for _, name := range broken {
		if !slices.Contains(exceptions, name) {
			t.Errorf("%s: %s", name, rule)
		}
	}
	for _, name := range exceptions {
		if !slices.Contains(broken, name) {
			t.Errorf("%s keeps the rule (%s): remove the exception", name, rule)
		}
	}
}

func lines(text []byte) int { return bytes.Count(text, []byte("\n")) }

func TestFilesAreShort(t *testing.T) {
	t.Parallel()
	var long []string
	for path, text := range sources(t) {
		if lines(text) > maxFileLines {
			long = append(long, path)
		}
	}
	holds(t, fmt.Sprintf("a file has at most %d lines", maxFileLines), long, longFiles)
}

// TestRoomsAreSmall bounds the front of the engine and its rooms.
func TestRoomsAreSmall(t *testing.T) {
	t.Parallel()
	size := map[string]int{}
	for path, text := range sources(t) {
		size[filepath.ToSlash(filepath.Dir(path))] += lines(text)
	}
	var large []string
	for _, room := range engine {
		if size[room] > maxRoomLines {
			large = append(large, room)
		}
	}
	holds(t, fmt.Sprintf("a room of the engine has at most %d lines", maxRoomLines), large, largeRooms)
}

func TestNothingIsUnsafe(t *testing.T) {
	t.Parallel()
	var broken []string
	for path, text := range sources(t) {
		if regexp.MustCompile(`(?m)^(import|\t)\s*(\w+ )?"unsafe"$`).Match(text) {
			broken = append(broken, path)
		}
	}
	holds(t, "no file imports unsafe", broken, unsafeIn)
}
