package historymem

import (
	"context"

	"github.com/workflows-engine/workflows-engine/history"
)

var _ history.Watcher = (*Store)(nil)

// change is one report of a watch: a run and the seq of its last record.
type change struct {
	executionID string
	seq         int64
}

// maxChanges bounds the unreported changes of a watch. Further changes are dropped.
const maxChanges = 1024

// Watch calls changed with runs that have grown; see history.Watcher.
func (s *Store) Watch(ctx context.Context, changed func(executionID string, seq int64)) error {
	changes := make(chan change, maxChanges)
	if err := s.do(ctx, func() { s.watches[changes] = true }); err != nil {
		return err
	}
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.watches, changes)
	}()
	for {
		select {
		case <-ctx.Done():
			return nil
		case c, open := <-changes:
			if !open {
				return errClosed
			}
			changed(c.executionID, c.seq)
		}
	}
}

// changed notifies every watch that a run has grown.
func (s *Store) changed(executionID string, seq int64) {
	for changes := range s.watches {
		select {
		case changes <- change{executionID, seq}:
		default:
		}
	}
}
