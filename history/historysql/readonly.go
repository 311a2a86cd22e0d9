package historysql

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"

	sqlite3 "modernc.org/sqlite/lib"

	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// openReadOnly opens a file without changing it. A file of an older version is read from a copy.
func (s *Store) openReadOnly(ctx context.Context) error {
	original := s.path
	s.tidy = append(s.tidy, func() error { s.removeEmptyWAL(original); return nil })
	source, id, err := s.readable(ctx)
	s.migration = id.migration()
	switch {
	case err != nil:
		return err
	case !id.current():
		return s.openCopy(ctx, source)
	}
	return s.openReaders(source)
}

// readable returns the driver's name for reading a file without changing it. On a read-only medium SQLite cannot create the shared-memory
// file that readers of a WAL need. Without a WAL, the file is then opened as immutable, unless another process holds an exclusive lock,
// because it is changing the file.
func (s *Store) readable(ctx context.Context) (source string, id identity, err error) {
	source, id, err = s.readableAny(ctx)
	if err == nil {
		err = id.check(s.path)
	}
	if err == nil && id.blank() {
		err = rejectBlank(s.path)
	}
	return source, id, err
}

// readableAny is readable for a database of any application.
func (s *Store) readableAny(ctx context.Context) (source string, id identity, err error) {
	if err := rejectOrphanedWAL(s.path); err != nil {
		return "", id, err
	}
	if _, err := os.Stat(s.path); err != nil {
		return "", id, cannotOpen(s.path, err)
	}
	source = dataSource(s.path, "ro", &s.options)
	id, err = s.awaitContent(ctx, func() (identity, error) { return s.identifyReadOnly(source) })
	if cannotLock(err) {
		if journal := leftoverJournal(s.path); journal != "" {
			if isFull(err) {
				return "", id, err
			}
			return "", id, s.unreadable(journal, err)
		}
		immutable := source + "&immutable=1"
		if again, failed := s.identifyReadOnly(immutable); failed == nil {
			source, id, err = immutable, again, nil
		}
	}
	return source, id, err
}

// openCopy copies an older file to a temporary folder, migrates the copy, and reads it. The alternative is to maintain every query for every
// version.
func (s *Store) openCopy(ctx context.Context, source string) error {
	folder, err := os.MkdirTemp("", "workflows-engine-")
	copied := filepath.Join(folder, "runs.db")
	if err == nil {
		s.tidy = append(s.tidy, func() error { return os.RemoveAll(folder) })
		if err = s.copyTo(ctx, source, copied); err == nil {
			err = s.migrateCopy(ctx, copied)
		}
	}
	if err != nil {
		return copyFailure(err, "the database "+s.path+" has an older version, and the temporary copy for reading it cannot be made",
			"Free space in the temporary directory %s, name another one with TMPDIR, or migrate the database.", os.TempDir())
	}
	s.path = copied
	return s.openReaders(dataSource(copied, "ro", &s.options))
}

func (s *Store) migrateCopy(ctx context.Context, path string) error {
	o := s.options
	o.ReadOnly, o.NoBackup, o.Synchronous = false, true, Normal
	migrated, err := Open(ctx, path, o)
	if err != nil {
		return err
	}
	return migrated.Close()
}

// cannotLock reports whether a read failed because files beside the database cannot be created or changed.
func cannotLock(err error) bool {
	c := primaryCode(err)
	return c == sqlite3.SQLITE_CANTOPEN || c == sqlite3.SQLITE_READONLY || isFull(err)
}

// unreadable explains why a database cannot be read without writing. With a WAL, but without a shared-memory file and permission to create
// it, readers would see a past state; with a hot journal, half a transaction.
func (s *Store) unreadable(journal string, err error) error {
	name := filepath.Base(journal)
	if strings.HasSuffix(name, journalSuffix) {
		return problem.New(problem.StoreReadOnly, "the database %s holds half of a transaction, which cannot be undone without changing the file", s.path).
			WithCause(err).WithHint("Open it once for writing: SQLite then undoes the transaction with %s, and removes that file.", name)
	}
	return problem.New(problem.StoreReadOnly, "the database %s has a WAL that cannot be read in a folder that cannot be written to", s.path).
		WithCause(err).WithHint("Copy the file and %s to a folder that can be written to, and open the copy.", name)
}

func (s *Store) identifyReadOnly(source string) (identity, error) {
	c, err := s.connect(source)
	if err != nil {
		return identity{}, err
	}
	id, err := c.identify()
	return id, errors.Join(err, c.Close())
}

// removeEmptyWAL lets SQLite remove the empty WAL and the shared-memory file created by a read. Only a writable connection removes them, when
// it is the last one to close; SQLite decides this under its own locks. A WAL with content is kept, because removing it would write to the
// database. Failures are harmless and ignored.
func (s *Store) removeEmptyWAL(path string) {
	if wal, err := os.Stat(siblingFile(path, walSuffix)); err != nil || wal.Size() > 0 {
		return
	}
	c, err := s.connect(dataSource(path, "rw", &s.options))
	if err != nil {
		return
	}
	_ = c.script("PRAGMA schema_version") // the first read opens the WAL
	_ = c.Close()
}
