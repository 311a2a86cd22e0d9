package historysql

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestLockOfTheIndexIsKept: a further connection of the process to a file with an empty WAL does not end the lock of the first one on the WAL's
// index. Without the lock, other processes truncate the index, and reads and writes of this process fail with I/O errors.
func TestLockOfTheIndexIsKept(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "runs.db")
	s, err := Open(context.Background(), path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.Now(t.Context()); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path + shmSuffix)
	if err != nil {
		t.Fatal(err)
	}
	held := func() bool {
		locks, err := os.ReadFile("/proc/locks")
		if err != nil {
			t.Skip(err)
		}
		for line := range strings.Lines(string(locks)) {
			// The lock of all users of an index is byte 128.
			if strings.Contains(line, fmt.Sprintf(" %d ", os.Getpid())) && strings.HasSuffix(strings.TrimSpace(line), fmt.Sprintf(":%d 128 128", info.Sys().(*syscall.Stat_t).Ino)) {
				return true
			}
		}
		return false
	}
	if !held() {
		t.Skip("the lock is not listed in /proc/locks")
	}
	if err := s.Renew(t.Context(), "p", time.Minute); err != nil {
		t.Fatal(err)
	}
	c, err := s.connect(dataSource(s.path, "rw", &s.options))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(c.script("PRAGMA wal_checkpoint(TRUNCATE)"), c.Close()); err != nil {
		t.Fatal(err)
	}
	if hasContent(path + walSuffix) {
		t.Fatal("the WAL is not empty")
	}
	for range 2 {
		c, err := s.connect(dataSource(s.path, "ro", &s.options))
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		if !held() {
			t.Fatal("the lock of the index has ended")
		}
	}
}
