// Package runlock is the lock of a run that may compute while others want it: a question waits for it no longer than a moment, and
// whoever cannot wait at all has the computation abandoned.
package runlock

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"
)

const (
	// Grace is how long a computation goes on although somebody waits for its end: as a rule it is over by then.
	Grace = 50 * time.Millisecond
	// Patience is how long the walk that follows an input may take before the input is recorded: what takes longer is made after it,
	// as an effect, and decided again from its beginning.
	Patience = 200 * time.Millisecond
	// long is how long a computation may take before the log says so.
	long = 2 * time.Second
)

// Lock is a mutual exclusion lock. New makes one.
type Lock struct {
	held chan struct{}
	// hurried counts those who cannot wait for a computation; began is when it began, and is the holder's.
	hurried atomic.Int32
	began   time.Time
	// patience is how long the computation under way may take, 0 for as long as it needs.
	patience time.Duration
}

// New returns a lock that nobody holds.
func New() *Lock { return &Lock{held: make(chan struct{}, 1)} }

// Lock waits for the lock.
func (l *Lock) Lock() { l.held <- struct{}{} }

// Unlock gives it back.
func (l *Lock) Unlock() { <-l.held }

// TryLock takes the lock if nobody holds it.
func (l *Lock) TryLock() bool {
	select {
	case l.held <- struct{}{}:
		return true
	default:
		return false
	}
}

// LockSoon waits for the lock as long as a computation in one piece may last, and reports whether it has got it.
func (l *Lock) LockSoon() bool {
	if l.TryLock() {
		return true
	}
	limit := time.NewTimer(Grace)
	defer limit.Stop()
	select {
	case l.held <- struct{}{}:
		return true
	case <-limit.C:
		return false
	}
}

// Hurry has a computation abandoned that outlasts Grace, until the caller has the lock and calls done.
func (l *Lock) Hurry() (done func()) {
	l.hurried.Add(1)
	return func() { l.hurried.Add(-1) }
}

// Compute returns what do returns, which may take long; the holder calls it. A patience above 0 has it abandoned after that time. When
// it takes very long, the log says so with the attributes given.
func (l *Lock) Compute(log *slog.Logger, patience time.Duration, do func() error, attributes ...any) error {
	l.began, l.patience = time.Now(), patience
	watchdog := time.AfterFunc(long, func() {
		log.Warn("a computation takes long", append(attributes, "seconds", long.Seconds())...)
	})
	defer watchdog.Stop()
	return do()
}

// Abandon reports whether the computation under way is to be abandoned, because somebody hurries, its time is over, or the process ends
// with a context.
func (l *Lock) Abandon(process context.Context) bool {
	took := time.Since(l.began)
	return (l.hurried.Load() > 0 || process.Err() != nil) && took > Grace || l.patience > 0 && took > l.patience
}

// Yield lets those who hurry have the lock, and takes it again.
func (l *Lock) Yield() {
	l.Unlock()
	for l.hurried.Load() > 0 {
		time.Sleep(time.Millisecond)
	}
	l.Lock()
}
