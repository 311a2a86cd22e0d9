//go:build !nopostgres

package config

import (
	"context"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historypg"
	"github.com/workflows-engine/workflows-engine/internal/buildstamp"
)

func targetOf(url, schema string) (target, error) {
	t, err := historypg.Resolve(url, historypg.Options{Schema: schema})
	if err != nil {
		return target{}, err
	}
	return target{name: t.String(), unverified: t.Unverified, password: t.Password}, nil
}

// ServerState examines the server of Postgres without changing anything.
func (c *Config) ServerState(ctx context.Context) (ServerState, error) {
	d, err := historypg.Diagnose(ctx, c.server.url, onServer{c}.options())
	return ServerState(d), err
}

// onServer is the store of Postgres.
type onServer struct{ c *Config }

func (s onServer) location() string { return s.c.server.target.name }
func (s onServer) flags() []string  { return s.c.server.flags }
func (s onServer) pages() string    { return s.c.server.pages }
func (onServer) makes() bool        { return false }

// options are those of a store.
func (s onServer) options() historypg.Options {
	v := &s.c.server
	return historypg.Options{
		Schema: v.schema, Conns: v.conns, NoMigrate: v.frozen, NoNotify: v.polls,
		Synchronous: string(s.c.Synchronous), Version: buildstamp.Read().Version,
	}
}

func (s onServer) open(ctx context.Context, how opening) (history.Store, error) {
	o := s.options()
	o.Existing, o.ReadOnly = how == toExisting, how == toRead
	store, err := s.connect(ctx, o)
	if err != nil {
		return nil, err // an interface with a nil pointer is not nil
	}
	return store, nil
}

func (s onServer) connect(ctx context.Context, o historypg.Options) (*historypg.Store, error) {
	store, err := historypg.Open(ctx, s.c.server.url, o)
	return store, withFlags(err)
}

// withFlags adds flags and commands to the hint of an error.
func withFlags(err error) error {
	e, ok := problem.As(err)
	if !ok {
		return err
	}
	named := *e
	named.Hint = problem.Glossary{
		"To create the tables, open the store for writing, with migrations, and not as one that exists": "The first run or workflows-engine db migrate creates the tables",
		"Give each process fewer connections": "Give each process fewer connections (--store-conns)",
		"Name another schema":                 "Name another schema (--store-schema)",
	}.Translate(e.Hint)
	return &named
}

func (s onServer) migrate(ctx context.Context, dryRun, backup bool) (Migration, error) {
	if !backup {
		return Migration{}, problem.New(problem.Unsupported, "--no-backup requires a store in a file: a schema is never backed up before a migration").
			WithHint("Leave --no-backup out. Back the schema up with pg_dump --schema=%s.", s.c.server.schema)
	}
	o := s.options()
	o.NoMigrate = false // this command is how operators migrate then
	if dryRun {
		m, err := historypg.Inspect(ctx, s.c.server.url, o)
		return serverPlan(m), withFlags(err)
	}
	store, err := s.connect(ctx, o)
	if err != nil {
		return Migration{}, err
	}
	return serverPlan(store.Migration()), store.Close()
}

func (s onServer) adopt(ctx context.Context) error {
	return withFlags(historypg.Adopt(ctx, s.c.server.url, s.options()))
}

func serverPlan(m historypg.Migration) Migration {
	return Migration{From: m.From, To: m.To, Runs: m.Runs, SQL: m.SQL}
}

// serverMigration returns the migration of a store on a server.
func serverMigration(store history.Store) (Migration, bool) {
	if s, ok := store.(*historypg.Store); ok {
		return serverPlan(s.Migration()), true
	}
	return Migration{}, false
}
