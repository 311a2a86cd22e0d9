//go:build nopostgres

package config

import (
	"context"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
)

func errNoPostgres() error {
	return problem.New(problem.Unsupported, "this program was built without the store on PostgreSQL").
		WithHint("Build it without the tag nopostgres, or name a file with --db.")
}

func targetOf(string, string) (target, error) { return target{}, errNoPostgres() }

func serverMigration(history.Store) (m Migration, ok bool) { return m, false }

// ServerState is an error: this program cannot connect to servers.
func (c *Config) ServerState(context.Context) (s ServerState, err error) { return s, errNoPostgres() }

// onServer stands for the store on a server, which this program cannot open.
type onServer struct{ c *Config }

func (s onServer) location() string { return s.c.server.target.name }
func (s onServer) flags() []string  { return s.c.server.flags }
func (s onServer) pages() string    { return s.c.server.pages }
func (onServer) makes() bool        { return false }

func (onServer) open(context.Context, opening) (history.Store, error) { return nil, errNoPostgres() }

func (onServer) migrate(context.Context, bool, bool) (Migration, error) {
	return Migration{}, errNoPostgres()
}

func (onServer) adopt(context.Context) error { return errNoPostgres() }
