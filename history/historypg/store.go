package historypg

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
)

// Store is a history.Store in a schema of a PostgreSQL database. Create it with Open. All methods are safe for concurrent use.
type Store struct {
	options Options
	session *session
	where   Where
	texts   texts
	pool    *pgxpool.Pool
	queue   queue
	// id is the name that the store has in its table meta, migration what Open did.
	id        string
	migration Migration
	// replaced is the error of all further writes, once the store was replaced or migrated beyond this release.
	replaced atomic.Pointer[error]
	// known holds the hashes of definitions that this process has stored.
	known sync.Map
	// lanes are lanes that had ready runs when this process claimed some.
	lanes knownLanes
	// runsChannel and readyChannel are the channels of notifications, "" without them.
	runsChannel, readyChannel string
	announced                 recent
	listener                  listener
	writeTimeout              time.Duration
	// closing ends when Close is called.
	closing context.Context
	end     context.CancelFunc
}

var (
	_ history.Store  = (*Store)(nil)
	_ history.Prober = (*Store)(nil)
)

// Where names a store without secrets: it holds neither the user nor the password.
type Where struct {
	// Host is the name or address of the server with its port, or the folder of its socket; several are separated by commas.
	Host string
	// Database and Schema are names in the server. Database is "" for the database that has the user's name.
	Database, Schema string
}

// String returns a text such as "db.example.org:5432/runs, schema workflows_engine".
func (w Where) String() string { return w.Host + "/" + w.Database + ", schema " + w.Schema }

// Open opens the store in a schema of the database that url names, creates the schema and the tables if they are missing, and migrates them to
// the newest version. url is a URL such as postgres://user@host/database?sslmode=verify-full, or the libpq form "host=… dbname=…"; several hosts
// are allowed. What it leaves out comes from libpq's environment variables, password file and service file.
//
// It returns USAGE_ERROR for invalid options or an invalid url, STORE_UNAVAILABLE if the server cannot be reached or refuses the user,
// HISTORY_VERSION_UNSUPPORTED for a store of a newer version, and HISTORY_CORRUPT if the schema holds tables of another application. No error
// contains the user or the password.
func Open(ctx context.Context, url string, o Options) (*Store, error) {
	s, err := newStore(url, o)
	if err != nil {
		return nil, err
	}
	if err := s.open(ctx); err != nil {
		return nil, errors.Join(s.readFailure(ctx, "the store was not opened", err), s.Close())
	}
	return s, nil
}

// newStore returns a store that is not connected yet.
func newStore(url string, o Options) (*Store, error) {
	if err := o.fill(); err != nil {
		return nil, err
	}
	x, err := newSession(url, &o)
	if err != nil {
		return nil, err
	}
	s := &Store{options: o, session: x, where: x.where, texts: texts{schema: quoted(o.Schema)}, writeTimeout: writeTimeout}
	if !o.NoNotify && !x.pooled {
		s.runsChannel, s.readyChannel = channelOf(o.Schema, "runs"), channelOf(o.Schema, "ready")
	}
	s.closing, s.end = context.WithCancel(context.Background())
	if s.pool, err = pgxpool.NewWithConfig(s.closing, x.config); err != nil {
		s.end()
		return nil, s.failure("the store was not opened", err)
	}
	return s, nil
}

func (s *Store) open(ctx context.Context) error {
	var id identity
	err := s.read(ctx, "the store was not opened", func(q queries) (err error) {
		if id, err = s.identify(ctx, q); err == nil && id.version >= newest && !s.options.ReadOnly {
			err = s.mayWriteTables(ctx, q)
		}
		return err
	})
	if err == nil {
		err = s.check(id)
	}
	if err != nil {
		return err
	}
	s.id, s.migration = id.id, Migration{From: id.version, To: newest}
	if id.version >= newest {
		return nil
	}
	return s.migrate(ctx)
}

// mayWriteTables returns an error if the role lacks rights. Otherwise a process would open the store, and fail at its first write.
func (s *Store) mayWriteTables(ctx context.Context, q queries) error {
	rows, err := q.Query(ctx, diagnoseTables, s.options.Schema)
	if err != nil {
		return err
	}
	lacking, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil || len(lacking) == 0 {
		return err
	}
	return problem.New(problem.StoreUnavailable, "the role may not write %s in schema %s", problem.AndList(lacking), s.options.Schema).
		WithHint("Grant the role the rights that docs/database.md lists. Commands that only read need no more than SELECT.")
}

// Migration returns the migration done by Open.
func (s *Store) Migration() Migration { return s.migration }

// Where returns the place of the store, to be shown to users.
func (s *Store) Where() Where { return s.where }

// ReadOnly reports whether the store is read-only.
func (s *Store) ReadOnly() bool { return s.options.ReadOnly }

// Close ends the calls of Watch and WatchReady, waits for calls that are under way, and closes the connections. The store cannot be used
// afterwards.
func (s *Store) Close() error {
	s.end()
	s.listener.mu.Lock()
	ended := s.listener.ended
	s.listener.mu.Unlock()
	if ended != nil {
		<-ended
	}
	s.pool.Close()
	return nil
}

// probeBytes is the size of a probe's write, in bytes. A step of a run may need as much.
const probeBytes = 64 << 10

const (
	addProbe  = `INSERT INTO @blobs (run, hash, content) VALUES (0, $1::text, $2::text)`
	dropProbe = `DELETE FROM @blobs WHERE run = 0 AND hash = $1::text`
)

// Probe commits a write; see history.Prober. A row that is added and removed in one transaction is still written.
func (s *Store) Probe(ctx context.Context) error {
	return s.transact(ctx, "the store cannot be written", true, func(ctx context.Context, tx pgx.Tx) error {
		random := make([]byte, probeBytes/2)
		rand.Read(random)
		name := rand.Text()
		if _, err := tx.Exec(ctx, s.texts.of(addProbe), name, hex.EncodeToString(random)); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, s.texts.of(dropProbe), name)
		return err
	})
}
