package doctor

import (
	"context"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/config"
)

const (
	// oldestServer is the oldest version of PostgreSQL that the store supports.
	oldestServer = 14
	// slowRoundTrip is the round trip beyond which it is longer than the work of most steps.
	slowRoundTrip = 20 * time.Millisecond
	// clockDifference is the difference of clocks beyond which the times shown confuse.
	clockDifference = 2 * time.Second
)

// server checks the server of the database. It returns false if the database cannot be read, because it does not exist yet or because of a
// problem that it reports.
func (r *Report) server(ctx context.Context, c *config.Config) (readable bool) {
	s, err := c.ServerState(ctx)
	if err != nil {
		// The store knows the reasons of a failed connection.
		if _, opened := c.MigrateStore(ctx, true, true); opened != nil {
			err = opened
		}
		r.AddError(Database, "database", err, "Check the address of the server.")
		return false
	}
	r.serverState(s, c.Connections())
	if s.Major < oldestServer || !s.UTF8 || len(s.Lacking) > 0 {
		return false
	}
	m, err := c.MigrateStore(ctx, true, true)
	switch {
	case err != nil:
		r.AddError(Database, "database", err, command(c, "db", "migrate", "--dry-run"))
	case m.From == 0 && !s.MayCreate:
		r.Add(Problem, DatabaseRights, "database", "Let a role that may create the schema run it: "+command(c, "db", "migrate"),
			"%s has no tables, and the user may not create them", c.Location())
	case m.From == 0:
		r.Add(OK, Database, "database", "", "the first run creates the tables in %s", c.Location())
	case m.From < m.To:
		r.older(c, m.From, m.To)
	default:
		return true
	}
	return false
}

// serverState reports the version, rights, connections, clock and round trip of a server. conns is the most that this process opens.
func (r *Report) serverState(s config.ServerState, conns int) {
	about := "one server"
	switch {
	case s.Standby:
		about = "a replica, " + s.Lag.String() + ", which only reading commands can use"
	case s.Synchronous:
		about = "commits wait for a replica"
	}
	switch {
	case s.Major < oldestServer:
		r.Add(Problem, DatabaseServer, "database", "Use a server of version 14 or newer.",
			"the server is PostgreSQL %s; the store requires 14 or newer", s.Version)
	case !s.UTF8:
		r.Add(Problem, DatabaseServer, "database", "Create a database with ENCODING 'UTF8'.", "the encoding of the database is not UTF8")
	case s.ReadOnly && !s.Standby:
		r.Add(Warning, DatabaseServer, "database", "Turn default_transaction_read_only off for the server, the database and the user.",
			"PostgreSQL %s lets the user only read (default_transaction_read_only), so no run can be written", s.Version)
	case s.RoundTrip > slowRoundTrip:
		r.Add(Warning, DatabaseServer, "database", "Run the process nearer to the server: each step waits for one round trip.",
			"PostgreSQL %s, %s, answers after %v", s.Version, about, s.RoundTrip.Round(100*time.Microsecond))
	default:
		r.Add(OK, DatabaseServer, "database", "", "PostgreSQL %s, %s, answers after %v", s.Version, about, s.RoundTrip.Round(10*time.Microsecond))
	}
	if len(s.Lacking) > 0 {
		r.Add(Problem, DatabaseRights, "database", "Grant the user USAGE on the schema, and SELECT, INSERT, UPDATE and DELETE on all its tables.",
			"the user may not read and write the tables %s", problem.AndList(s.Lacking))
	}
	if s.Left < conns {
		r.Add(Warning, DatabaseConnections, "database", "Lower --store-conns, raise max_connections of the server, or use a pooler.",
			"%d of %d connections are left for the user; a process opens up to %d", max(s.Left, 0), s.Most, conns)
	}
	if d := s.Ahead.Abs(); d > clockDifference {
		how := "ahead of"
		if s.Ahead < 0 {
			how = "behind"
		}
		r.Add(Warning, DatabaseClock, "database", "Synchronize the clocks, with NTP for instance. Times and timers are the server's.",
			"the server's clock is %v %s this machine's", d.Round(100*time.Millisecond), how)
	}
}
