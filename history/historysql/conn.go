package historysql

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"
	"sync"

	"modernc.org/sqlite"
)

// conn is a connection of the driver with its prepared statements. One goroutine at a time uses it, always with a context that never ends,
// because an interrupted statement would leave a transaction half done.
//
// It bypasses database/sql, because that pool decides by itself when to close connections and statements.
type conn struct {
	driver.Conn
	statements map[string]statement
	// shapes maps the record names of a batch to its insert statement; see shapeOf.
	shapes   map[string]string
	shapeKey []byte
}

// statement is a prepared statement of the driver.
type statement interface {
	driver.Stmt
	driver.StmtExecContext
	driver.StmtQueryContext
}

var background = context.Background()

// connect opens a connection to the file.
func (s *Store) connect(source string) (*conn, error) {
	connector, err := sqlite.NewConnector(source)
	if err != nil {
		return nil, err
	}
	c, err := (&guardedConnector{connector, s.path}).Connect(background)
	if err != nil {
		return nil, err
	}
	return &conn{Conn: c, statements: map[string]statement{}, shapes: map[string]string{}}, nil
}

// Close closes the statements and the connection.
func (c *conn) Close() error {
	var errs []error
	for _, s := range c.statements {
		errs = append(errs, s.Close())
	}
	return errors.Join(append(errs, c.Conn.Close())...)
}

// mayWrite tries a write and returns its error, because SQLite opens a read-only file without an error. A lock held by another process is not
// an error.
func (c *conn) mayWrite() error {
	if err := c.script("DELETE FROM leases WHERE FALSE"); !isBusy(err) {
		return err
	}
	return nil
}

// prepare returns the prepared statement for a text, and caches it.
func (c *conn) prepare(text string) (statement, error) {
	if s, ok := c.statements[text]; ok {
		return s, nil
	}
	prepared, err := c.Conn.(driver.ConnPrepareContext).PrepareContext(background, text)
	if err != nil {
		return nil, err
	}
	s, ok := prepared.(statement)
	if !ok {
		return nil, errors.Join(errors.New("the driver's statements lack a method"), prepared.Close())
	}
	c.statements[text] = s
	return s, nil
}

// exec runs a prepared statement and returns the number of changed rows.
func (c *conn) exec(text string, args ...any) (int64, error) {
	return c.run(text, named(nil, args...))
}

// do runs a prepared statement without arguments. It returns a panic as an error.
func (c *conn) do(text string) error {
	return withoutPanic(c, func(c *conn) error {
		_, err := c.run(text, nil)
		return err
	})
}

// run is exec with arguments of the driver's type.
func (c *conn) run(text string, args []driver.NamedValue) (int64, error) {
	s, err := c.prepare(text)
	if err != nil {
		return 0, err
	}
	r, err := s.ExecContext(background, args)
	if err != nil {
		return 0, err
	}
	return r.RowsAffected()
}

// script runs statements without preparing them.
func (c *conn) script(text string) error {
	_, err := c.Conn.(driver.ExecerContext).ExecContext(background, text, nil)
	return err
}

// query calls each for every row of a prepared query.
func (c *conn) query(text string, each func(row []driver.Value) error, args ...any) (err error) {
	s, err := c.prepare(text)
	if err != nil {
		return err
	}
	rows, err := s.QueryContext(background, named(nil, args...))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }() // after a panic in each, too: the statement is used again
	row := make([]driver.Value, len(rows.Columns()))
	for {
		err := rows.Next(row)
		if err == nil {
			err = each(row)
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// one returns the first column of the first row of a query, or nil without rows.
func (c *conn) one(text string, args ...any) (driver.Value, error) {
	var v driver.Value
	err := c.query(text, func(row []driver.Value) error {
		v = row[0]
		return nil
	}, args...)
	return v, err
}

// named appends arguments as the driver's type. Values must be int64, float64, string, []byte or nil.
func named(dst []driver.NamedValue, args ...any) []driver.NamedValue {
	for _, v := range args {
		dst = append(dst, driver.NamedValue{Ordinal: len(dst) + 1, Value: v})
	}
	return dst
}

// querier runs queries: a conn within a transaction, the pool of readers, or a snapshot.
type querier interface {
	// query calls each for every row of a query. The row is only valid during the call.
	query(text string, each func(row []driver.Value) error, args ...any) error
}

// reader is the querier of one read-only call.
type reader struct {
	ctx context.Context
	*readers
}

func (r reader) query(text string, each func(row []driver.Value) error, args ...any) error {
	rows, err := r.rows(r.ctx, text, args)
	if err != nil {
		return err
	}
	return eachRow(rows, valuesOf(each))
}

// snapshot is a querier with a consistent view of the database.
type snapshot struct {
	ctx context.Context
	tx  *sql.Tx
}

// snapshot begins a snapshot. The caller must call end.
func (r *readers) snapshot(ctx context.Context) (in snapshot, end func(), err error) {
	if err := r.check(); err != nil {
		return in, nil, err
	}
	tx, err := r.pool.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return in, nil, err
	}
	return snapshot{ctx, tx}, func() { _ = tx.Rollback() }, nil
}

func (s snapshot) query(text string, each func(row []driver.Value) error, args ...any) error {
	rows, err := s.tx.QueryContext(s.ctx, text, args...)
	if err != nil {
		return err
	}
	return eachRow(rows, valuesOf(each))
}

// valuesOf adapts each to rows of database/sql.
func valuesOf(each func(row []driver.Value) error) func(rows *sql.Rows) error {
	var row []driver.Value
	var into []any
	return func(rows *sql.Rows) error {
		if row == nil {
			columns, err := rows.Columns()
			if err != nil {
				return err
			}
			row, into = make([]driver.Value, len(columns)), make([]any, len(columns))
			for i := range row {
				into[i] = (*any)(&row[i])
			}
		}
		if err := rows.Scan(into...); err != nil {
			return err
		}
		return each(row)
	}
}

// column returns the first column of a query as texts.
func column(in querier, text string, args ...any) (out []string, err error) {
	err = in.query(text, func(row []driver.Value) error {
		out = append(out, textOf(row[0]))
		return nil
	}, args...)
	return out, err
}

// textOf converts a column that the driver returns as text or bytes. Any other type yields "".
func textOf(v driver.Value) string {
	switch v := v.(type) {
	case string:
		return v
	case []byte:
		return string(v)
	}
	return ""
}

// eachRow calls each for every row and closes the rows.
func eachRow(rows *sql.Rows, each func(rows *sql.Rows) error) error {
	defer rows.Close()
	for rows.Next() {
		if err := each(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// readers is the pool of read-only connections. It prepares statements on first use.
type readers struct {
	pool *sql.DB
	// check is called before each query.
	check func() error

	mu         sync.Mutex
	statements map[string]*sql.Stmt
}

func (r *readers) statement(ctx context.Context, text string) (*sql.Stmt, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if s, ok := r.statements[text]; ok {
		return s, nil
	}
	s, err := r.pool.PrepareContext(ctx, text)
	if err != nil {
		return nil, err
	}
	if r.statements == nil {
		r.statements = map[string]*sql.Stmt{}
	}
	r.statements[text] = s
	return s, nil
}

// rows starts a query.
func (r *readers) rows(ctx context.Context, text string, args []any) (*sql.Rows, error) {
	if err := r.check(); err != nil {
		return nil, err
	}
	s, err := r.statement(ctx, text)
	if err != nil {
		return nil, err
	}
	return s.QueryContext(ctx, args...)
}

// query calls each for every row of a query. each scans the row.
func (r *readers) query(ctx context.Context, text string, each func(rows *sql.Rows) error, args ...any) error {
	rows, err := r.rows(ctx, text, args)
	if err != nil {
		return err
	}
	return eachRow(rows, func(rows *sql.Rows) error { return scanFailure(ctx, each(rows)) })
}

// row scans the first row of a query. found is false without rows.
func (r *readers) row(ctx context.Context, text string, args []any, into ...any) (found bool, err error) {
	err = r.query(ctx, text, func(rows *sql.Rows) error {
		if found {
			return nil
		}
		found = true
		return rows.Scan(into...)
	}, args...)
	return found, err
}
