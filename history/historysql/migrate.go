package historysql

import (
	"context"
	"database/sql/driver"
	"embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"strings"
	"sync"

	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// Migration describes how a file is, or was, brought to the newest version. Before the change, a copy of the file is made beside it, with its
// version and the time in its name, such as runs.db.v4-20261122T2209.bak. An older version of this engine can open the copy, but not the
// migrated file. The copy is made within the migrating transaction, so it is complete even while other processes write.
type Migration struct {
	// From is the version of the file, To the newest version. They are equal if no migration is needed, as in a new file.
	From, To int
	// Backup is the path of the copy made by Open, or "".
	Backup string
	// Runs is the number of runs in the file, Bytes the size of a copy. Only Inspect sets them.
	Runs, Bytes int64
}

// Migration returns the migration done by Open. A read-only store migrated a temporary copy.
func (s *Store) Migration() Migration { return s.migration }

// migration returns the migration that an accepted file needs.
func (id identity) migration() Migration {
	m := Migration{From: int(id.version), To: len(migrations())}
	if id.blank() {
		m.From = m.To
	}
	return m
}

// ReadOnly reports whether the store is read-only.
func (s *Store) ReadOnly() bool { return s.options.ReadOnly }

// Inspect returns the migration that Open would do, without changing the file.
func Inspect(ctx context.Context, path string, o Options) (Migration, error) {
	o.ReadOnly = true
	s, err := newStore(path, o)
	if err != nil {
		return Migration{}, err
	}
	m, err := s.inspect(ctx)
	s.removeEmptyWAL(s.path)
	return m, failure("the database "+s.path+" cannot be read", err)
}

const weigh = `SELECT
    (SELECT count(DISTINCT execution_id) FROM history),
    (SELECT page_count FROM pragma_page_count) * (SELECT page_size FROM pragma_page_size)`

func (s *Store) inspect(ctx context.Context) (Migration, error) {
	source, id, err := s.readable(ctx)
	if err != nil {
		return Migration{}, err
	}
	m := id.migration()
	c, err := s.connect(source)
	if err != nil {
		return m, err
	}
	defer c.Close()
	return m, c.query(weigh, func(row []driver.Value) error {
		m.Runs, _ = row[0].(int64)
		m.Bytes, _ = row[1].(int64)
		return nil
	})
}

// migrate brings the file to the newest version. It waits for a migration by another process, which may take longer than BusyTimeout.
func (s *Store) migrate(ctx context.Context) error {
	err := s.migrateOnce(ctx)
	for isBusy(err) && ctx.Err() == nil && len(partialsOf(linkTarget(s.path))) > 0 {
		err = s.migrateOnce(ctx)
	}
	return err
}

// migrateOnce migrates in one transaction.
func (s *Store) migrateOnce(ctx context.Context) error {
	var b backup
	err := s.transact(ctx, func(c *conn) error {
		id, err := c.identify() // another process may have migrated the file
		if err != nil {
			return err
		}
		s.migration = id.migration()
		if err := id.check(s.path); err != nil || id.current() {
			return err
		}
		if !id.blank() && !s.options.NoBackup {
			if b, err = s.backUp(ctx, id.version); err != nil {
				return err
			}
		}
		var script strings.Builder
		if id.blank() {
			script.WriteString(createHistory)
		}
		for _, text := range migrations()[id.version:] {
			script.WriteString(text)
		}
		fmt.Fprintf(&script, "PRAGMA application_id = %d;\nPRAGMA user_version = %d;\n", applicationID, len(migrations()))
		if err := c.script(script.String()); err != nil {
			return err
		}
		if err := refreshBehind(c); err != nil {
			return err
		}
		return b.keep()
	})
	if err != nil {
		b.drop(isFull(err)) // a restart loop must not fill the disk
		return err
	}
	s.migration.Backup = b.path
	return nil
}

const runsBehind = `SELECT execution_id FROM history GROUP BY execution_id
HAVING max(seq) > COALESCE((SELECT seq FROM executions AS e WHERE e.execution_id = history.execution_id), 0)`

// refreshBehind refolds the projections that are behind the records of their runs. Up to version 4 of the file, this could be the row of a
// run at full speed; up to version 12, the row of a run written to by another engine.
func refreshBehind(c *conn) error {
	ids, err := column(c, runsBehind)
	for _, id := range ids {
		if err == nil {
			err = foldAnew(c, id)
		}
	}
	return err
}

// applicationID marks the file as this engine's ("AWPh"). The file's user_version is the number of its newest migration.
const applicationID = 0x41575068

//go:embed migrations/history.sql
var createHistory string

//go:embed migrations/0*.sql
var migrationFiles embed.FS

// migrations returns the migrations in order; each is applied once. Never edit a released one.
var migrations = sync.OnceValue(func() []string {
	names, err := fs.Glob(migrationFiles, "migrations/0*.sql")
	if err != nil {
		panic(err)
	}
	texts := make([]string, len(names))
	for i, name := range names {
		if !strings.HasPrefix(name, fmt.Sprintf("migrations/%03d_", i+1)) {
			panic("historysql: migrations are not numbered from 1: " + name)
		}
		text, err := fs.ReadFile(migrationFiles, name)
		if err != nil {
			panic(err)
		}
		texts[i] = string(text)
	}
	return texts
})

// identity describes the kind and version of a file.
type identity struct {
	application, version int64
	// objects is the number of tables, indexes, views and triggers.
	objects int64
	// columns maps the columns of the table history to their place in the primary key; empty without this table.
	columns map[string]int64
}

const identify = `SELECT
    (SELECT application_id FROM pragma_application_id),
    (SELECT user_version FROM pragma_user_version),
    (SELECT count(*) FROM sqlite_schema),
    (SELECT json_group_object(name, pk) FROM pragma_table_info('history'))`

// identify reads the identity in one query, because another process may be migrating the file.
func (c *conn) identify() (identity, error) {
	var id identity
	err := c.query(identify, func(row []driver.Value) error {
		id.application, _ = row[0].(int64)
		id.version, _ = row[1].(int64)
		id.objects, _ = row[2].(int64)
		columns, _ := row[3].(string)
		return json.Unmarshal([]byte(columns), &id.columns)
	})
	return id, err
}

// check refuses files that this package must not change.
func (id identity) check(path string) error {
	switch {
	case id.application == applicationID && id.version > int64(len(migrations())):
		return problem.New(problem.HistoryNewer, "the database %s has version %d; this engine knows versions up to %d",
			path, id.version, len(migrations())).
			WithHint("A newer version of this engine migrated it. Update this engine.")
	case id.application == applicationID || id.blank():
		return nil
	case !id.ofEngine():
		return problem.New(problem.HistoryCorrupt, "%s is the database of another application", path).
			WithHint("Name another file; this one was not changed.")
	}
	return problem.New(problem.ImportRequired, "%s is a database of the npm engine", path).
		WithHint("graph.ImportDatabase imports its runs into a database of this engine.")
}

// holdsHistory reports whether the table history has the protocol's columns and key (spec: cli-and-config, 5.2).
func (id identity) holdsHistory() bool {
	for _, column := range []string{"kind", "name", "payload_json", "created_at"} {
		if _, ok := id.columns[column]; !ok {
			return false
		}
	}
	return id.columns["execution_id"] == 1 && id.columns["seq"] == 2
}

// ofEngine reports whether the file is a database of the npm engine, which sets no application id or version.
func (id identity) ofEngine() bool {
	return id.application == 0 && id.version == 0 && id.holdsHistory()
}

// current reports whether the file needs no migration.
func (id identity) current() bool {
	return id.application == applicationID && id.version == int64(len(migrations()))
}

// blank reports whether the file is empty and has no application id.
func (id identity) blank() bool {
	return id.objects == 0 && id.application == 0 && id.version == 0
}
