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
	if err := s.patiently(ctx, func() error { return c.do("BEGIN IMMEDIATE") }); err != nil {
		if !isBusy(err) && ctx.Err() == nil {
			s.giveUp(c)
		}
		return err
	}
	err := change(c)
	if err == nil {
		err = s.patiently(context.WithoutCancel(ctx), func() error { return c.do("COMMIT") })
	}
	if err == nil {
		return nil
	}
	if c.do("ROLLBACK") != nil {
		s.giveUp(c)
	}
	return err
}

// giveUp closes a connection whose state is not known: SQLite has rolled back by itself, or can do nothing at all. The
// next transaction gets a new one.
func (s *Store) giveUp(c *conn) {
	_ = c.Close() // what went wrong has been reported by the statement that failed
	s.writer = nil
}

// patiently does something that needs a lock, again and again while others hold it, until BusyTimeout is over or the
// context ends.
func (s *Store) patiently(ctx context.Context, do func() error) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	err := do()
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
		err = do()
	}
	return err
}
