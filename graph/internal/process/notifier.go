package process

import (
	"sync"
	"sync/atomic"

	"github.com/workflows-engine/workflows-engine/history"
)

// Notifier knows who waits for which run. The zero value is ready for use. Its methods only note what they get, and return
// at once: they may be called while a run is locked.
type Notifier struct {
	watched atomic.Bool
	watch   sync.Once
	mu      sync.Mutex
	waiters map[string]map[*Waiter]struct{}
}

// Waiter waits for changes of some runs.
type Waiter struct {
	n      *Notifier
	ids    map[string]struct{}
	signal chan struct{}
	// progress gets what happens; nil if nobody wants to know. What does not fit is dropped: whoever commits a record does not
	// wait for who watches.
	progress chan Progress
}

// maxUnread is how much progress is kept for a waiter that does not read it.
const maxUnread = 64

// Waiter returns a waiter for no run yet. It must be stopped.
func (n *Notifier) Waiter(progress bool) *Waiter {
	w := &Waiter{n: n, ids: map[string]struct{}{}, signal: make(chan struct{}, 1)}
	if progress {
		w.progress = make(chan Progress, maxUnread)
	}
	return w
}

// Add adds runs, and reports whether one of them is new to the waiter: it may have changed before it was added.
func (w *Waiter) Add(ids []string) (added bool) {
	n := w.n
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, id := range ids {
		if _, ok := w.ids[id]; ok {
			continue
		}
		added = true
		w.ids[id] = struct{}{}
		if n.waiters == nil {
			n.waiters = map[string]map[*Waiter]struct{}{}
		}
		if n.waiters[id] == nil {
			n.waiters[id] = map[*Waiter]struct{}{}
		}
		n.waiters[id][w] = struct{}{}
	}
	return added
}

// Stop ends the waiting.
func (w *Waiter) Stop() {
	n := w.n
	n.mu.Lock()
	defer n.mu.Unlock()
	for id := range w.ids {
		delete(n.waiters[id], w)
		if len(n.waiters[id]) == 0 {
			delete(n.waiters, id)
		}
	}
}

// Changed wakes whoever waits for a run.
func (n *Notifier) Changed(id string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for w := range n.waiters[id] {
		select {
		case w.signal <- struct{}{}:
		default:
		}
	}
}

// Report hands progress to whoever wants to know of a run.
func (n *Notifier) Report(p Progress) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.report(p)
}

func (n *Notifier) report(p Progress) {
	for w := range n.waiters[p.ExecutionID] {
		if w.progress == nil {
			continue
		}
		select {
		case w.progress <- p:
		default:
		}
	}
}

// Recorded reports the progress that records of a run mean. visits is the number of node visits so far.
func (n *Notifier) Recorded(id string, visits int, records []history.Record) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.waiters[id]) == 0 {
		return
	}
	for i := range records {
		if p, ok := progressOf(id, &records[i]); ok {
			p.NodeVisits = visits
			n.report(p)
		}
	}
}
