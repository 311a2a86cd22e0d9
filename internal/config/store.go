package config

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historymem"
	"github.com/workflows-engine/workflows-engine/history/historysql"
	"github.com/workflows-engine/workflows-engine/internal/config/envname"
)

// OpenStore opens the store, and makes the database on first use. The default folder is made too; a missing folder that
// the user named is refused, since a misspelling is more likely.
func (c *Config) OpenStore(ctx context.Context) (history.Store, error) {
	if c.Store == Memory {
		return c.inMemory(), nil
	}
	if folder := filepath.Dir(c.StorePath); c.StorePathGiven {
		if info, err := os.Stat(folder); err != nil || !info.IsDir() {
			return nil, problem.New(problem.UsageError, "%s: there is no such folder", folder).
				WithHint("Make the folder, or name another file with --store-path.")
		}
	}
	return historysql.Open(ctx, c.StorePath, historysql.Options{Synchronous: string(c.Synchronous), Now: c.Now})
}

func (c *Config) inMemory() history.Store { return historymem.NewWith(historymem.Options{Now: c.Now}) }

// missing reports whether there is no database at the path.
func (c *Config) missing() bool {
	_, err := os.Stat(c.StorePath)
	return errors.Is(err, fs.ErrNotExist) && !historysql.LeftoverWAL(c.StorePath)
}

// MakesStore reports whether OpenStore would make a database, or fill an empty file. To SQLite a file of one byte is empty
// too.
func (c *Config) MakesStore() bool {
	if c.Store == Memory {
		return false
	}
	info, err := os.Stat(c.StorePath)
	return errors.Is(err, fs.ErrNotExist) || err == nil && info.Size() <= 1
}

// OpenExistingStore is OpenStore for commands that only make sense on runs that exist: a database that the user named
// and that is not there is refused instead of made, and one that is empty instead of filled. A default database that is
// not there yet holds nothing.
func (c *Config) OpenExistingStore(ctx context.Context) (history.Store, error) {
	switch {
	case c.Store == Memory, c.missing() && !c.StorePathGiven:
		return c.inMemory(), nil
	case c.missing():
		return nil, problem.New(problem.UsageError, "there is no database %s", c.StorePath).
			WithHint("Check --store-path and %s; leave both out for the default database.", envname.StorePath)
	}
	return historysql.Open(ctx, c.StorePath, historysql.Options{Synchronous: string(c.Synchronous), Existing: true, Now: c.Now})
}

// OpenStoreToRead opens the store for commands that only read, without changing a database or its folder. A default
// database that is not there yet holds nothing. One of an older form is brought to the newest if it can be written to.
func (c *Config) OpenStoreToRead(ctx context.Context) (history.Store, error) {
	if c.Store == Memory || c.missing() && !c.StorePathGiven {
		return c.inMemory(), nil
	}
	store, err := historysql.Open(ctx, c.StorePath, historysql.Options{ReadOnly: true, Now: c.Now})
	switch {
	case err == nil:
		return store, nil
	case errors.Is(err, problem.StoreLocked), errors.Is(err, problem.HistoryCorrupt):
		return nil, err // opening it for writing would fail in the same way
	}
	writing, failed := c.OpenExistingStore(ctx)
	switch {
	case failed == nil:
		return writing, nil
	case errors.Is(failed, problem.UsageError):
		return nil, failed
	}
	return nil, err
}
