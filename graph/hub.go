package graph

import (
	"sync"

	"github.com/workflows-engine/workflows-engine/history"
)

// hub tells waiting calls that a run has changed, and those that want to know what happens in between.
type hub struct {
	mu       sync.Mutex
	watchers map[string]map[*watcher]struct{}
}

// watcher waits for changes of some runs.
type watcher struct {
	h      *hub
	ids    map[string]struct{}
	signal chan struct{}
	// progress gets what happens; nil if nobody wants to know. What does not fit is left out: whoever commits a record
	// does not wait for who watches.
	progress chan Progress
}

// maxUnread is how much progress is kept for a watcher that does not read it.
const maxUnread = 64

func (h *hub) watcher(progress bool) *watcher {
	w := &watcher{h: h, ids: map[string]struct{}{}, signal: make(chan struct{}, 1)}
	if progress {
		w.progress = make(chan Progress, maxUnread)
	}
	return w
}

// watch adds runs, and reports whether one of them was not watched before.
func (w *watcher) watch(ids []string) (added bool) {
	w.h.mu.Lock()
	defer w.h.mu.Unlock()
	for _, id := range ids {
		if _, ok := w.ids[id]; ok {
			continue
		}
		added = true
		w.ids[id] = struct{}{}
		if w.h.watchers == nil {
			w.h.watchers = map[string]map[*watcher]struct{}{}
		}
		if w.h.watchers[id] == nil {
			w.h.watchers[id] = map[*watcher]struct{}{}
		}
		w.h.watchers[id][w] = struct{}{}
	}
	return added
}

func (w *watcher) stop() {
	w.h.mu.Lock()
	defer w.h.mu.Unlock()
	for id := range w.ids {
		delete(w.h.watchers[id], w)
		if len(w.h.watchers[id]) == 0 {
			delete(w.h.watchers, id)
		}
	}
}

// wake tells whoever waits for a run.
func (h *hub) wake(id string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for w := range h.watchers[id] {
		select {
		case w.signal <- struct{}{}:
		default:
		}
	}
}

// tell gives progress to whoever wants to know of a run.
func (h *hub) tell(p Progress) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.tellLocked(p)
}

func (h *hub) tellLocked(p Progress) {
	for w := range h.watchers[p.ExecutionID] {
		if w.progress == nil {
			continue
		}
		select {
		case w.progress <- p:
		default:
		}
	}
}

// recorded gives the progress that records of a run mean.
func (h *hub) recorded(id string, visits int, records []history.Record) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.watchers[id]) == 0 {
		return
	}
	for i := range records {
		if p, ok := progressOf(id, &records[i]); ok {
			p.NodeVisits = visits
			h.tellLocked(p)
		}
	}
}
