package graph

import "sync"

// hub tells waiting calls that a run has changed.
type hub struct {
	mu       sync.Mutex
	watchers map[string]map[*watcher]struct{}
}

// watcher waits for changes of some runs.
type watcher struct {
	h      *hub
	ids    map[string]struct{}
	signal chan struct{}
}

func (h *hub) watcher() *watcher {
	return &watcher{h: h, ids: map[string]struct{}{}, signal: make(chan struct{}, 1)}
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
