package historysql

import (
	"context"
	"database/sql"
	"sync"
)

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

// query calls each for every row of a query. each scans the row.
func (r *readers) query(ctx context.Context, text string, each func(rows *sql.Rows) error, args ...any) error {
	if err := r.check(); err != nil {
		return err
	}
	s, err := r.statement(ctx, text)
	if err != nil {
		return err
	}
	rows, err := s.QueryContext(ctx, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := each(rows); err != nil {
			return scanFailure(ctx, err)
		}
	}
	return rows.Err()
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
