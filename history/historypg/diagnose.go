package historypg

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
)

// Diagnosis describes a server and what it allows the user of a URL.
type Diagnosis struct {
	// Version is the server's version, such as "16.4", and Major its first number.
	Version string
	Major   int
	// Standby is set for a replica, and Lag tells how far it is behind. Synchronous reports that commits wait for a replica (synchronous_standby_names).
	Standby, Synchronous bool
	Lag                  history.Lag
	// ReadOnly reports that transactions only read unless they say otherwise (default_transaction_read_only): no run can be written.
	ReadOnly bool
	// UTF8 reports that the database has the encoding UTF8.
	UTF8 bool
	// RoundTrip is the shortest time of a question and its answer.
	RoundTrip time.Duration
	// Ahead is how far the server's clock is ahead of this machine's; negative if it is behind.
	Ahead time.Duration
	// Left is the number of connections that the user can still open, of Most.
	Left, Most int
	// SchemaExists reports that the schema exists. MayCreate reports the right to create tables in it or, without it, the schema.
	SchemaExists, MayCreate bool
	// Lacking are the tables that the user may not read and write, in order.
	Lacking []string
}

// pings is the number of questions; the fastest counts.
const pings = 5

// Diagnose connects to the server of a URL and examines it, without changing anything. It returns USAGE_ERROR for an invalid url and
// STORE_UNAVAILABLE if the server does not answer. No error contains the user or the password.
func Diagnose(ctx context.Context, url string, o Options) (d Diagnosis, err error) {
	if err := o.fill(); err != nil {
		return d, err
	}
	x, err := newSession(url, &o)
	if err != nil {
		return d, err
	}
	unavailable := func() error { // the driver's text has user, database and address
		return problem.New(problem.StoreUnavailable, "the PostgreSQL server %s cannot be examined", x.where.Host).
			WithHint("Check the address, the network and the server's log.")
	}
	conn, err := pgx.ConnectConfig(ctx, x.config.ConnConfig)
	if err != nil {
		return d, unavailable()
	}
	defer conn.Close(context.WithoutCancel(ctx)) //nolint:errcheck // nothing was written
	for i := range pings {
		var now time.Time
		asked := time.Now()
		if err := conn.QueryRow(ctx, "SELECT clock_timestamp()").Scan(&now); err != nil {
			return d, unavailable()
		}
		if took := time.Since(asked); i == 0 || took < d.RoundTrip {
			d.RoundTrip, d.Ahead = took, now.Sub(asked.Add(took/2))
		}
	}
	err = conn.QueryRow(ctx, diagnoseServer, o.Schema).Scan(&d.Version, &d.Major, &d.Standby, &d.Synchronous, &d.ReadOnly, &d.UTF8, &d.Left, &d.Most,
		&d.SchemaExists, &d.MayCreate)
	if err == nil {
		d.Lag, err = lagOf(ctx, conn)
	}
	if err != nil || !d.SchemaExists {
		if err != nil {
			err = unavailable()
		}
		return d, err
	}
	rows, err := conn.Query(ctx, diagnoseTables, o.Schema)
	if err == nil {
		d.Lacking, err = pgx.CollectRows(rows, pgx.RowTo[string])
	}
	if err != nil {
		return d, unavailable()
	}
	return d, nil
}

// diagnoseServer reads the server. The connections left are the smallest of what the server, the database and the role allow. The connection
// that asks counts as used.
const diagnoseServer = `
SELECT split_part(current_setting('server_version'), ' ', 1), current_setting('server_version_num')::int / 10000,
  pg_is_in_recovery(), coalesce(current_setting('synchronous_standby_names', true), '') <> '',
  current_setting('default_transaction_read_only') = 'on', getdatabaseencoding() = 'UTF8',
  least(
    current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int
      - coalesce(current_setting('reserved_connections', true), '0')::int
      - (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'),
    (SELECT CASE WHEN datconnlimit >= 0 THEN datconnlimit - (SELECT count(*) FROM pg_stat_activity a WHERE a.datid = d.oid) END
      FROM pg_database d WHERE datname = current_database()),
    (SELECT CASE WHEN rolconnlimit >= 0 THEN rolconnlimit - (SELECT count(*) FROM pg_stat_activity a WHERE a.usesysid = r.oid) END
      FROM pg_roles r WHERE rolname = current_user)
  )::int,
  current_setting('max_connections')::int,
  n.oid IS NOT NULL,
  CASE WHEN n.oid IS NULL THEN has_database_privilege(current_database(), 'CREATE') ELSE has_schema_privilege(n.oid, 'CREATE') END
FROM (SELECT $1::text AS name) s LEFT JOIN pg_namespace n ON n.nspname = s.name`

const diagnoseTables = `
SELECT c.relname::text FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = $1::text AND c.relkind = 'r'
  AND NOT (has_schema_privilege(n.oid, 'USAGE') AND has_table_privilege(c.oid, 'SELECT') AND has_table_privilege(c.oid, 'INSERT')
    AND has_table_privilege(c.oid, 'UPDATE') AND has_table_privilege(c.oid, 'DELETE'))
ORDER BY c.relname`
