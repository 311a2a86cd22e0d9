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

// Store is a history.Store in a SQLite file. Open makes one. All methods are safe for concurrent use.
type Store struct {
	path    string
	options Options
	// turn is held by whoever uses writer, or changes closed.
	turn    chan struct{}
	writer  *conn
	closed  bool
	queue   queue
	readers readers
	// closing ends when Close is called. Whoever watches holds watching for reading.
	closing  context.Context
	end      context.CancelFunc
	watching sync.RWMutex
	// opened is which files those are, nil if that is not known; looked is when it was last compared with what stands
	// there, and gone that it was another; see replaced.
	opened atomic.Pointer[opened]
	looked atomic.Int64
	gone   atomic.Bool
}

var _ history.Store = (*Store)(nil)

// Open opens the file at path, or makes it, and brings it to the newest version. Runs that another engine wrote to are
// folded. A file that is no database, not one of histories, or empty beside a log that is not, is refused with
// HISTORY_CORRUPT, one of a newer version with HISTORY_VERSION_UNSUPPORTED; they are left as they are.
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
		return nil, problem.New(problem.StoreUnavailable, "%s is a folder, and a database is a file", absolute).
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
	if err := refuseLost(s.path); err != nil {
		return err
	}
	if s.options.Existing {
		if _, err := os.Stat(s.path); err != nil {
			return cannotOpen(s.path, err)
		}
	} else if err := makeFile(s.path); err != nil {
		return err
	}
	look := func() (id identity, err error) {
		err = s.patiently(ctx, func() (err error) {
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
	if err := s.takeOver(ctx); err != nil {
		return err
	}
	s.remember()
	return nil
}

// openAndIdentify makes the writing connection and looks whether the file may be used. Other processes that are doing
// the same, or are converting the file, may keep it locked.
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
	// Readers then do not wait for writers. Where the file system cannot do it, the file keeps its journal.
	return id, s.writer.script("PRAGMA journal_mode = WAL")
}

// openWriter makes a writing connection. It does not wait for locks by itself; see patiently.
func (s *Store) openWriter() (*conn, error) {
	if err := refuseLost(s.path); err != nil {
		return nil, err
	}
	c, err := connect(dataSource(s.path, "rw", &s.options))
	if err != nil {
		return nil, err
	}
	for _, text := range []string{
		"PRAGMA busy_timeout = 0",
		"PRAGMA foreign_keys = ON",
		"PRAGMA synchronous = " + s.options.Synchronous,
		"PRAGMA journal_size_limit = 16777216", // a log that one long reader made grow shrinks again
	} {
		if err := c.script(text); err != nil {
			return nil, errors.Join(err, c.Close())
		}
	}
	return c, nil
}

// openReadOnly opens a file that stays as it is. A file on a medium that cannot be written to has no place for the
// lock file that readers of a write-ahead log share; without a log there is nothing to lock against. A file that somebody
// keeps to himself is none of those: it is being changed.
func (s *Store) openReadOnly(ctx context.Context) error {
	if err := refuseLost(s.path); err != nil {
		return err
	}
	if _, err := os.Stat(s.path); err != nil {
		return cannotOpen(s.path, err)
	}
	source := dataSource(s.path, "ro", &s.options)
	id, err := s.awaitContent(ctx, func() (identity, error) { return s.identifyReadOnly(source) })
	if cannotLock(err) {
		if log := unfinishedLog(s.path); log != "" {
			if isFull(err) {
				return err
			}
			return s.unreadable(log, err)
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
		return refuseBlank(s.path)
	}
	if !id.current() {
		return problem.New(problem.StoreReadOnly, "the database %s has an older form, which cannot be read without changing it", s.path).
			WithHint("Open it once for writing.")
	}
	return s.openReaders(source)
}

// cannotLock reports whether reading failed because nothing can be made or changed beside the file.
func cannotLock(err error) bool {
	c := primaryCode(err)
	return c == sqlite3.SQLITE_CANTOPEN || c == sqlite3.SQLITE_READONLY || isFull(err)
}

// unreadable explains the failure that a log without its lock file means where none can be made: the newest steps are
// in the log, and to leave them out would show a past that nobody was told of.
func (s *Store) unreadable(log string, err error) error {
	return problem.New(problem.StoreReadOnly, "the database %s has a log that cannot be read without writing beside it", s.path).
		WithCause(err).WithHint("Copy the file and %s to a folder that can be written to, and open the copy.", filepath.Base(log))
}

func (s *Store) identifyReadOnly(source string) (identity, error) {
	c, err := s.connect(source)
	if err != nil {
		return identity{}, err
	}
	id, err := c.identify()
	return id, errors.Join(err, c.Close())
}

// openReaders makes the pool of reading connections.
func (s *Store) openReaders(source string) error {
	connector, err := sqlite.NewConnector(source)
	if err != nil {
		return err
	}
	pool := sql.OpenDB(&carefulConnector{connector, s.path})
	pool.SetMaxOpenConns(s.options.Readers)
	pool.SetMaxIdleConns(s.options.Readers)
	s.readers.pool, s.readers.check = pool, s.standing
	return nil
}

// connect makes a connection to the file, unless that would destroy its log.
func (s *Store) connect(source string) (*conn, error) {
	if err := refuseLost(s.path); err != nil {
		return nil, err
	}
	return connect(source)
}

// carefulConnector is connect for the pool.
type carefulConnector struct {
	driver.Connector
	path string
}

// Connect implements driver.Connector.
func (c *carefulConnector) Connect(ctx context.Context) (driver.Conn, error) {
	if err := refuseLost(c.path); err != nil {
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
		return nil // SQLite would write over what stands there now; the connections go with the process
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
