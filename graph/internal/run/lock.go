package run

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// LockGrace is how long a computation continues while others wait for the run; usually it has ended by then.
	LockGrace = 50 * time.Millisecond
	// LockPatience bounds the walk after an input before the input is recorded. A longer walk is made after the commit, as an effect,
	// from its beginning.
	LockPatience = 200 * time.Millisecond
	// long is the length of a computation that is logged.
	long = 2 * time.Second
)

// Lock is a mutual exclusion lock. Waiters get it in order, those of LockFirst before the others.
type Lock struct {
	mu   sync.Mutex
	held bool
	// first and rest are the waiters; each channel is closed when its waiter holds the lock.
	first, rest []chan struct{}
	// hurried counts the waiters that cannot wait for a computation. began is the start of the computation; only the holder uses it.
	hurried atomic.Int32
	began   time.Time
	// patience bounds the computation, 0 without a bound.
	patience time.Duration
}

// NewLock returns an unlocked lock.
func NewLock() *Lock { return &Lock{} }

// Lock waits for the lock.
func (l *Lock) Lock() {
	if mine := l.join(&l.rest); mine != nil {
		<-mine
	}
}

// LockFirst waits for the lock before all others. A computation that exceeds LockGrace is abandoned.
func (l *Lock) LockFirst() {
	l.hurried.Add(1)
	defer l.hurried.Add(-1)
	if mine := l.join(&l.first); mine != nil {
		<-mine
	}
}

// join takes a free lock, or adds the caller to a queue and returns a channel that is closed when the caller holds the lock.
func (l *Lock) join(queue *[]chan struct{}) (mine chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.held {
		l.held = true
		return nil
	}
	mine = make(chan struct{})
	*queue = append(*queue, mine)
	return mine
}

// Unlock passes the lock to the next waiter, if any.
func (l *Lock) Unlock() {
	l.mu.Lock()
	defer l.mu.Unlock()
	queue := &l.first
	if len(*queue) == 0 {
		queue = &l.rest
	}
	if l.held = len(*queue) > 0; l.held {
		close((*queue)[0])
		*queue = slices.Delete(*queue, 0, 1)
	}
}

// TryLock takes the lock if it is free.
func (l *Lock) TryLock() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	free := !l.held
	l.held = true
	return free
}

// LockWithin waits for the lock that long, and reports whether the caller holds it.
func (l *Lock) LockWithin(patience time.Duration) bool {
	if patience <= 0 {
		return l.TryLock()
	}
	mine := l.join(&l.rest)
	if mine == nil {
		return true
	}
	limit := time.NewTimer(patience)
	defer limit.Stop()
	select {
	case <-mine:
		return true
	case <-limit.C:
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if i := slices.Index(l.rest, mine); i >= 0 {
		l.rest = slices.Delete(l.rest, i, i+1)
		return false
	}
	return true // the caller has just got it
}

// Compute calls do, which may take long, for the holder. With patience above 0, do is abandoned after that time. A very long call is
// logged with the attributes.
func (l *Lock) Compute(log *slog.Logger, patience time.Duration, do func() error, attributes ...any) error {
	l.began, l.patience = time.Now(), patience
	watchdog := time.AfterFunc(long, func() {
		log.Warn("a computation takes long", append(attributes, "seconds", long.Seconds())...)
	})
	defer watchdog.Stop()
	return do()
}

// Abandon reports whether the computation must stop: a waiter hurries, its time is over, or the process's context has ended.
func (l *Lock) Abandon(process context.Context) bool {
	took := time.Since(l.began)
	return (l.hurried.Load() > 0 || process.Err() != nil) && took > LockGrace || l.patience > 0 && took > l.patience
}

// Yield lets the hurried waiters have the lock, and takes it again.
func (l *Lock) Yield() {
	l.Unlock()
	l.Lock()
}
