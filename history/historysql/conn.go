package historysql

import (
	"context"
	"database/sql/driver"
	"errors"
	"io"

	"modernc.org/sqlite"
)

// conn is a connection of the driver with its prepared statements. One goroutine at a time uses it, always with a
// context that never ends, because an interrupted statement would leave a transaction half done.
//
// It bypasses database/sql, whose pool would close the connection and its statements on its own terms.
type conn struct {
	driver.Conn
	statements map[string]statement
	// shapes are the inserts of batches by the names of their records; see shapeOf.
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

// mayWrite returns the error of a write. SQLite opens a file that it can only read without reporting it. A lock that
// another process holds is no error.
func (c *conn) mayWrite() error {
	if err := c.script("DELETE FROM leases WHERE FALSE"); !isBusy(err) {
		return err
	}
	return nil
}

// prepare returns the statement for a text. Each text is prepared once.
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

// exec runs a prepared statement and returns the number of rows that it changed.
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

// run is exec with arguments in the driver's form.
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

// query calls each with every row of a prepared query.
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

// one returns the first column of the first row of a query, nil if there is none.
func (c *conn) one(text string, args ...any) (driver.Value, error) {
	var v driver.Value
	err := c.query(text, func(row []driver.Value) error {
		v = row[0]
		return nil
	}, args...)
	return v, err
}

// named appends arguments in the driver's form. Values must be int64, string, []byte or nil.
func named(dst []driver.NamedValue, args ...any) []driver.NamedValue {
	for _, v := range args {
		dst = append(dst, driver.NamedValue{Ordinal: len(dst) + 1, Value: v})
	}
	return dst
}
