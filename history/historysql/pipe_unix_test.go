//go:build unix

package historysql_test

import (
	"path/filepath"
	"syscall"
	"testing"
)

// TestAPipeIsNoDatabase: to open one would wait for whoever opens its other end.
func TestAPipeIsNoDatabase(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "pipe.db")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	wantNoFile(t, path, "is a pipe")
}
