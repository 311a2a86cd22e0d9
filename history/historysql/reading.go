package historysql

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"sync"
)

// querier asks the database: a conn within a transaction, the pool of readers, or a snapshot.
type querier interface {
	// query calls each with every row of a query. The row is only valid during the call.
	query(text string, each func(row []driver.Value) error, args ...any) error
}

// reader is the querier of one call that only reads.
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

// snapshot is a querier that sees the database as of one moment.
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

// valuesOf calls each with the values of a row.
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

// column returns the first column of a query, of texts.
func column(in querier, text string, args ...any) (out []string, err error) {
	err = in.query(text, func(row []driver.Value) error {
		out = append(out, textOf(row[0]))
		return nil
	}, args...)
	return out, err
}

// textOf converts a column that the driver returns as text or bytes. Any other is "".
func textOf(v driver.Value) string {
	switch v := v.(type) {
	case string:
		return v
	case []byte:
		return string(v)
	}
	return ""
}

// eachRow calls each for every row, and closes the rows.
func eachRow(rows *sql.Rows, each func(rows *sql.Rows) error) error {
	defer rows.Close()
	for rows.Next() {
		if err := each(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// readers is the pool of reading connections with its statements, which are prepared when they are first used.
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

// rows begins a query.
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

// row scans the first row of a query; found is false if there is none.
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
