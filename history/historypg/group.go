package historypg

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// Appends of one process that wait at the same time share a transaction: their statements are sent at once, with one end, and so cost one round
// trip and one flush. The first append leads: it sends those that wait, and answers them. A goroutine then does the same for later appends, until
// none waits. A lone append is never delayed.

const (
	// maxGroup and maxGroupBytes bound a shared transaction, and so the delay of its first append.
	maxGroup      = 64
	maxGroupBytes = 4 << 20
	// maxLeaders is the number of shared transactions under way: while one is flushed, the next one is filled.
	maxLeaders = 2
)

// pending is a waiting append.
type pending struct {
	ctx  context.Context
	id   string // of the run
	text string
	args []any
	// row reads the only row of the statement; found is false without one.
	row  func(rows pgx.Rows) error
	size int

	found bool
	err   error // valid after done is closed
	done  chan struct{}
}

func (p *pending) answer(err error) {
	p.err = err
	close(p.done)
}

// take reads the result of the statement.
func (p *pending) take(rows pgx.Rows) error {
	defer rows.Close()
	p.found = rows.Next()
	if p.found {
		if err := p.row(rows); err != nil {
			return err
		}
	}
	rows.Close()
	return rows.Err()
}

// queue holds the waiting appends in order of arrival.
type queue struct {
	mu      sync.Mutex
	waiting []*pending
	leaders int
}

// add queues p and reports whether it must lead.
func (q *queue) add(p *pending) (leads bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waiting = append(q.waiting, p)
	if leads = q.leaders < maxLeaders; leads {
		q.leaders++
	}
	return leads
}

// remove removes p from the queue and reports whether it was still waiting.
func (q *queue) remove(p *pending) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	i := slices.Index(q.waiting, p)
	if i < 0 {
		return false
	}
	q.waiting = slices.Delete(q.waiting, i, i+1)
	return true
}

// next returns the oldest waiting append, and the caller goes on to lead with it; nil without one: the caller then leads no more.
func (q *queue) next() *pending {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting) == 0 {
		q.leaders--
		return nil
	}
	return q.waiting[0]
}

// take removes the oldest append and as many others as fit, in the order of their runs: transactions that lock several runs lock them in this
// order.
func (q *queue) take() []*pending {
	q.mu.Lock()
	defer q.mu.Unlock()
	var group []*pending
	size := 0
	q.waiting = slices.DeleteFunc(q.waiting, func(p *pending) bool {
		if len(group) > 0 && (len(group) == maxGroup || size+p.size > maxGroupBytes) {
			return false
		}
		group, size = append(group, p), size+p.size
		return true
	})
	slices.SortStableFunc(group, func(a, b *pending) int { return cmp.Compare(a.id, b.id) })
	return group
}

// share makes an append in a transaction that it may share with others. ctx can cancel the call until the transaction begins.
func (s *Store) share(ctx context.Context, doing string, p *pending) error {
	if err := s.mayWrite(ctx, doing); err != nil {
		return err
	}
	p.ctx, p.done = ctx, make(chan struct{})
	if s.queue.add(p) {
		s.lead(p)
		if next := s.queue.next(); next != nil {
			go s.leadAll(next)
		}
	}
	select {
	case <-p.done:
	case <-ctx.Done():
		if s.queue.remove(p) {
			return problem.New(problem.Internal, "%s: the call was cancelled", doing).WithCause(context.Cause(ctx))
		}
		<-p.done
	}
	return s.failure(doing, p.err)
}

// leadAll leads until no append waits.
func (s *Store) leadAll(p *pending) {
	for ; p != nil; p = s.queue.next() {
		s.lead(p)
	}
}

// lead makes the appends that wait, and answers them; p is the oldest. If there is no connection, only p fails, and its context limits only the
// wait for that.
func (s *Store) lead(p *pending) {
	c, err := s.pool.Acquire(p.ctx)
	if err != nil {
		if s.queue.remove(p) {
			p.answer(err)
		}
		return
	}
	group := s.queue.take()
	if len(group) == 0 { // their contexts have ended, or another one has led them
		c.Release()
		return
	}
	once := func() error {
		defer func() { c = nil }()
		return s.together(c, group)
	}
	background := context.WithoutCancel(p.ctx)
	if len(group) == 1 {
		group[0].answer(s.again(background, false, once))
		return
	}
	err = once()
	switch {
	case isLost(err) && !errors.Is(err, errUnknown), isStale(err):
		err = once()
	case stateOf(err) == stateReadOnly:
		s.pool.Reset()
		err = once()
	}
	for _, p := range group {
		if err == nil || isLost(err) {
			p.answer(err)
			continue
		}
		// All is rolled back, and no append fails because of another.
		p.answer(s.again(background, false, func() error { return s.together(nil, []*pending{p}) }))
	}
}

// together makes appends in one transaction, on a connection that it gives back; a new one if c is nil.
func (s *Store) together(c *pgxpool.Conn, group []*pending) error {
	ctx, done := context.WithTimeout(context.WithoutCancel(group[0].ctx), s.writeTimeout)
	defer done()
	if c == nil {
		var err error
		if c, err = s.pool.Acquire(ctx); err != nil {
			return unsent(err)
		}
	}
	defer c.Release()
	return settled(send(ctx, c.Conn(), group))
}

// send makes appends on a connection or in a transaction of it.
func send(ctx context.Context, c *pgx.Conn, group []*pending) error {
	if len(group) == 1 {
		rows, err := c.Query(ctx, group[0].text, group[0].args...)
		if err != nil {
			return err
		}
		return group[0].take(rows)
	}
	var batch pgx.Batch
	for _, p := range group {
		batch.Queue(p.text, p.args...)
	}
	results := c.SendBatch(ctx, &batch)
	for _, p := range group {
		rows, err := results.Query()
		if err == nil {
			err = p.take(rows)
		}
		if err != nil {
			_ = results.Close() // the first error is the cause
			return err
		}
	}
	return results.Close()
}
