package historypg

import (
	"context"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
)

// Store is a history.Store in a schema of a PostgreSQL database. Create it with Open. All methods are safe for concurrent use.
type Store struct {
	history.Store
	pool *pgxpool.Pool
}

// Where names a store without secrets: it holds neither the user nor the password.
type Where struct {
	// Host is the name or address of the server with its port, or the folder of its socket.
	Host string
	// Database and Schema are names in the server.
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
	return nil, problem.New(problem.Unsupported, "not yet")
}

// Migration describes how the tables of a store are, or were, brought to the newest version.
type Migration struct {
	// From is the version of the store, To the newest version. They are equal if no migration is needed. From is 0 if there is no store yet.
	From, To int
	// Runs is the number of runs in the store, Bytes the size of its tables and indexes. Only Inspect sets them.
	Runs, Bytes int64
	// SQL holds the statements of the migration; "" if none is needed. Only Inspect sets it.
	SQL string
}

// Inspect returns the migration that Open would do, and changes nothing. Its errors are those of Open.
func Inspect(ctx context.Context, url string, o Options) (Migration, error) {
	return Migration{}, problem.New(problem.Unsupported, "not yet")
}

// Migration returns the migration done by Open.
func (s *Store) Migration() Migration { return Migration{} }

// Where returns the place of the store, to be shown to users.
func (s *Store) Where() Where { return Where{} }

// ReadOnly reports whether the store is read-only.
func (s *Store) ReadOnly() bool { return false }

// Close ends the calls of Watch and closes the connections. The store cannot be used afterwards.
func (s *Store) Close() error { return nil }
