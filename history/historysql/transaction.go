package historysql

import (
	"context"
	"math/rand/v2"
	"runtime/debug"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// The pauses between two tries to get the file's write lock. SQLite's own busy handler begins with longer pauses, but a
// transaction of this package takes well under a millisecond.
const (
	firstBusyWait = 50 * time.Microsecond
	maxBusyWait   = 5 * time.Millisecond
)

// write makes a change in its own transaction. The context can cancel the call until the transaction begins; after that it is committed or
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

// writing returns the writing connection, a new one if the last was discarded. The caller has the turn.
func (s *Store) writing() (*conn, error) {
	switch {
	case s.options.ReadOnly:
		return nil, errReadOnly
	case s.closed:
		return nil, errClosed
	case s.writer != nil:
		return s.writer, nil
	}
	if err := s.checkReplaced(); err != nil {
		return nil, err
	}
	c, err := s.openWriter()
	s.writer = c
	return c, err
}

var errClosed = problem.New(problem.Internal, "the store is closed")

// transact is write for a caller that has the turn.
func (s *Store) transact(ctx context.Context, change func(c *conn) error) error {
	c, err := s.begin(ctx)
	if err != nil {
		return err
	}
	if err := withoutPanic(c, change); err != nil {
		s.rollback(c)
		return err
	}
	if err = s.commit(c); failedFlush(err) {
		return s.settle(&pending{change: change}, err)
	}
	return err
}

// withoutPanic makes a change and returns a panic in it as an error, so that the transaction is always rolled back and the turn released.
func withoutPanic(c *conn, change func(c *conn) error) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = problem.New(problem.Internal, "the store panicked: %v\n%s", cause, debug.Stack())
		}
	}()
	return change(c)
}

// begin begins a transaction. The context can cancel the call until the transaction has the file's lock.
func (s *Store) begin(ctx context.Context) (*conn, error) {
	c, err := s.writing()
	if err != nil {
		return nil, err
	}
	if err := s.retryBusy(ctx, func() error { return c.do("BEGIN IMMEDIATE") }); err != nil {
		if !isBusy(err) && ctx.Err() == nil {
			s.discard(c)
		}
		return nil, err
	}
	if s.opened.Load() == nil {
		s.remember()
	}
	if err := s.checkReplaced(); err != nil {
		s.rollback(c)
		return nil, err
	}
	return c, nil
}

// commit commits the transaction, or rolls it back if that fails.
func (s *Store) commit(c *conn) error {
	err := s.retryBusy(background, func() error { return c.do("COMMIT") })
	if err != nil {
		s.rollback(c)
	}
	return err
}

func (s *Store) rollback(c *conn) {
	if c.do("ROLLBACK") != nil {
		s.discard(c)
	}
}

// discard closes a connection in an unknown state: SQLite has rolled back by itself, or fails every statement. The next
// transaction opens a new connection.
func (s *Store) discard(c *conn) {
	s.writer = nil
	if s.replaced() {
		return // see Close
	}
	s.opened.Store(nil)
	_ = c.Close() // the failed statement has reported the error
}

// retryBusy repeats a call while other processes hold its lock, until BusyTimeout is over or the context ends.
func (s *Store) retryBusy(ctx context.Context, do func() error) error {
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
