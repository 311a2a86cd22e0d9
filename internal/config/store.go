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
)

// OpenStore opens the store, and makes the database on first use. The default folder is made too; a missing folder that
// the user named is refused, since it is more likely a typing error.
func (c *Config) OpenStore(ctx context.Context) (history.Store, error) {
	if c.Store == Memory {
		return historymem.New(), nil
	}
	if folder := filepath.Dir(c.StorePath); c.StorePathGiven {
		if info, err := os.Stat(folder); err != nil || !info.IsDir() {
			return nil, problem.New(problem.UsageError, "%s: there is no such folder", folder).
				WithHint("Make the folder, or name another file with --store-path.")
		}
	}
	return historysql.Open(ctx, c.StorePath, historysql.Options{Synchronous: string(c.Synchronous)})
}

// OpenExistingStore is OpenStore for commands that only make sense on runs that exist: a database that the user named
// and that is not there is refused instead of made.
func (c *Config) OpenExistingStore(ctx context.Context) (history.Store, error) {
	if c.Store == SQLite && c.StorePathGiven {
		if _, err := os.Stat(c.StorePath); errors.Is(err, fs.ErrNotExist) {
			return nil, problem.New(problem.UsageError, "there is no database %s", c.StorePath).
				WithHint("Check --store-path and %s; leave both out for the default database.", envStorePath)
		}
	}
	return c.OpenStore(ctx)
}
