package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/history/historysql"
	"github.com/workflows-engine/workflows-engine/history/historytest"
)

// TestAFullDiskIsCleaned follows "Cleaning a full disk" of docs/database.md: gc has no room on the full disk and its hint names that section,
// and the database that is cleaned on another disk is whole and works on the first one.
func TestAFullDiskIsCleaned(t *testing.T) {
	t.Parallel()
	disk := t.TempDir()
	if err := syscall.Mount("tmpfs", disk, "tmpfs", 0, "size=2m"); err != nil {
		t.Skipf("only who may mount a small file system can fill it: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(disk, syscall.MNT_DETACH); err != nil {
			t.Errorf("unmount %s: %v", disk, err)
		}
	})
	c := newCommands(t, map[string]string{"ask.workflow.json": askText})
	ask, db, room := filepath.Join(c.folder, "ask.workflow.json"), filepath.Join(disk, "runs.db"), filepath.Join(c.folder, "runs.db")
	now := time.Now()
	c.at(now, exitPaused, "run", ask, "--id", "kept", "--db", db)
	ended := fillWithRuns(t, db)

	first, stderr := c.at(now, exitFailed, "gc", "--older-than", "1s", "--db", db)
	if deleted := 0; !strings.HasPrefix(first, "deleted 0 ") { // the disk may have room to delete a few
		if _, err := fmt.Sscanf(first, "deleted %d run", &deleted); err != nil {
			t.Errorf("%v: %s", err, first)
		}
		ended -= deleted
	}
	if !strings.Contains(stderr, "STORE_FULL") || !strings.Contains(stderr, `see "Cleaning a full disk" in docs/database.md`) {
		t.Errorf("no hint at the way out:\n%s", stderr)
	}

	files, err := filepath.Glob(db + "*")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		copyFile(t, file, filepath.Join(c.folder, filepath.Base(file)))
	}
	c.at(now, exitOK, "verify", "--db", room)
	stdout, _ := c.at(now, exitOK, "gc", "--older-than", "1s", "--vacuum", "--db", room)
	if !strings.HasPrefix(stdout, fmt.Sprintf("deleted %d runs ", ended)) {
		t.Errorf("%d runs were acknowledged: %s", ended, stdout)
	}
	for _, suffix := range []string{"-wal", "-shm"} {
		if _, err := os.Stat(room + suffix); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s is left: %v", room+suffix, err)
		}
	}
	for _, file := range files {
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
	}
	copyFile(t, room, db)
	c.at(now, exitOK, "verify", "--db", db)
	c.at(now, exitOK, "resume", "kept", "--payload", "{}", "--db", db)
	c.at(now, exitPaused, "run", ask, "--id", "new", "--db", db)
}

// fillWithRuns stores ended runs, the last of which are small, until there is no room left, and returns how many were stored.
func fillWithRuns(t *testing.T, db string) (stored int) {
	t.Helper()
	store, err := historysql.Open(t.Context(), db, historysql.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	for _, size := range []int{30_000, 1} {
		for err = nil; err == nil; {
			x := historytest.NewTrace(t, fmt.Sprintf("ended-%d", stored))
			x.Now = time.Now().Add(-time.Hour)
			b := x.Batch(append(append(historytest.Start("w", "in_process"),
				`E StateUpdated a {"state":{"s":"`+strings.Repeat("x", size)+`"}}`), historytest.End()...)...)
			if err = store.Append(t.Context(), b); err == nil {
				stored++
			}
		}
		if stored == 0 || stored > 2000 {
			t.Fatalf("%d runs: %v", stored, err)
		}
	}
	return stored
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	data, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(to, data, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}
