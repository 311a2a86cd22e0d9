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

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/internal/storeclock"
)

// Store is a history.Store in a SQLite file. Create it with Open. All methods are safe for concurrent use.
type Store struct {
	path    string
	options Options
	clock   *storeclock.Clock
	// turn is held by the goroutine that uses writer or changes closed.
	turn    chan struct{}
	writer  *conn
	closed  bool
	queue   queue
	readers readers
	// closing ends when Close is called. A call of Watch read-locks watching.
	closing  context.Context
	end      context.CancelFunc
	watching sync.RWMutex
	// opened is the identity of the open files, or nil if unknown. looked is the time of the last comparison, and gone reports that the files
	// differed; see replaced.
	opened atomic.Pointer[opened]
	looked atomic.Int64
	gone   atomic.Bool
	// migration is the migration done by Open. tidy removes the files created by reading, and the temporary copy at path, if path is one.
	migration Migration
	tidy      []func() error
	// maxLabelled is the largest number of runs with a label that are read from the index of labels. More are found in the order of time.
	maxLabelled int64
}

var _ history.Store = (*Store)(nil)

// Open opens the file at path, creates it if it is missing, and migrates it to the newest version. It rejects a database of the npm engine
// with IMPORT_REQUIRED. It rejects a file that is not a database of this engine, and an empty file beside a WAL with content, with
// HISTORY_CORRUPT, and a file of a newer version with HISTORY_VERSION_UNSUPPORTED. A rejected file is not changed.
//
// Before it migrates a file with runs, it makes a copy beside the file; see Migration. With Options.ReadOnly it does not migrate: it reads a
// file of an older version from a temporary copy.
func Open(ctx context.Context, path string, o Options) (*Store, error) {
	s, err := newStore(path, o)
	if err != nil {
		return nil, err
	}
	if err := s.open(ctx); err != nil {
		err = failure("the database "+s.path+" cannot be opened", err)
		if unclosed := s.Close(); unclosed != nil {
			err = errors.Join(err, unclosed)
		}
		return nil, err
	}
	return s, nil
}

// newStore returns a store that is not open yet.
func newStore(path string, o Options) (*Store, error) {
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
	s := &Store{path: absolute, options: o, turn: make(chan struct{}, 1), clock: storeclock.New(o.Now, o.Uptime), maxLabelled: 4000}
	s.closing, s.end = context.WithCancel(background)
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
	s.migration = id.migration()
	if !id.current() {
		if err := s.migrate(ctx); err != nil {
			return err
		}
		if err := s.retryBusy(ctx, func() error { return s.writer.script(useWAL) }); err != nil {
			return err
		}
	}
	if err := s.writer.mayWrite(); err != nil {
		return err
	}
	if err := s.openReaders(dataSource(s.path, "ro", &s.options)); err != nil {
		return err
	}
	if _, err := s.Now(ctx); err != nil {
		return err
	}
	s.remember()
	return nil
}

// openAndIdentify opens the writing connection and checks whether the file is usable. Other processes that open or convert the file may keep
// it locked.
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
	if err != nil || s.options.Existing && id.blank() || !id.blank() && !id.current() {
		return id, err // copy the file unchanged before a migration
	}
	return id, s.writer.script(useWAL)
}

// useWAL makes readers independent of writers. If the file system has no shared memory, the file keeps its rollback journal.
const useWAL = "PRAGMA journal_mode = WAL"

// openWriter opens a writing connection. The connection itself does not wait for locks; see retryBusy.
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

// Close waits for the current transaction, ends the calls of Watch and closes the file. The store cannot be used afterwards.
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
	for _, tidy := range s.tidy {
		errs = append(errs, tidy())
	}
	if err := errors.Join(errs...); err != nil {
		return failure("the database was not closed cleanly", err)
	}
	return nil
}
