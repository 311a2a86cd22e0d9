package historymem

import (
	"context"

	"github.com/workflows-engine/workflows-engine/history"
)

// Handle marks a run as handled; see history.Store.
func (s *Store) Handle(ctx context.Context, h history.Handling) error {
	if err := h.Check(); err != nil {
		return err
	}
	return s.mark(ctx, h.ExecutionID, func(x *run) error {
		if err := history.NotToHandle(x.id, x.execution().Phase); err != nil {
			return err
		}
		h.At = milli(h.At)
		s.handled[x.id] = h
		return nil
	})
}

// Unhandle takes the mark off a run; see history.Store.
func (s *Store) Unhandle(ctx context.Context, executionID string) error {
	return s.mark(ctx, executionID, func(x *run) error {
		delete(s.handled, x.id)
		return nil
	})
}

func (s *Store) mark(ctx context.Context, executionID string, change func(x *run) error) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	x := s.runs[executionID]
	if x == nil {
		return history.NotFound(executionID)
	}
	return change(x)
}

// Handled returns the marks of runs; see history.Store.
func (s *Store) Handled(ctx context.Context, executionIDs ...string) (map[string]history.Handling, error) {
	marks := map[string]history.Handling{}
	err := s.do(ctx, func() {
		for _, id := range executionIDs {
			if h, ok := s.handling(id); ok {
				marks[id] = h
			}
		}
	})
	return marks, err
}

func (s *Store) handling(id string) (h history.Handling, ok bool) {
	if h, ok = s.handled[id]; !ok {
		h, ok = s.handled[history.Root(id)]
	}
	return h, ok
}

func (s *Store) isHandled(id string) bool {
	_, ok := s.handling(id)
	return ok
}

// handleOrigins marks the runs that a retry, which has completed with the batch, is of.
func (s *Store) handleOrigins(b *history.Batch) {
	if !b.CompletesFork() {
		return
	}
	seen := map[string]bool{}
	for id := b.ExecutionID; !seen[id]; {
		seen[id] = true
		for _, l := range s.links {
			if l.To != id || l.Kind != history.Retried {
				continue
			}
			id = l.From
			if _, marked := s.handled[id]; s.runs[id] != nil && !marked {
				s.handled[id] = history.Handling{ExecutionID: id, Retry: b.ExecutionID, At: milli(b.Execution.UpdatedAt)}
			}
			break
		}
	}
}
