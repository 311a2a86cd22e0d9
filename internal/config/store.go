package config

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historymem"
	"github.com/workflows-engine/workflows-engine/history/historysql"
)

// backend is a kind of store with its settings.
type backend interface {
	// location names the database in messages, without user and password; "" for a store in memory.
	location() string
	// flags let another command reach the same runs.
	flags() []string
	// pages is the file with the addresses of the database's pages; see page.Announce.
	pages() string
	// open opens the store.
	open(ctx context.Context, how opening) (history.Store, error)
	// makes reports whether a file would be created or filled.
	makes() bool
	// migrate migrates the database to the newest version. With dryRun it only returns the plan.
	migrate(ctx context.Context, dryRun, backup bool) (Migration, error)
	// adopt gives the database a new id, by which processes that used it before notice that it was restored.
	adopt(ctx context.Context) error
}

// opening is how a store is opened.
type opening int

const (
	toCreate   opening = iota // created on first use
	toExisting                // a database that the user named must exist
	toRead                    // never changed
)

func (c *Config) backend() backend {
	switch c.Store {
	case Memory:
		return inMemory{c}
	case Postgres:
		return onServer{c}
	case Elsewhere:
		return elsewhere{c}
	}
	return inFile{c}
}

// StoreLine describes the store in one line (spec: cli-and-config, 3.2).
func (c *Config) StoreLine() string {
	if at := c.Location(); at != "" {
		return fmt.Sprintf("execution history store: %s (%s)", c.Store, at)
	}
	return "execution history store: " + string(c.Store)
}

// Location names the database in messages: the path of its file, or server, database and schema. It has no password and is "" for a store in
// memory. Two configurations with the same location use the same database.
func (c *Config) Location() string { return c.backend().location() }

// StoreFlags let another command reach the same runs. The address of a server is left out if it has a password.
func (c *Config) StoreFlags() []string { return c.backend().flags() }

// StoreGiven reports whether the user named the database.
func (c *Config) StoreGiven() bool { return c.Store == Postgres || c.StorePathGiven }

// PageFile returns the file with the addresses of the database's pages; "" for a store in memory. See page.Announce.
func (c *Config) PageFile() string { return c.backend().pages() }

// OpenStore opens the store, and creates the database on first use. The default directory is created, too; a missing directory that
// the user named is an error, because a misspelling is more likely.
func (c *Config) OpenStore(ctx context.Context) (history.Store, error) {
	return c.backend().open(ctx, toCreate)
}

// OpenExistingStore is OpenStore for commands on existing runs: a database that the user named must exist and not be empty. A default
// database that does not exist yet is empty.
func (c *Config) OpenExistingStore(ctx context.Context) (history.Store, error) {
	return c.backend().open(ctx, toExisting)
}

// OpenStoreToRead opens the store for commands that only read, without a change of the database or its directory. A default
// database that does not exist yet is empty. A file of an older version is read from a temporary copy.
func (c *Config) OpenStoreToRead(ctx context.Context) (history.Store, error) {
	return c.backend().open(ctx, toRead)
}

// MakesStore reports whether OpenStore would create a database file, or fill an empty one.
func (c *Config) MakesStore() bool { return c.backend().makes() }

// Migration describes the migration of a database. From equals To if there is nothing to migrate.
type Migration struct {
	From, To int
	// Runs and Bytes are the size of the database; Bytes is 0 for a server.
	Runs, Bytes int64
	// Backup is the file with the backup, "" without one.
	Backup string
	// SQL are the statements of the plan, for a server.
	SQL string
}

// MigrateStore migrates the database to the newest version. With dryRun it only returns the plan.
func (c *Config) MigrateStore(ctx context.Context, dryRun, backup bool) (Migration, error) {
	return c.backend().migrate(ctx, dryRun, backup)
}

// AdoptStore gives a restored database a new id, so that processes that used it before stop with STORE_REPLACED. It returns
// UNSUPPORTED_BY_BACKEND for a file, whose replacement processes notice by themselves.
func (c *Config) AdoptStore(ctx context.Context) error { return c.backend().adopt(ctx) }

// MigrationNote describes the migration of a store at its opening, "" without one.
func MigrationNote(store history.Store) string {
	m, ok := migrationOf(store)
	if !ok || m.From >= m.To {
		return ""
	}
	s, file := store.(*historysql.Store)
	switch {
	case file && s.ReadOnly():
		return fmt.Sprintf("the database has %s and is read from a temporary copy; db migrate migrates it to version %d", VersionName(m.From), m.To)
	case m.Backup != "":
		return fmt.Sprintf("the database was migrated from %s to version %d; backup: %s", VersionName(m.From), m.To, m.Backup)
	case !file && m.From > 0:
		return fmt.Sprintf("the database was migrated from %s to version %d", VersionName(m.From), m.To)
	}
	return ""
}

// VersionName names the version of a database.
func VersionName(version int) string {
	return fmt.Sprintf("version %d", version)
}

// Versions returns the version of a database and the newest one; they are equal for a store without versions.
func Versions(store history.Store) (from, to int) {
	m, _ := migrationOf(store)
	return m.From, m.To
}

// migrationOf returns the migration of a store at its opening. The result is false for a store without versions.
func migrationOf(store history.Store) (Migration, bool) {
	if s, ok := store.(*historysql.Store); ok {
		return fileMigration(s.Migration()), true
	}
	return serverMigration(store)
}

// inMemory is the store of Memory.
type inMemory struct{ c *Config }

func (inMemory) location() string { return "" }
func (inMemory) flags() []string  { return []string{"--" + flagStore, string(Memory)} }
func (inMemory) pages() string    { return "" }
func (inMemory) makes() bool      { return false }

func (m inMemory) open(context.Context, opening) (history.Store, error) {
	return historymem.NewWith(historymem.Options{Now: m.c.Now}), nil
}

func (inMemory) migrate(context.Context, bool, bool) (Migration, error) {
	return Migration{}, problem.New(problem.UsageError, "--store memory cannot be migrated").
		WithHint("Name a file with --db.")
}

func (inMemory) adopt(context.Context) error {
	return problem.New(problem.UsageError, "--store memory cannot be restored").WithHint("Name a server with --store-url.")
}

// elsewhere stands for a Place, which has no store to open.
type elsewhere struct{ c *Config }

func (e elsewhere) location() string { return e.c.elsewhere }
func (e elsewhere) flags() []string  { return e.c.elsewhereFlags }
func (elsewhere) pages() string      { return "" }
func (elsewhere) makes() bool        { return false }

func (elsewhere) open(context.Context, opening) (history.Store, error) { return nil, errElsewhere() }

func (elsewhere) migrate(context.Context, bool, bool) (Migration, error) {
	return Migration{}, errElsewhere()
}

func (elsewhere) adopt(context.Context) error { return errElsewhere() }

func errElsewhere() error {
	return problem.New(problem.Unsupported, "the runs are not in a database of this engine").WithHint("Nothing was changed.")
}

// shortHash returns a short name for a text.
func shortHash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:8])
}
