package archtest_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
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

func TestNothingIsUnsafe(t *testing.T) {
	t.Parallel()
	for path, text := range sources(t) {
		if regexp.MustCompile(`(?m)^(import|\t)\s*(\w+ )?"unsafe"$`).Match(text) {
			t.Errorf("%s imports unsafe", path)
		}
	}
}
