package historymem

import (
	"context"
	"maps"

	"github.com/workflows-engine/workflows-engine/history"
)

var _ history.Watcher = (*Store)(nil)

// watch is a call of Watch.
type watch struct {
	// grown are the runs that it has yet to tell of, with the seqs of their last records. The store's lock guards it.
	grown map[string]int64
	awake chan struct{}
}

// wake lets the call look at the store.
func (w *watch) wake() {
	select {
	case w.awake <- struct{}{}:
	default: // it is about to look
	}
}

// Watch calls changed with runs that have grown; see history.Watcher.
func (s *Store) Watch(ctx context.Context, changed func(executionID string, seq int64)) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	w := &watch{grown: map[string]int64{}, awake: make(chan struct{}, 1)}
	s.watches[w] = true
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.watches, w)
	}()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-w.awake:
		}
		if err := s.enter(context.WithoutCancel(ctx)); err != nil {
			return err
		}
		grown := maps.Clone(w.grown)
		clear(w.grown)
		s.mu.Unlock()
		for id, seq := range grown {
			changed(id, seq)
		}
	}
}

// changed tells those who watch that a run has grown.
func (s *Store) changed(executionID string, seq int64) {
	for w := range s.watches {
		w.grown[executionID] = seq
		w.wake()
	}
}
