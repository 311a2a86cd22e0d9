package historysql

import (
	"context"
	"errors"
	"slices"
	"sync"

	sqlite3 "modernc.org/sqlite/lib"

	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// Waiting writes of one process share a transaction, and with it the flush to the disk, which takes longer than all
// their statements (group commit). The first write leads: it begins a transaction, makes the changes of all waiting
// writes, commits, and answers them. A goroutine then does the same for later writes, until the queue is empty. A lone
// write is never delayed.

const (
	// maxGroup and maxGroupBytes bound a shared transaction, and so the delay of its first write.
	maxGroup      = 64
	maxGroupBytes = 4 << 20
)

// pending is a waiting write.
type pending struct {
	ctx context.Context
	// change may be called again after a rollback.
	change func(c *conn) error
	// stored reports whether the change is stored; nil if repeating the change is safe.
	stored func(c *conn) (bool, error)
	size   int
	// err is the result, valid after done is closed.
	err  error
	done chan struct{} // nil for the leading write
}

func (p *pending) answer(err error) {
	p.err = err
	if p.done != nil {
		close(p.done)
	}
}

// queue holds the waiting writes in order of arrival.
type queue struct {
	mu      sync.Mutex
	waiting []*pending
	led     bool // whether a write leads
}

// add queues p and reports whether p must lead, because no write leads.
func (q *queue) add(p *pending) (leads bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waiting = append(q.waiting, p)
	leads, q.led = !q.led, true
	if !leads {
		p.done = make(chan struct{})
	}
	return leads
}

// next returns the oldest waiting write, which must lead. If the queue is empty, the next added write leads.
func (q *queue) next() *pending {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.led = len(q.waiting) > 0; !q.led {
		return nil
	}
	return q.waiting[0]
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

// take removes the oldest write and as many others as fit from the queue, and returns them oldest first.
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
	return group
}

// share makes a change in a transaction that it may share with other writes; write does not share. The context can cancel the call until the
// transaction begins. size is the approximate size of the change in bytes.
func (s *Store) share(ctx context.Context, doing string, size int, change func(c *conn) error) error {
	return s.sharePending(doing, &pending{ctx: ctx, change: change, size: size})
}

func (s *Store) sharePending(doing string, p *pending) error {
	ctx := p.ctx
	if ctx.Err() != nil {
		return failure(doing, context.Cause(ctx))
	}
	if s.queue.add(p) {
		s.lead(p)
		if other := s.queue.next(); other != nil {
			go s.leadAll(other)
		}
		return failure(doing, p.err)
	}
	select {
	case <-p.done:
	case <-ctx.Done():
		if s.queue.remove(p) {
			return failure(doing, context.Cause(ctx))
		}
		<-p.done
	}
	return failure(doing, p.err)
}

// leadAll leads until the queue is empty.
func (s *Store) leadAll(p *pending) {
	for ; p != nil; p = s.queue.next() {
		s.lead(p)
	}
}

// lead makes the changes of the waiting writes; p is the oldest. If no transaction can begin, only p fails. The context of p limits only the
// wait for the turn and for the file's lock, because the other writes leave the queue after the transaction has begun.
func (s *Store) lead(p *pending) {
	var c *conn
	var err error
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
		c, err = s.begin(p.ctx)
	case <-p.ctx.Done():
		err = context.Cause(p.ctx)
	}
	if err != nil {
		if s.queue.remove(p) {
			p.answer(err)
		}
		return
	}
	group := s.queue.take()
	if len(group) == 0 { // their contexts have ended
		s.rollback(c)
		return
	}
	s.change(c, group)
}

// change makes the changes of a group in the current transaction, and answers them. If one change fails, it repeats the others without it,
// and then that one alone, so that no write fails because of another.
func (s *Store) change(c *conn, group []*pending) {
	var alone []*pending
	for {
		failed, err := -1, error(nil)
		for i, p := range group {
			if err = withoutPanic(c, p.change); err != nil {
				failed = i
				break
			}
		}
		if err == nil {
			err = s.commit(c)
		} else {
			s.rollback(c)
		}
		if failed < 0 || len(group) == 1 {
			unknown := failed < 0 && failedFlush(err)
			for _, p := range group {
				if unknown {
					p.answer(s.settle(p, err))
				} else {
					p.answer(err)
				}
			}
			group = nil
		} else {
			alone = append(alone, group[failed])
			group = slices.Delete(group, failed, failed+1)
		}
		if len(group) == 0 {
			if len(alone) == 0 {
				return
			}
			group, alone = alone[:1:1], alone[1:]
		}
		if c, err = s.begin(context.Background()); err != nil {
			for _, p := range append(group, alone...) {
				p.answer(err)
			}
			return
		}
	}
}

// failedFlush reports whether a failed commit may still have stored the transaction, because its last bytes may have reached the disk. A full
// disk has not stored them.
func failedFlush(err error) bool { return primaryCode(err) == sqlite3.SQLITE_IOERR && !isFull(err) }

// settle returns the result of a write after a failed commit. It checks the file through another connection and repeats the change if it is
// missing. The new commit overwrites the remains of the failed one in the WAL, which a crash might otherwise restore. If the repetition also
// fails, the change may be stored or not.
func (s *Store) settle(p *pending, failed error) error {
	c, err := s.begin(background)
	if err == nil {
		if err = withoutPanic(c, p.changeOnce(s)); err != nil {
			s.rollback(c)
			if e, ok := problem.As(err); ok && e.Code != problem.Internal {
				return err // another process wrote first, so nothing was
			}
		} else if err = s.commit(c); err == nil {
			return nil
		}
	}
	return problem.New(problem.StoreOutcomeUnknown, "the disk failed while the database %s was flushed", s.path).
		WithCause(errors.Join(failed, err)).
		WithHint("What the call writes may be stored or not. Check the disk, and look at the run before you repeat the call.")
}

// changeOnce makes the change unless it is already stored. In that case it makes a different write, so that the commit flushes.
func (p *pending) changeOnce(s *Store) func(c *conn) error {
	return func(c *conn) error {
		if p.stored != nil {
			if found, err := p.stored(c); err != nil {
				return err
			} else if found {
				return s.agree(c)
			}
		}
		return p.change(c)
	}
}
