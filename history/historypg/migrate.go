package historypg

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5"

	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// Migration describes how the tables of a store are, or were, brought to the newest version. Two neighbouring releases share a schema, so that
// machines can be updated one after another: meta.min_reader and meta.min_writer say which versions may still read and write.
type Migration struct {
	// From is the version of the store, To the newest version. They are equal if no migration is needed. From is 0 if there is no store yet, and
	// above To if a newer release migrated it in a way that this one still understands.
	From, To int
	// Runs is the number of runs in the store, Bytes the size of its tables and indexes. Only Inspect sets them.
	Runs, Bytes int64
	// SQL holds the statements of the migration; "" if no statement is needed. Only Inspect sets it.
	SQL string
}

// newest is the version of the tables that this release makes.
const newest = 1

// minServer is the oldest version of PostgreSQL that is supported.
const minServer = 14

//go:embed migrations/*.sql
var migrationFiles embed.FS

// migrations returns the migrations in order; each is applied once, in a transaction of its own. Never edit a released one.
var migrations = sync.OnceValue(func() []string {
	names, err := fs.Glob(migrationFiles, "migrations/*.sql")
	if err != nil || len(names) != newest {
		panic(fmt.Sprintf("historypg: %d migrations, %v", len(names), err))
	}
	texts := make([]string, len(names))
	for i, name := range names {
		if !strings.HasPrefix(name, fmt.Sprintf("migrations/%03d_", i+1)) {
			panic("historypg: migrations are not numbered from 1: " + name)
		}
		text, err := fs.ReadFile(migrationFiles, name)
		if err != nil {
			panic(err)
		}
		texts[i] = string(text)
	}
	return texts
})

// identity is what the table meta says of a store; zero without one.
type identity struct {
	version, minReader, minWriter int
	id                            string
}

const (
	// lookAtServer is asked first. A connection of a pooler has the settings of the server. It reads the catalogue: to_regclass may still answer from
	// before a wait for lockStore.
	lookAtServer = `SELECT current_setting('server_version_num')::integer / 10000, current_setting('server_encoding'), current_setting('default_transaction_isolation'),
    EXISTS (SELECT 1 FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace WHERE n.nspname = $1::text AND c.relname = 'meta' AND c.relkind = 'r')`
	readMeta  = `SELECT version, min_reader, min_writer, id FROM @meta`
	hasSchema = `SELECT 1 FROM pg_namespace WHERE nspname = $1::text`
	lockStore = `SELECT pg_advisory_xact_lock(hashtextextended('workflows-engine ' || $1::text, 0))`
	weigh     = `SELECT (SELECT count(*) FROM @runs WHERE phase <> 'deleted'),
    (SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace WHERE n.nspname = $1::text AND c.relkind = 'r')`
)

// identify reads what the store is, and refuses a server that cannot hold one.
func (s *Store) identify(ctx context.Context, q queries) (id identity, err error) {
	var version int32
	var encoding, isolation string
	var exists bool
	if _, err := first(ctx, q, lookAtServer, []any{s.options.Schema}, &version, &encoding, &isolation, &exists); err != nil {
		return id, err
	}
	switch {
	case version < minServer:
		return id, problem.New(problem.StoreUnavailable, "the server %s is PostgreSQL %d", s.where.Host, version).WithHint("Use version %d or newer.", minServer)
	case encoding != "UTF8":
		return id, problem.New(problem.StoreUnavailable, "the database has the encoding %s", encoding).WithHint("Create one with ENCODING 'UTF8' TEMPLATE template0.")
	case isolation != "read committed":
		return id, problem.New(problem.StoreUnavailable, "transactions of the role are %s", isolation).
			WithHint("The store needs default_transaction_isolation = 'read committed': ALTER ROLE … SET it.")
	case !exists:
		return id, nil
	}
	return s.readMeta(ctx, q)
}

func (s *Store) readMeta(ctx context.Context, q queries) (id identity, err error) {
	var version, minReader, minWriter int32
	found, err := first(ctx, q, s.texts.of(readMeta), nil, &version, &minReader, &minWriter, &id.id)
	if err == nil && !found {
		err = s.noMeta()
	}
	id.version, id.minReader, id.minWriter = int(version), int(minReader), int(minWriter)
	return id, err
}

func (s *Store) noMeta() error {
	return problem.New(problem.HistoryCorrupt, "the table meta of the store in %s is empty", s.where).WithHint(hintForeign)
}

// check refuses a store that this release cannot use.
func (s *Store) check(id identity) error {
	o := &s.options
	switch {
	case id.minReader > newest, !o.ReadOnly && id.minWriter > newest:
		return tooNew(s.where, max(id.minReader, id.minWriter))
	case id.version == 0 && (o.Existing || o.ReadOnly || o.NoMigrate):
		return problem.New(problem.StoreUnavailable, "there is no store in %s", s.where).
			WithHint("Check the database and the schema. To create the tables, open the store for writing, with migrations, and not as one that exists.")
	case id.version < newest && (o.ReadOnly || o.NoMigrate):
		return problem.New(problem.StoreUnavailable, "the store in %s has version %d, and this engine uses version %d", s.where, id.version, newest).
			WithHint("Migrate it first, with a role that may: workflows-engine db migrate.")
	}
	return nil
}

func tooNew(w Where, version int) error {
	return problem.New(problem.HistoryNewer, "the store in %s needs version %d; this engine knows versions up to %d", w, version, newest).
		WithHint("A newer version of this engine migrated it. Update this engine.")
}

// migrate brings the store to the newest version. Processes migrate one after another; the others then find nothing to do.
func (s *Store) migrate(ctx context.Context) error {
	for {
		done := false
		err := pgx.BeginTxFunc(ctx, s.pool, pgx.TxOptions{IsoLevel: pgx.ReadCommitted, AccessMode: pgx.ReadWrite}, func(tx pgx.Tx) error {
			for _, text := range []string{"SET LOCAL lock_timeout = 0", unlimited} {
				if _, err := tx.Exec(ctx, text); err != nil {
					return err
				}
			}
			if _, err := tx.Exec(ctx, lockStore, s.options.Schema); err != nil {
				return err
			}
			id, err := s.identify(ctx, tx)
			if err == nil {
				err = s.check(id)
			}
			if err != nil || id.version >= newest {
				done = true
				s.id = id.id
				return err
			}
			if id.version == 0 {
				found, err := first(ctx, tx, hasSchema, []any{s.options.Schema}, new(int32))
				if err == nil && !found {
					_, err = tx.Exec(ctx, "CREATE SCHEMA "+s.texts.schema)
				}
				if err != nil {
					return err
				}
			}
			_, err = tx.Conn().PgConn().Exec(ctx, s.texts.qualify(migrations()[id.version])).ReadAll()
			return err
		})
		if err != nil || done {
			return err
		}
	}
}

// Inspect returns the migration that Open would do, and changes nothing. Its errors are those of Open.
func Inspect(ctx context.Context, url string, o Options) (m Migration, err error) {
	o.ReadOnly = true
	s, err := newStore(url, o)
	if err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	err = s.read(ctx, "the store cannot be read", func(q queries) error {
		id, err := s.identify(ctx, q)
		if err == nil && id.minReader > newest {
			err = tooNew(s.where, id.minReader)
		}
		m = Migration{From: id.version, To: newest}
		if err != nil || id.version == 0 {
			return err
		}
		_, err = first(ctx, q, s.texts.of(weigh), []any{s.options.Schema}, &m.Runs, &m.Bytes)
		return err
	})
	if err != nil {
		return Migration{}, err
	}
	if m.From < newest {
		var sql strings.Builder
		if m.From == 0 {
			fmt.Fprintf(&sql, "CREATE SCHEMA IF NOT EXISTS %s;\n", s.texts.schema)
		}
		for _, text := range migrations()[m.From:] {
			fmt.Fprintf(&sql, "BEGIN;\n%sCOMMIT;\n", s.texts.qualify(text))
		}
		m.SQL = sql.String()
	}
	return m, nil
}
