package config

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historymem"
	"github.com/workflows-engine/workflows-engine/history/historysql"
	"github.com/workflows-engine/workflows-engine/internal/config/envname"
	"github.com/workflows-engine/workflows-engine/internal/shellword"
)

// OpenStore opens the store, and creates the database on first use. The default directory is created, too; a missing directory that
// the user named is an error, because a misspelling is more likely.
func (c *Config) OpenStore(ctx context.Context) (history.Store, error) {
	if c.Store == Memory {
		return c.inMemory(), nil
	}
	if folder := filepath.Dir(c.StorePath); c.StorePathGiven {
		if info, err := os.Stat(folder); err != nil || !info.IsDir() {
			return nil, problem.New(problem.UsageError, "directory %s not found", folder).
				WithHint("Create the directory, or name another file with --db.")
		}
	}
	store, err := c.openFile(ctx, historysql.Options{})
	if err == nil {
		// Without the note only a process without XDG_DATA_HOME may miss this database, so this is only a warning.
		if err := c.LeaveNote(); err != nil && c.Log != nil {
			c.Log.Warn("note of the database location not written", "error", err)
		}
	}
	return store, err
}

// openFile opens the database.
func (c *Config) openFile(ctx context.Context, o historysql.Options) (history.Store, error) {
	o.Synchronous, o.Now = string(c.Synchronous), c.Now
	store, err := historysql.Open(ctx, c.StorePath, o)
	if err == nil {
		return store, nil
	}
	return nil, c.withCommands(err)
}

// withCommands replaces options and functions in the hint of an error by commands.
func (c *Config) withCommands(err error) error {
	e, ok := problem.As(err)
	if !ok {
		return err
	}
	named := *e
	named.Hint = problem.Glossary{
		"Options.NoBackup": "workflows-engine store migrate --no-backup --db " + c.StorePath,
		"graph.ImportDatabase": shellword.Command([]string{"workflows-engine", "import"}, []string{c.StorePath},
			"--db", strings.TrimSuffix(c.StorePath, filepath.Ext(c.StorePath))+".imported.db"),
	}.Translate(e.Hint)
	return &named
}

func (c *Config) inMemory() history.Store { return historymem.NewWith(historymem.Options{Now: c.Now}) }

// missing reports whether the database file does not exist.
func (c *Config) missing() bool {
	_, err := os.Stat(c.StorePath)
	return errors.Is(err, fs.ErrNotExist) && !historysql.LeftoverWAL(c.StorePath)
}

// MakesStore reports whether OpenStore would create a database, or fill an empty file. SQLite treats a file of one byte as empty,
// too.
func (c *Config) MakesStore() bool {
	if c.Store == Memory {
		return false
	}
	info, err := os.Stat(c.StorePath)
	return errors.Is(err, fs.ErrNotExist) || err == nil && info.Size() <= 1
}

// OpenExistingStore is OpenStore for commands on existing runs: a database that the user named
// must exist and not be empty. A default database that does
// not exist yet is empty.
func (c *Config) OpenExistingStore(ctx context.Context) (history.Store, error) {
	if store, err := c.absent(); store != nil || err != nil {
		return store, err
	}
	return c.openFile(ctx, historysql.Options{Existing: true})
}

// OpenStoreToRead opens the store for commands that only read, without a change of the database or its directory. A default
// database that does not exist yet is empty. A database of an older version is read from a temporary copy.
func (c *Config) OpenStoreToRead(ctx context.Context) (history.Store, error) {
	if store, err := c.absent(); store != nil || err != nil {
		return store, err
	}
	return c.openFile(ctx, historysql.Options{ReadOnly: true})
}

// absent returns the store in place of a missing database: an empty one in memory for the default path, an error for a given path.
func (c *Config) absent() (history.Store, error) {
	switch {
	case c.Store == Memory, c.missing() && !c.StorePathGiven:
		return c.inMemory(), nil
	case c.missing():
		return nil, problem.New(problem.UsageError, "database %s not found", c.StorePath).
			WithHint("Check --db and %s; leave both out for the default database.", envname.StorePath)
	}
	return nil, nil
}

// MigrateStore migrates the database to the newest version. With dryRun it only returns the plan.
func (c *Config) MigrateStore(ctx context.Context, dryRun, backup bool) (historysql.Migration, error) {
	if c.Store == Memory {
		return historysql.Migration{}, problem.New(problem.UsageError, "--store memory cannot be migrated").
			WithHint("Name a file with --db.")
	}
	if _, err := os.Stat(c.StorePath); errors.Is(err, fs.ErrNotExist) {
		c.StorePathGiven = true // here even the default database must exist
	}
	if _, err := c.absent(); err != nil {
		return historysql.Migration{}, err
	}
	if dryRun {
		m, err := historysql.Inspect(ctx, c.StorePath, historysql.Options{})
		return m, c.withCommands(err)
	}
	store, err := c.openFile(ctx, historysql.Options{Existing: true, NoBackup: !backup})
	if err != nil {
		return historysql.Migration{}, err
	}
	return store.(*historysql.Store).Migration(), store.Close()
}

// MigrationNote describes the migration of a store at its opening, "" without one.
func MigrationNote(store history.Store) string {
	s, ok := store.(*historysql.Store)
	if !ok {
		return ""
	}
	switch m := s.Migration(); {
	case m.From == m.To:
		return ""
	case s.ReadOnly():
		return fmt.Sprintf("the database has %s and is read from a temporary copy; store migrate migrates it to version %d", VersionName(m.From), m.To)
	case m.Backup != "":
		return fmt.Sprintf("the database was migrated from %s to version %d; backup: %s", VersionName(m.From), m.To, m.Backup)
	}
	return ""
}

// VersionName names the version of a database.
func VersionName(version int) string {
	return fmt.Sprintf("version %d", version)
}

// Versions returns the version of a database and the newest one; they are equal for a store without versions.
func Versions(store history.Store) (from, to int) {
	if s, ok := store.(*historysql.Store); ok {
		m := s.Migration()
		return m.From, m.To
	}
	return 0, 0
}
