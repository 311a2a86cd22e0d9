package historysql

import (
	"database/sql/driver"
	"embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"strings"
	"sync"

	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// applicationID marks the file as this engine's ("AWPh"). The file's user_version is the number of the newest migration
// applied to it.
const applicationID = 0x41575068

//go:embed migrations/history.sql
var createHistory string

//go:embed migrations/0*.sql
var migrationFiles embed.FS

// migrations returns the migrations in their order; each is applied once. Released ones are never edited.
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

// identity is what a file tells about itself.
type identity struct {
	application, version int64
	// objects is the number of tables, indexes, views and triggers.
	objects int64
	// columns are those of the table history with their place in the primary key; empty if there is no such table.
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

// ofEngine reports whether the file is a database of the npm engine, which marks it with no number.
func (id identity) ofEngine() bool {
	return id.application == 0 && id.version == 0 && id.holdsHistory()
}

// current reports whether the file needs no migration.
func (id identity) current() bool {
	return id.application == applicationID && id.version == int64(len(migrations()))
}

// blank reports whether the file is empty, without even an application id.
func (id identity) blank() bool {
	return id.objects == 0 && id.application == 0 && id.version == 0
}
