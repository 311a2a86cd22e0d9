package config

import (
	"cmp"
	"context"
	"errors"
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

// inFile is the store of SQLite.
type inFile struct{ c *Config }

func (f inFile) location() string { return f.c.StorePath }
func (f inFile) flags() []string  { return []string{"--" + flagDB, f.c.StorePath} }
func (f inFile) pages() string    { return f.c.StorePath + ".page" }

func (f inFile) open(ctx context.Context, how opening) (history.Store, error) {
	if how != toCreate {
		if store, err := f.absent(); store != nil || err != nil {
			return store, err
		}
		return f.openFile(ctx, historysql.Options{Existing: how == toExisting, ReadOnly: how == toRead, FollowWrites: true})
	}
	if err := f.c.CheckStoreDirectory(); err != nil {
		return nil, err
	}
	store, err := f.openFile(ctx, historysql.Options{FollowWrites: true})
	if err == nil {
		// Without the note only a process without XDG_DATA_HOME may miss this database, so this is only a warning.
		if err := f.c.LeaveNote(); err != nil && f.c.Log != nil {
			f.c.Log.Warn("note of the database location not written", "error", err)
		}
	}
	return store, err
}

// CheckStoreDirectory returns an error if the settings name a database file in a directory that does not exist. The directory of the default
// database is created.
func (c *Config) CheckStoreDirectory() error {
	if c.Store != SQLite || !c.StorePathGiven {
		return nil
	}
	folder := filepath.Dir(c.StorePath)
	if info, err := os.Stat(folder); err != nil || !info.IsDir() {
		return problem.New(problem.UsageError, "directory %s not found", folder).
			WithHint("Create the directory, or name another file with %s.", inFile{c}.flag())
	}
	return nil
}

// flag is the flag that names the file.
func (f inFile) flag() string { return cmp.Or(f.c.placeFlag, "--"+flagDB) }

// openFile opens the database.
func (f inFile) openFile(ctx context.Context, o historysql.Options) (history.Store, error) {
	o.Synchronous, o.Now = string(f.c.Synchronous), f.c.Now
	store, err := historysql.Open(ctx, f.c.StorePath, o)
	if err == nil {
		return store, nil
	}
	return nil, f.withCommands(err)
}

// withCommands replaces options and functions in the hint of an error by commands.
func (f inFile) withCommands(err error) error {
	e, ok := problem.As(err)
	if !ok {
		return err
	}
	path := f.c.StorePath
	named := *e
	named.Hint = problem.Glossary{
		"Options.NoBackup": "workflows-engine db migrate --no-backup --db " + path,
		"graph.ImportDatabase": shellword.Command([]string{"workflows-engine", "db", "import"}, []string{path},
			"--db", strings.TrimSuffix(path, filepath.Ext(path))+".imported.db"),
	}.Translate(e.Hint)
	return &named
}

// missing reports whether the database file does not exist.
func (f inFile) missing() bool {
	_, err := os.Stat(f.c.StorePath)
	return errors.Is(err, fs.ErrNotExist) && !historysql.LeftoverWAL(f.c.StorePath)
}

// makes reports whether the file does not exist or is empty. SQLite treats a file of one byte as empty, too.
func (f inFile) makes() bool {
	info, err := os.Stat(f.c.StorePath)
	return errors.Is(err, fs.ErrNotExist) || err == nil && info.Size() <= 1
}

// absent returns the store in place of a missing database: an empty one in memory for the default path, an error for a given path.
func (f inFile) absent() (history.Store, error) {
	switch missing := f.missing(); {
	case missing && !f.c.StorePathGiven:
		return historymem.NewWith(historymem.Options{Now: f.c.Now}), nil
	case missing && f.c.placeFlag != "":
		return nil, problem.New(problem.UsageError, "database %s not found", f.c.StorePath).WithHint("Name another database with %s.", f.c.placeFlag)
	case missing:
		return nil, problem.New(problem.UsageError, "database %s not found", f.c.StorePath).
			WithHint("Check --db and %s; leave both out for the default database.", envname.StorePath)
	}
	return nil, nil
}

func (f inFile) migrate(ctx context.Context, dryRun, backup bool) (Migration, error) {
	if _, err := os.Stat(f.c.StorePath); errors.Is(err, fs.ErrNotExist) {
		f.c.StorePathGiven = true // here even the default database must exist
	}
	if _, err := f.absent(); err != nil {
		return Migration{}, err
	}
	if dryRun {
		m, err := historysql.Inspect(ctx, f.c.StorePath, historysql.Options{})
		return fileMigration(m), f.withCommands(err)
	}
	store, err := f.openFile(ctx, historysql.Options{Existing: true, NoBackup: !backup})
	if err != nil {
		return Migration{}, err
	}
	return fileMigration(store.(*historysql.Store).Migration()), store.Close()
}

func fileMigration(m historysql.Migration) Migration {
	return Migration{From: m.From, To: m.To, Runs: m.Runs, Bytes: m.Bytes, Backup: m.Backup}
}

func (f inFile) adopt(context.Context) error {
	return problem.New(problem.Unsupported, "db adopt requires a PostgreSQL server: processes notice by themselves that the file %s was replaced", f.c.StorePath).
		WithHint("Nothing was done, and nothing needs to be done. To adopt the tables of a server, name it with --store-url.")
}
