package historysql

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"modernc.org/sqlite"

	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// backup is the copy of a file under migration. Its name ends with partialSuffix until just before the commit, so that the next migration can
// recognise and delete the copy of a killed process.
type backup struct{ path string }

const (
	backupSuffix  = ".bak"
	partialSuffix = ".partial"
)

// backUp copies the file beside itself and flushes the copy. The caller holds the file's write lock, so no other process makes a copy, or
// writes between the copy and the migration.
func (s *Store) backUp(ctx context.Context, version int64) (backup, error) {
	file := linkTarget(s.path)
	for _, left := range partialsOf(file) {
		_ = os.Remove(left)
	}
	b := backup{freeName(fmt.Sprintf("%s.v%d-%s", file, version, time.Now().UTC().Format("20060102T1504")))}
	partial := b.path + partialSuffix
	var bytes int64
	if info, err := os.Stat(file); err == nil {
		bytes = info.Size()
	}
	err := s.copyTo(ctx, dataSource(s.path, "ro", &s.options), partial)
	if err == nil {
		err = flush(partial)
	}
	if err == nil {
		return b, nil
	}
	b.drop(false)
	if ctx.Err() != nil {
		return backup{}, err
	}
	return backup{}, copyFailure(err, "the database "+s.path+" was not migrated, because a copy of it cannot be made as "+b.path,
		"Nothing was changed. Make room for the copy of about %d bytes in a folder that can be written to, or migrate without it (Options.NoBackup).", bytes)
}

// Backup copies the database to a new file at path, while other processes read and write it. The copy has everything that was recorded before
// the call, and only whole transactions; it needs no WAL file beside it. The file appears once it is complete and durable. An existing file
// is not replaced.
func (s *Store) Backup(ctx context.Context, path string) error {
	taken := func() error {
		if _, err := os.Lstat(path); err == nil {
			return problem.New(problem.UsageError, "the file %s exists", path).WithHint("Name a new file: a backup replaces none.")
		}
		return nil
	}
	if err := taken(); err != nil {
		return err
	}
	partial := fmt.Sprintf("%s.%d%s", path, os.Getpid(), partialSuffix) // another process may write to the same path
	err := s.copyTo(ctx, dataSource(s.path, "ro", &s.options), partial)
	if err == nil {
		err = flush(partial)
	}
	if err == nil {
		if err = taken(); err == nil {
			err = os.Rename(partial, path)
		}
	}
	if err == nil {
		return flush(filepath.Dir(path))
	}
	_ = os.Remove(partial)
	if e, ok := problem.As(err); ctx.Err() != nil || ok && e.Code == problem.UsageError {
		return err
	}
	return copyFailure(err, "the database "+s.path+" cannot be backed up to "+path, "Name a file in a folder with room for it that can be written to.")
}

// copyFailure returns the error for a failed copy. The hint covers a target that cannot hold the copy; an unreadable source has its own hint.
func copyFailure(err error, what, hint string, args ...any) error {
	code := problem.StoreUnavailable
	switch {
	case isFull(err):
		code = problem.StoreFull
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		code = problem.StoreReadOnly
	default:
		if e, ok := problem.As(failure(what, err)); ok && e.Code != problem.Internal && e.Code != code {
			return e
		}
	}
	return problem.New(code, "%s", what).WithCause(err).WithHint(hint, args...)
}

// freeName returns an unused file name.
func freeName(stem string) string {
	for n := 1; ; n++ {
		name := stem + backupSuffix
		if n > 1 {
			name = fmt.Sprintf("%s-%d%s", stem, n, backupSuffix)
		}
		if _, err := os.Lstat(name); err != nil {
			return name
		}
	}
}

// keep gives a complete copy its final name. It never replaces a file.
func (b backup) keep() error {
	if b.path == "" {
		return nil
	}
	if _, err := os.Lstat(b.path); err == nil {
		return problem.New(problem.StoreUnavailable, "%s, the name for a copy of the database, was just taken", b.path).WithHint("Try again.")
	}
	if err := os.Rename(b.path+partialSuffix, b.path); err != nil {
		return err
	}
	return flush(filepath.Dir(b.path))
}

// drop deletes a copy without its final name; with kept, also one that has it. A failed commit may still be durable, unless the disk was
// full.
func (b backup) drop(kept bool) {
	if b.path == "" {
		return
	}
	if err := os.Remove(b.path + partialSuffix); err != nil && kept {
		_ = os.Remove(b.path)
	}
}

// partialsOf returns the unfinished copies of a file: those in progress, and those of killed processes.
func partialsOf(file string) (paths []string) {
	entries, _ := os.ReadDir(filepath.Dir(file)) // an unreadable folder counts as empty
	for _, e := range entries {
		if n := e.Name(); strings.HasPrefix(n, filepath.Base(file)+".v") && strings.HasSuffix(n, backupSuffix+partialSuffix) {
			paths = append(paths, filepath.Join(filepath.Dir(file), n))
		}
	}
	return paths
}

// flush makes a file durable, or the names in a folder if the system supports that.
func flush(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	folder := err != nil
	if folder {
		f, err = os.Open(path)
	}
	if err != nil {
		return err
	}
	err = f.Sync()
	if folder {
		err = nil
	}
	return errors.Join(err, f.Close())
}

// copyStep is the number of pages copied between two checks of the context.
const copyStep = 4096

// copyTo copies a snapshot of the file to a new path.
func (s *Store) copyTo(ctx context.Context, source, target string) (err error) {
	f, err := os.OpenFile(target, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	c, err := s.connect(source)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	// Without the transaction the copy would restart when another process writes.
	if err := c.script("BEGIN; SELECT count(*) FROM sqlite_schema"); err != nil {
		return err
	}
	to := dataSource(target, "rw", &s.options) + "&_pragma=journal_mode(off)&_pragma=synchronous(off)"
	b, err := c.Conn.(interface {
		NewBackup(target string) (*sqlite.Backup, error)
	}).NewBackup(to)
	if err != nil {
		return err
	}
	for more := true; more && err == nil; {
		if err = context.Cause(ctx); err == nil {
			more, err = b.Step(copyStep)
		}
	}
	return errors.Join(err, b.Finish())
}
