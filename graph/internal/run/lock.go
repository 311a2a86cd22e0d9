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
	// LockGrace is how long a computation goes on although somebody waits for its end: as a rule it is over by then.
	LockGrace = 50 * time.Millisecond
	// LockPatience is how long the walk that follows an input may take before the input is recorded: what takes longer is made after it,
	// as an effect, and decided again from its beginning.
	LockPatience = 200 * time.Millisecond
	// long is how long a computation may take before the log says so.
	long = 2 * time.Second
)

// Lock is a mutual exclusion lock, which those who wait get in their order, and those who hurry first. New makes one.
type Lock struct {
	mu   sync.Mutex
	held bool
	// first and rest are those who wait, each by what is closed when the lock is theirs.
	first, rest []chan struct{}
	// hurried counts those who cannot wait for a computation; began is when it began, and is the holder's.
	hurried atomic.Int32
	began   time.Time
	// patience is how long the computation under way may take, 0 for as long as it needs.
	patience time.Duration
}

// NewLock returns a lock that nobody holds.
func NewLock() *Lock { return &Lock{} }

// Lock waits for the lock.
func (l *Lock) Lock() {
	if mine := l.join(&l.rest); mine != nil {
		<-mine
	}
}

// LockFirst waits for the lock before all others, and has a computation abandoned that outlasts Grace.
func (l *Lock) LockFirst() {
	l.hurried.Add(1)
	defer l.hurried.Add(-1)
	if mine := l.join(&l.first); mine != nil {
		<-mine
	}
}

// join takes the lock if nobody holds it, or adds the caller to a queue and returns what is closed when the lock is the caller's.
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

// Unlock gives it back, or to who waits.
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

// TryLock takes the lock if nobody holds it.
func (l *Lock) TryLock() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	free := !l.held
	l.held = true
	return free
}

// LockWithin waits for the lock as long as that, and reports whether it has got it.
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
	return true // it has become the caller's this moment
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
	return (l.hurried.Load() > 0 || process.Err() != nil) && took > LockGrace || l.patience > 0 && took > l.patience
}

// Yield lets those who hurry have the lock, and takes it again.
func (l *Lock) Yield() {
	l.Unlock()
	l.Lock()
}
