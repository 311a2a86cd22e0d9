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

// backup is the copy of a file that is being migrated. Until the migration is about to be committed its name ends with
// partialSuffix, so that what a killed process leaves is recognised and deleted by the next migration.
type backup struct{ path string }

const (
	backupSuffix  = ".bak"
	partialSuffix = ".partial"
)

// backUp copies the file beside itself and flushes the copy. The caller holds the file's write lock: nobody else makes a
// copy, and nothing is written between the copy and the migration.
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

// copyFailure is the error for a copy that cannot be made. The hint is for a place that cannot take it; a file that cannot
// be read has its own.
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

// freeName returns a name for which there is no file yet.
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

// keep gives a complete copy its name. It replaces no file.
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

// drop deletes the copy unless it has its name; kept deletes that too. Whether a commit that failed is durable is not
// certain, unless the disk was full.
func (b backup) drop(kept bool) {
	if b.path == "" {
		return
	}
	if err := os.Remove(b.path + partialSuffix); err != nil && kept {
		_ = os.Remove(b.path)
	}
}

// partialsOf returns the copies of a file that are being made, and those that processes which were killed have left.
func partialsOf(file string) (paths []string) {
	entries, _ := os.ReadDir(filepath.Dir(file)) // of a folder that cannot be read, none are known
	for _, e := range entries {
		if n := e.Name(); strings.HasPrefix(n, filepath.Base(file)+".v") && strings.HasSuffix(n, backupSuffix+partialSuffix) {
			paths = append(paths, filepath.Join(filepath.Dir(file), n))
		}
	}
	return paths
}

// flush makes a file durable, or the names in a folder where the system can do that.
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

// copyStep is the number of pages that are copied before the context is looked at.
const copyStep = 4096

// copyTo makes a copy of the file, as of one moment, at a path where there is nothing yet.
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
	// The transaction keeps the copy from beginning again when another process writes.
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
