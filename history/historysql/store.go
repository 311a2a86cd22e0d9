package historysql

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
)

// Store is a history.Store in a SQLite file. Open returns one. All methods are safe for concurrent use.
type Store struct {
	path    string
	options Options
	// turn is held by the goroutine that uses writer or changes closed.
	turn    chan struct{}
	writer  *conn
	closed  bool
	queue   queue
	readers readers
	// closing ends when Close is called. A call of Watch holds watching for reading.
	closing  context.Context
	end      context.CancelFunc
	watching sync.RWMutex
	// opened holds the identity of the files that are open, nil if it is not known. looked is when the files were last
	// compared with it, and gone says that they were others; see replaced.
	opened atomic.Pointer[opened]
	looked atomic.Int64
	gone   atomic.Bool
}

var _ history.Store = (*Store)(nil)

// Open opens the file at path, creates it if it is missing, and migrates it to the newest version. It refreshes the
// projections of runs that another engine wrote to. It refuses with HISTORY_CORRUPT a file that is not a database or not
// of the protocol, and an empty file beside a WAL with content; with HISTORY_VERSION_UNSUPPORTED a file of a newer
// version. A refused file is not changed.
func Open(ctx context.Context, path string, o Options) (*Store, error) {
	if err := o.fill(); err != nil {
		return nil, err
	}
	if path == "" || strings.HasPrefix(path, ":memory:") {
		return nil, problem.New(problem.UsageError, "a database needs the path of a file").
			WithHint("For runs in memory use the memory store.")
	}
	absolute, err := filepath.Abs(path)
	if err != nil {
		return nil, cannotOpen(path, err)
	}
	if info, err := os.Stat(absolute); err == nil && info.IsDir() {
		return nil, problem.New(problem.StoreUnavailable, "%s is a folder, not a file", absolute).
			WithHint("Name a file in it, such as %s.", filepath.Join(absolute, "runs.db"))
	}
	s := &Store{path: absolute, options: o, turn: make(chan struct{}, 1)}
	s.closing, s.end = context.WithCancel(background)
	if err := s.open(ctx); err != nil {
		err = failure("the database "+absolute+" cannot be opened", err)
		if unclosed := s.Close(); unclosed != nil {
			err = errors.Join(err, unclosed)
		}
		return nil, err
	}
	return s, nil
}

func (s *Store) open(ctx context.Context) error {
	if s.options.ReadOnly {
		return s.openReadOnly(ctx)
	}
	if err := rejectOrphanedWAL(s.path); err != nil {
		return err
	}
	if s.options.Existing {
		if _, err := os.Stat(s.path); err != nil {
			return cannotOpen(s.path, err)
		}
	} else if err := createFile(s.path); err != nil {
		return err
	}
	look := func() (id identity, err error) {
		err = s.retryBusy(ctx, func() (err error) {
			id, err = s.openAndIdentify()
			return err
		})
		return id, err
	}
	var id identity
	var err error
	if s.options.Existing {
		id, err = s.awaitContent(ctx, look)
	} else {
		id, err = look()
	}
	if err != nil {
		return err
	}
	if !id.current() {
		if err := s.migrate(ctx); err != nil {
			return err
		}
	}
	if err := s.writer.mayWrite(); err != nil {
		return err
	}
	if err := s.openReaders(dataSource(s.path, "ro", &s.options)); err != nil {
		return err
	}
	if err := s.refreshOnOpen(ctx); err != nil {
		return err
	}
	s.remember()
	return nil
}

// openAndIdentify opens the writing connection and checks whether the file may be used. Other processes that open or
// convert the file may keep it locked.
func (s *Store) openAndIdentify() (identity, error) {
	if s.writer == nil {
		c, err := s.openWriter()
		if err != nil {
			return identity{}, err
		}
		s.writer = c
	}
	id, err := s.writer.identify()
	if err == nil {
		err = id.check(s.path)
	}
	if err != nil || s.options.Existing && id.blank() {
		return id, err
	}
	// In WAL mode readers do not wait for writers. Where the file system has no shared memory, the file keeps its
	// rollback journal.
	return id, s.writer.script("PRAGMA journal_mode = WAL")
}

// openWriter opens a writing connection. The connection does not wait for locks by itself; see retryBusy.
func (s *Store) openWriter() (*conn, error) {
	c, err := s.connect(dataSource(s.path, "rw", &s.options))
	if err != nil {
		return nil, err
	}
	for _, text := range []string{
		"PRAGMA busy_timeout = 0",
		"PRAGMA foreign_keys = ON",
		"PRAGMA synchronous = " + s.options.Synchronous,
		"PRAGMA journal_size_limit = 16777216", // shrink a WAL that grew during a long read
	} {
		if err := c.script(text); err != nil {
			return nil, errors.Join(err, c.Close())
		}
	}
	return c, nil
}

// openReadOnly opens a file that is not to be changed. On a read-only medium the shared-memory file that readers of a
// WAL need cannot be created; if there is no WAL, the file is opened as immutable. A file that another process has
// locked exclusively is being changed, and is not opened so.
func (s *Store) openReadOnly(ctx context.Context) error {
	if err := rejectOrphanedWAL(s.path); err != nil {
		return err
	}
	if _, err := os.Stat(s.path); err != nil {
		return cannotOpen(s.path, err)
	}
	source := dataSource(s.path, "ro", &s.options)
	id, err := s.awaitContent(ctx, func() (identity, error) { return s.identifyReadOnly(source) })
	if cannotLock(err) {
		if journal := leftoverJournal(s.path); journal != "" {
			if isFull(err) {
				return err
			}
			return s.unreadable(journal, err)
		}
		immutable := source + "&immutable=1"
		if again, failed := s.identifyReadOnly(immutable); failed == nil {
			source, id, err = immutable, again, nil
		}
	}
	if err == nil {
		err = id.check(s.path)
	}
	if err != nil {
		return err
	}
	if id.blank() {
		return rejectBlank(s.path)
	}
	if !id.current() {
		return problem.New(problem.StoreReadOnly, "the database %s has an older version, which cannot be read before it is migrated", s.path).
			WithHint("Open it once for writing, which migrates it.")
	}
	return s.openReaders(source)
}

// cannotLock reports whether reading failed because no file can be created or changed beside the database.
func cannotLock(err error) bool {
	c := primaryCode(err)
	return c == sqlite3.SQLITE_CANTOPEN || c == sqlite3.SQLITE_READONLY || isFull(err)
}

// unreadable explains why a database with a WAL but without its shared-memory file cannot be read where that file cannot
// be created: without the newest steps in the WAL, readers would see a past state.
func (s *Store) unreadable(journal string, err error) error {
	return problem.New(problem.StoreReadOnly, "the database %s has a WAL that cannot be read in a folder that cannot be written to", s.path).
		WithCause(err).WithHint("Copy the file and %s to a folder that can be written to, and open the copy.", filepath.Base(journal))
}

func (s *Store) identifyReadOnly(source string) (identity, error) {
	c, err := s.connect(source)
	if err != nil {
		return identity{}, err
	}
	id, err := c.identify()
	return id, errors.Join(err, c.Close())
}

// openReaders opens the pool of reading connections.
func (s *Store) openReaders(source string) error {
	connector, err := sqlite.NewConnector(source)
	if err != nil {
		return err
	}
	pool := sql.OpenDB(&guardedConnector{connector, s.path})
	pool.SetMaxOpenConns(s.options.Readers)
	pool.SetMaxIdleConns(s.options.Readers)
	s.readers.pool, s.readers.check = pool, s.checkReplaced
	return nil
}

// guardedConnector opens connections to a file, unless that would destroy its WAL.
type guardedConnector struct {
	driver.Connector
	path string
}

// Connect implements driver.Connector.
func (c *guardedConnector) Connect(ctx context.Context) (driver.Conn, error) {
	if err := rejectOrphanedWAL(c.path); err != nil {
		return nil, err
	}
	return c.Connector.Connect(ctx)
}

// Close waits for the transaction under way, ends the calls of Watch and closes the file. The store cannot be used afterwards.
func (s *Store) Close() error {
	s.end()
	s.watching.Lock()
	defer s.watching.Unlock()
	s.turn <- struct{}{}
	defer func() { <-s.turn }()
	s.closed = true
	if s.replaced() {
		return nil // SQLite would overwrite the files there; the process releases the connections
	}
	s.opened.Store(nil)
	var errs []error
	if s.readers.pool != nil {
		errs = append(errs, s.readers.pool.Close())
	}
	if s.writer != nil {
		errs = append(errs, s.writer.Close())
		s.writer = nil
	}
	if err := errors.Join(errs...); err != nil {
		return failure("the database was not closed cleanly", err)
	}
	if s.options.ReadOnly && s.readers.pool != nil {
		s.tidy()
	}
	return nil
}

// tidy lets SQLite remove the empty WAL and the shared-memory file that reading a database creates. Only a connection
// that may write removes them, as the last one to be closed, which SQLite decides under its own locks. A WAL with
// content is left alone, because removing it would write to the database. A failure has no consequence and is not
// reported.
func (s *Store) tidy() {
	if wal, err := os.Stat(siblingFile(s.path, walSuffix)); err != nil || wal.Size() > 0 {
		return
	}
	c, err := s.connect(dataSource(s.path, "rw", &s.options))
	if err != nil {
		return
	}
	_ = c.script("PRAGMA schema_version") // the first read opens the WAL
	_ = c.Close()
}
