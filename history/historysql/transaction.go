package historysql

import (
	"context"
	"math/rand/v2"
	"runtime/debug"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// The waits between two attempts to get the file's write lock. SQLite's own busy handler waits longer from the start;
// the transactions of this package are over in well under a millisecond.
const (
	firstBusyWait = 50 * time.Microsecond
	maxBusyWait   = 5 * time.Millisecond
)

// write runs one transaction that nobody shares. The context counts until it has begun; from then on it is completed or
// rolled back.
func (s *Store) write(ctx context.Context, doing string, change func(c *conn) error) error {
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	case <-ctx.Done():
		return failure(doing, context.Cause(ctx))
	}
	return failure(doing, s.transact(ctx, change))
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
	if err := s.standing(); err != nil {
		return nil, err
	}
	c, err := s.openWriter()
	s.writer = c
	return c, err
}

var errClosed = problem.New(problem.Internal, "the store is closed")

// transact is write for a caller who has the turn.
func (s *Store) transact(ctx context.Context, change func(c *conn) error) error {
	c, err := s.begin(ctx)
	if err != nil {
		return err
	}
	if err := attempt(c, change); err != nil {
		s.rollback(c)
		return err
	}
	return s.commit(c)
}

// attempt makes a change. A panic in it becomes its error, so that the transaction is rolled back and the turn given on
// whatever happens.
func attempt(c *conn, change func(c *conn) error) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = problem.New(problem.Internal, "the store panicked: %v\n%s", cause, debug.Stack())
		}
	}()
	return change(c)
}

// begin begins a transaction. The context counts until it has the file's lock.
func (s *Store) begin(ctx context.Context) (*conn, error) {
	c, err := s.writing()
	if err != nil {
		return nil, err
	}
	if err := s.patiently(ctx, func() error { return c.do("BEGIN IMMEDIATE") }); err != nil {
		if !isBusy(err) && ctx.Err() == nil {
			s.giveUp(c)
		}
		return nil, err
	}
	if s.opened.Load() == nil {
		s.remember()
	}
	if err := s.standing(); err != nil {
		s.rollback(c)
		return nil, err
	}
	return c, nil
}

// commit commits or, with an error, rolls back.
func (s *Store) commit(c *conn) error {
	err := s.patiently(background, func() error { return c.do("COMMIT") })
	if err != nil {
		s.rollback(c)
	}
	return err
}

func (s *Store) rollback(c *conn) {
	if c.do("ROLLBACK") != nil {
		s.giveUp(c)
	}
}

// giveUp closes a connection whose state is not known: SQLite has rolled back by itself, or can do nothing at all. The
// next transaction gets a new one.
func (s *Store) giveUp(c *conn) {
	s.writer = nil
	if s.replaced() {
		return // see Close
	}
	s.opened.Store(nil)
	_ = c.Close() // what went wrong has been reported by the statement that failed
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
