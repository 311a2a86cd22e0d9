package historysql

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// The waits between two attempts to get the file's write lock. SQLite's own busy handler waits longer from the start;
// the transactions of this package are over in well under a millisecond.
const (
	firstBusyWait = 50 * time.Microsecond
	maxBusyWait   = 5 * time.Millisecond
)

// write runs one transaction. The context counts until it has begun; from then on it is completed or rolled back.
func (s *Store) write(ctx context.Context, doing string, change func(c *conn) error) error {
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	case <-ctx.Done():
		return failure(doing, context.Cause(ctx))
	}
	c, err := s.writing()
	if err != nil {
		return failure(doing, err)
	}
	if err := s.transact(ctx, c, change); err != nil {
		return failure(doing, err)
	}
	return nil
}

// writing gives the writing connection, a new one if the last one was given up. The caller has its turn.
func (s *Store) writing() (*conn, error) {
	switch {
	case s.options.ReadOnly:
		return nil, errReadOnly
	case s.closed:
		return nil, errClosed
	case s.writer != nil:
		return s.writer, nil
	}
	c, err := s.openWriter()
	s.writer = c
	return c, err
}

var errClosed = problem.New(problem.Internal, "the store is closed")

func (s *Store) transact(ctx context.Context, c *conn, change func(c *conn) error) error {
	if err := s.patiently(ctx, c, "BEGIN IMMEDIATE"); err != nil {
		return err
	}
	err := change(c)
	if err == nil {
		err = s.patiently(context.WithoutCancel(ctx), c, "COMMIT")
	}
	if err == nil {
		return nil
	}
	if _, failed := c.exec("ROLLBACK"); failed != nil {
		// SQLite has rolled back by itself, or is in no state to go on. A new connection is sound in both cases.
		_ = c.Close()
		s.writer = nil
	}
	return err
}

// patiently runs a statement that needs a lock, again and again while others hold it, until BusyTimeout is over or the
// context ends.
func (s *Store) patiently(ctx context.Context, c *conn, text string) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	_, err := c.exec(text)
	if !isBusy(err) {
		return err
	}
	end := time.Now().Add(s.options.BusyTimeout)
	for wait := firstBusyWait; isBusy(err) && time.Now().Before(end); wait = min(2*wait, maxBusyWait) {
		select {
		case <-time.After(wait/2 + rand.N(wait)):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		_, err = c.exec(text)
	}
	return err
}
