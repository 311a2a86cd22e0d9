package historysql_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historysql"
	"github.com/workflows-engine/workflows-engine/history/historytest"
)

// TestReadOnlyFile: a file or a folder that cannot be written to is refused with a code, is left as it is, and serves
// once it can be.
func TestReadOnlyFile(t *testing.T) {
	t.Parallel()
	for name, modes := range map[string]struct{ file, folder os.FileMode }{
		"file":   {0o444, 0o777},
		"folder": {0o666, 0o555},
		"both":   {0o444, 0o555},
		"hidden": {0o000, 0o555},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "runs.db")
			s := openFile(t, path, historysql.Options{})
			historytest.NewTrace(t, "x").Append(s, "E ExecutionStarted")
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			set := func(file, folder os.FileMode) {
				t.Helper()
				if err := os.Chmod(path, file); err != nil {
					t.Fatal(err)
				}
				if err := os.Chmod(dir, folder); err != nil {
					t.Fatal(err)
				}
			}
			set(modes.file, modes.folder)
			t.Cleanup(func() { _ = os.Chmod(dir, 0o700) })
			before, err := os.ReadFile(path)
			if err != nil && name != "hidden" {
				t.Fatal(err)
			}
			asOrdinaryUser(t, dir, func() {
				s, err := historysql.Open(t.Context(), path, historysql.Options{})
				if err == nil {
					err = s.Append(t.Context(), historytest.NewTrace(t, "y").Batch("E ExecutionStarted"))
					_ = s.Close()
				}
				if p, ok := problem.As(err); !ok || p.Code != problem.StoreReadOnly && p.Code != problem.StoreUnavailable || p.Hint == "" {
					t.Errorf("got %v, want a code and a hint", err)
				}
			})
			set(0o600, 0o700)
			if after, err := os.ReadFile(path); err != nil || before != nil && string(before) != string(after) {
				t.Errorf("the file was changed, or is gone: %v", err)
			}
			s = openFile(t, path, historysql.Options{})
			if rs := mustRead(t, s, "x"); len(rs) != 1 {
				t.Errorf("%d records", len(rs))
			}
		})
	}
}

// TestFilesThatCannotBeWrittenAreRefusedAtOnce, also those whose log is in use already.
func TestFilesThatCannotBeWrittenAreRefusedAtOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "runs.db")
	s := openFile(t, path, historysql.Options{})
	historytest.NewTrace(t, "x").Append(s, "E ExecutionStarted")
	for _, file := range []string{path, path + "-wal"} {
		if err := os.Chmod(file, 0o444); err != nil {
			t.Fatal(err)
		}
	}
	asOrdinaryUser(t, dir, func() {
		s, err := historysql.Open(t.Context(), path, historysql.Options{})
		if err == nil {
			_ = s.Close()
		}
		if p, ok := problem.As(err); !ok || p.Code != problem.StoreReadOnly || p.Hint == "" {
			t.Errorf("got %v, want a code and a hint", err)
		}
	})
	if rs := mustRead(t, s, "x"); len(rs) != 1 {
		t.Errorf("%d records", len(rs))
	}
}

// TestDiskFull fills a small disk: what does not fit leaves nothing behind, and the same store serves on once there is
// room again.
func TestDiskFull(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=1m"); err != nil {
		t.Skipf("only who may mount a small file system can fill it (TestFullDisk needs none): %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Errorf("unmount %s: %v", dir, err)
		}
	})
	s := openFile(t, filepath.Join(dir, "runs.db"), historysql.Options{})
	x := historytest.NewTrace(t, "x")
	x.Append(s, historytest.Start("w", "in_process")...)
	ballast := filepath.Join(dir, "ballast")
	if err := os.WriteFile(ballast, make([]byte, 600<<10), 0o600); err != nil {
		t.Fatal(err)
	}
	var before history.Execution
	var b history.Batch
	var err error
	for range 100 {
		before = x.Execution
		b = x.Batch(`E StateUpdated a {"state":{"s":"`+strings.Repeat("long ", 2_000)+`"}}`, "C ScheduleNode a")
		if err = s.Append(t.Context(), b); err != nil {
			break
		}
	}
	wantRefusal(t, "append", err, problem.StoreFull)
	wantRefusal(t, "probe", s.Probe(t.Context()), problem.StoreFull)
	if e, err := s.Execution(t.Context(), "x"); err != nil || e.Seq != before.Seq || len(mustRead(t, s, "x")) != int(before.Seq) {
		t.Errorf("the batch left seq %d of %d, %v", e.Seq, before.Seq, err)
	}
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	if err := s.Append(t.Context(), b); err != nil {
		t.Errorf("with room again: %v", err)
	}
	if err := s.Probe(t.Context()); err != nil {
		t.Errorf("probe with room again: %v", err)
	}
}

// TestOpenOnFullDisk: who begins on a full disk is told that it is full, be it the file that cannot be made or the lock
// file beside one that is there.
func TestOpenOnFullDisk(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=1m,nr_inodes=5"); err != nil {
		t.Skipf("only who may mount a small file system can fill it: %v", err)
	}
	t.Cleanup(func() { // the last one to run: what is open by then is closed before
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Errorf("unmount %s: %v", dir, err)
		}
	})
	path, ballast := filepath.Join(dir, "runs.db"), filepath.Join(dir, "ballast")
	s, err := historysql.Open(t.Context(), path, historysql.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	// Leaves no page: the write ends where the disk does.
	if err := os.WriteFile(ballast, make([]byte, 1<<20), 0o600); !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("the disk is not full: %v", err)
	}
	for way, o := range everyOpening {
		if o.ReadOnly {
			openFile(t, path, o) // a file at rest can be read without a lock file
			continue
		}
		_, err = historysql.Open(t.Context(), path, o)
		wantRefusal(t, way, err, problem.StoreFull)
	}
	if err := os.Truncate(ballast, 0); err != nil {
		t.Fatal(err)
	}
	for i := range 4 { // more than there is room for
		err = os.WriteFile(ballast+strconv.Itoa(i), nil, 0o600)
	}
	if !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("there is room for more files: %v", err)
	}
	_, err = historysql.Open(t.Context(), filepath.Join(dir, "new.db"), historysql.Options{})
	wantRefusal(t, "a new file", err, problem.StoreFull)
}

// TestNoRoomForACopy: a disk that is too small for a copy of an older file leaves the file as it was, keeps no part of the
// copy, and the refusal names the way out; so does a temporary folder that is too small.
func TestNoRoomForACopy(t *testing.T) {
	disk := t.TempDir()
	if err := syscall.Mount("tmpfs", disk, "tmpfs", 0, "size=1m"); err != nil {
		t.Skipf("only who may mount a small file system can fill it: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(disk, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	rest := atRestOf(t, "version4.sql")
	big := &reference{t, plain(t, rest)}
	big.exec(`INSERT INTO blobs (hash, content) VALUES ('h', printf('%.600000c', 'x'))`)
	big.exec("PRAGMA wal_checkpoint(TRUNCATE)")
	_ = big.conn.Close()
	content, err := os.ReadFile(rest)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(disk, "runs.db")
	write(t, path, content)
	before := folderOf(t, path)
	_, err = historysql.Open(t.Context(), path, historysql.Options{})
	if p, ok := problem.As(err); !ok || p.Code != problem.StoreFull || !strings.Contains(p.Hint, "(Options.NoBackup)") {
		t.Errorf("got %v, %+v", err, p)
	}
	if after := folderOf(t, path); !slices.Equal(before, after) {
		t.Errorf("before: %s\nafter: %s", before, after)
	}
	t.Setenv("TMPDIR", disk)
	_, err = historysql.Open(t.Context(), rest, historysql.Options{ReadOnly: true})
	if p, ok := problem.As(err); !ok || p.Code != problem.StoreFull || !strings.Contains(p.Hint, "TMPDIR") {
		t.Errorf("reading: got %v, %+v", err, p)
	}
	if after := folderOf(t, path); !slices.Equal(before, after) {
		t.Errorf("the copy was left: %s", after)
	}
	s := openFile(t, path, historysql.Options{NoBackup: true})
	if m := s.Migration(); m.From != 4 || m.Backup != "" {
		t.Errorf("got %+v", m)
	}
}
