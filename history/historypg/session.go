package historypg

import (
	"context"
	"errors"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/workflows-engine/workflows-engine/graph/problem"
)

const (
	connectTimeout = 10 * time.Second
	// writeTimeout bounds a write that has begun, which the caller's context does not cancel. It is longer than the server's own limits.
	writeTimeout = 45 * time.Second
	longTimeout  = 24 * time.Hour
	// maxTries bounds the tries of a transaction that the server has rolled back because of others.
	maxTries = 4
)

// session describes the connections of a store.
type session struct {
	config *pgxpool.Config
	where  Where
	// pooled reports that a transaction pooler may stand in between: connections have no settings and no prepared statements of their own.
	pooled bool
}

// newSession parses the URL. The driver's error contains the URL, so it is not shown.
func newSession(url string, o *Options) (*session, error) {
	config, err := pgxpool.ParseConfig(url)
	if hasStrayAt(url) {
		err = errUnescaped
	}
	if err != nil {
		return nil, problem.New(problem.UsageError, "the URL of the PostgreSQL server cannot be used").WithCause(invalidURL(err)).
			WithHint("Write it as in postgres://user@host:5432/database?sslmode=verify-full. The password may be in the address, in PGPASSWORD or in libpq's password file.")
	}
	c := config.ConnConfig
	x := &session{config: config, where: Where{Host: hostOf(&c.Config), Database: c.Database, Schema: o.Schema}}
	switch c.DefaultQueryExecMode {
	case pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol:
		x.pooled = true
	}
	if x.pooled && o.Synchronous == Normal {
		return nil, problem.New(problem.UsageError, "behind a transaction pooler the store cannot choose the durability %q", Normal).
			WithHint("Set it for the role: ALTER ROLE … SET synchronous_commit = off.")
	}
	config.MaxConns = int32(min(o.Conns, 1000))
	config.MinConns = 0
	config.ShouldPing = func(ctx context.Context, p pgxpool.ShouldPingParams) bool {
		return p.IdleDuration > time.Second && ctx.Value(repeatable{}) == nil
	}
	if c.ConnectTimeout == 0 {
		c.ConnectTimeout = connectTimeout
	}
	application := "workflows-engine"
	if o.Version != "" {
		application += "/" + o.Version
	}
	set := func(name, value string) {
		if _, given := c.RuntimeParams[name]; !given {
			c.RuntimeParams[name] = value
		}
	}
	set("application_name", application)
	if !x.pooled {
		c.RuntimeParams["default_transaction_isolation"] = "read committed"
		c.RuntimeParams["synchronous_commit"] = map[string]string{Full: "on", Normal: "off"}[o.Synchronous]
		set("lock_timeout", "5s")
		set("statement_timeout", "30s")
		set("idle_in_transaction_session_timeout", "60s")
		set("jit", "off")
		if o.ReadOnly {
			// It is set after the choice of a server: target_session_attrs=read-write takes none whose transactions only read.
			c.AfterConnect = func(ctx context.Context, conn *pgconn.PgConn) error {
				return conn.Exec(ctx, "SET default_transaction_read_only = on").Close()
			}
		}
	}
	return x, nil
}

var errUnescaped = &failureCause{text: "in a URL, @ in a password or a name is written as %40, / as %2F, ? as %3F and % as %25"}

// hasStrayAt reports whether a URL has an @ where a host, the database or the name of a setting stands. A part of a password that
// holds an @ would count as one of these, which output shows.
func hasStrayAt(url string) bool {
	scheme, rest, ok := strings.Cut(url, "://")
	if !ok || strings.ContainsAny(scheme, "= ") {
		return false
	}
	if i := strings.IndexAny(rest, "@/"); i >= 0 && rest[i] == '@' {
		rest = rest[i+1:]
	}
	place, settings, _ := strings.Cut(rest, "?")
	stray := strings.Contains(place, "@")
	for setting := range strings.SplitSeq(settings, "&") {
		name, _, _ := strings.Cut(setting, "=")
		stray = stray || strings.Contains(name, "@")
	}
	return stray
}

// invalidURL names what is wrong with a URL without a part of it.
func invalidURL(err error) error {
	if errors.Is(err, errUnescaped) {
		return errUnescaped
	}
	if e, ok := errors.AsType[*pgconn.ParseConfigError](err); ok {
		text := strings.ToLower(e.Error())
		text = text[strings.LastIndex(text, "`: ")+1:] // what stands before it is the URL
		if strings.Contains(text, "failed to parse as url") {
			return errUnescaped
		}
		for _, known := range []string{"sslmode", "sslrootcert", "sslcert", "sslkey", "port", "connect_timeout", "service", "target_session_attrs", "passfile", "default_query_exec_mode", "pool_"} {
			if strings.Contains(text, known) {
				return &failureCause{text: "the setting " + strings.TrimSuffix(known, "_") + " is not valid"}
			}
		}
	}
	return &failureCause{text: "it is neither a URL nor a list such as host=… dbname=…"}
}

// hostOf names the hosts of a configuration.
func hostOf(c *pgconn.Config) string {
	hosts := []string{hostPort(c.Host, c.Port)}
	for _, f := range c.Fallbacks {
		if h := hostPort(f.Host, f.Port); h != hosts[len(hosts)-1] {
			hosts = append(hosts, h)
		}
	}
	return strings.Join(hosts, ",")
}

func hostPort(host string, port uint16) string {
	if strings.HasPrefix(host, "/") {
		return host
	}
	return net.JoinHostPort(host, strconv.Itoa(int(port)))
}

// queries is a connection, a transaction or a pool.
type queries interface {
	Query(ctx context.Context, text string, args ...any) (pgx.Rows, error)
	Exec(ctx context.Context, text string, args ...any) (pgconn.CommandTag, error)
}

// enter returns the error of a call that must not begin.
func (s *Store) enter(ctx context.Context, doing string) error {
	if ctx.Err() != nil {
		return problem.New(problem.Internal, "%s: the call was cancelled", doing).WithCause(context.Cause(ctx))
	}
	if s.closing.Err() != nil {
		return errClosed
	}
	return nil
}

// read makes a read, once more if the connection was lost.
func (s *Store) read(ctx context.Context, doing string, call func(q queries) error) error {
	if err := s.enter(ctx, doing); err != nil {
		return err
	}
	err := call(unpinged{s.pool})
	if ctx.Err() == nil && (isLost(err) || isStale(err)) {
		err = call(s.pool)
	}
	return s.readFailure(ctx, doing, err)
}

// repeatable marks the context of a read, which is repeated if its connection turns out to be lost.
type repeatable struct{}

// unpinged is the pool for a read. A connection that has rested for a second is pinged before any other use.
type unpinged struct{ *pgxpool.Pool }

func (u unpinged) Query(ctx context.Context, text string, args ...any) (pgx.Rows, error) {
	return u.Pool.Query(context.WithValue(ctx, repeatable{}, true), text, args...)
}

// readFailure is failure for a read, which its context may have ended.
func (s *Store) readFailure(ctx context.Context, doing string, err error) error {
	if _, ok := problem.As(err); err != nil && !ok && ctx.Err() != nil {
		return problem.New(problem.Internal, "%s: the call was cancelled", doing).WithCause(context.Cause(ctx))
	}
	return s.failure(doing, err)
}

// snapshot makes several reads of one state of the database.
func (s *Store) snapshot(ctx context.Context, doing string, call func(q queries) error) error {
	if err := s.enter(ctx, doing); err != nil {
		return err
	}
	take := func() error {
		return pgx.BeginTxFunc(ctx, s.pool, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error { return call(tx) })
	}
	err := take()
	if ctx.Err() == nil && (isLost(err) || isStale(err)) {
		err = take()
	}
	return s.readFailure(ctx, doing, err)
}

// each calls f for each row.
func each(ctx context.Context, q queries, text string, f func(row pgx.Rows) error, args ...any) error {
	rows, err := q.Query(ctx, text, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := f(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// first scans the first row; found is false without one.
func first(ctx context.Context, q queries, text string, args []any, into ...any) (found bool, err error) {
	rows, err := q.Query(ctx, text, args...)
	if err != nil {
		return false, err
	}
	defer rows.Close()
	if rows.Next() {
		found = true
		if err := rows.Scan(into...); err != nil {
			return true, err
		}
	}
	rows.Close()
	return found, rows.Err()
}

// column returns the first column of all rows, a text.
func column(ctx context.Context, q queries, text string, args ...any) (out []string, err error) {
	err = each(ctx, q, text, func(row pgx.Rows) error {
		var v string
		err := row.Scan(&v)
		out = append(out, unescaped(v))
		return err
	}, args...)
	return out, err
}

// mayWrite returns the error of a write that must not begin.
func (s *Store) mayWrite(ctx context.Context, doing string) error {
	if err := s.enter(ctx, doing); err != nil {
		return err
	}
	if s.options.ReadOnly {
		return errReadOnly
	}
	if e := s.replaced.Load(); e != nil {
		return *e
	}
	return nil
}

// write makes a write: one statement, or several in a transaction of their own. ctx limits the wait for a connection; what has begun is not
// cancelled. repeatable tells that making it twice does no harm.
func (s *Store) write(ctx context.Context, doing string, repeatable bool, call func(ctx context.Context, c *pgxpool.Conn) error) error {
	return s.writeWithin(ctx, s.writeTimeout, doing, repeatable, call)
}

// writeWithin is write with a limit of time.
func (s *Store) writeWithin(ctx context.Context, limit time.Duration, doing string, repeatable bool, call func(ctx context.Context, c *pgxpool.Conn) error) error {
	if err := s.mayWrite(ctx, doing); err != nil {
		return err
	}
	once := func() error {
		c, err := s.pool.Acquire(ctx)
		if err != nil {
			if ctx.Err() != nil {
				return problem.New(problem.Internal, "%s: the call was cancelled", doing).WithCause(context.Cause(ctx))
			}
			return err
		}
		defer c.Release()
		begun, done := context.WithTimeout(context.WithoutCancel(ctx), limit)
		defer done()
		return settled(call(begun, c))
	}
	return s.failure(doing, s.again(ctx, repeatable, once))
}

// settled marks the error of a write whose outcome is unknown.
func settled(err error) error {
	if isLost(err) && !isUnsent(err) {
		return errUnknown
	}
	return err
}

// again repeats a write that has changed nothing.
func (s *Store) again(ctx context.Context, repeatable bool, once func() error) error {
	err := once()
	if ctx.Err() != nil {
		return err
	}
	switch {
	case errors.Is(err, errUnknown) && repeatable, isLost(err) && !errors.Is(err, errUnknown), isStale(err):
		return once()
	case stateOf(err) == stateReadOnly: // after a failover this may be the old primary
		s.pool.Reset()
		return once()
	}
	for try := 1; try < maxTries && isBusy(err); try++ {
		err = once()
	}
	return err
}

// transact makes a write of several statements in one transaction.
func (s *Store) transact(ctx context.Context, doing string, repeatable bool, change func(ctx context.Context, tx pgx.Tx) error) error {
	return s.transactWithin(ctx, s.writeTimeout, doing, repeatable, change)
}

// transactLong is transact for a change of many rows: its statements have no limit of time. Until it is committed, the end of ctx ends it.
func (s *Store) transactLong(ctx context.Context, doing string, repeatable bool, change func(ctx context.Context, tx pgx.Tx) error) error {
	caller := ctx
	return s.transactWithin(ctx, longTimeout, doing, repeatable, func(ctx context.Context, tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, unlimited); err != nil {
			return err
		}
		ctx, done := context.WithCancelCause(ctx)
		defer context.AfterFunc(caller, func() { done(context.Cause(caller)) })()
		if err := change(ctx, tx); err != nil {
			if _, ok := problem.As(err); !ok && caller.Err() != nil {
				err = problem.New(problem.Internal, "%s: the call was cancelled", doing).WithCause(context.Cause(caller))
			}
			return err
		}
		return nil
	})
}

func (s *Store) transactWithin(ctx context.Context, limit time.Duration, doing string, repeatable bool, change func(ctx context.Context, tx pgx.Tx) error) error {
	return s.writeWithin(ctx, limit, doing, repeatable, func(ctx context.Context, c *pgxpool.Conn) error {
		tx, err := c.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.ReadCommitted})
		if err != nil {
			return unsent(err)
		}
		if err := change(ctx, tx); err != nil {
			_ = tx.Rollback(ctx) // the error of the change says more
			return unsent(err)
		}
		return tx.Commit(ctx)
	})
}

// unsentError is an error of a transaction before its commit.
type unsentError struct{ error }

func (e *unsentError) Unwrap() error { return e.error }

func unsent(err error) error {
	if isLost(err) {
		return &unsentError{err}
	}
	return err
}

// unlimited removes the time limit of statements in a transaction that may take long.
const unlimited = `SET LOCAL statement_timeout = 0`
