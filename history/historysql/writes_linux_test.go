package historysql_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/workflows-engine/workflows-engine/history/historysql"
)

// TestWritesAreTold: a write to a followed file is told once somebody listens, also to the file that has taken its place.
func TestWritesAreTold(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path, next := filepath.Join(dir, "file"), filepath.Join(dir, "next")
	write := func(path string) {
		t.Helper()
		f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
		if err == nil {
			_, err = f.WriteString("x")
		}
		if err == nil {
			err = f.Close()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	told, follow, end := historysql.Writes(t)
	defer end()
	if follow(path) {
		t.Error("a file that does not exist is followed")
	}
	write(path)
	for range 2 {
		if !follow(path) {
			t.Fatal("the file is not followed")
		}
	}
	write(path)
	<-told
	write(next)
	if err := os.Rename(next, path); err != nil {
		t.Fatal(err)
	}
	if !follow(path) {
		t.Fatal("the new file is not followed")
	}
	write(path)
	<-told
}
