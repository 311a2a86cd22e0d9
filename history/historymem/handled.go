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

// Unhandle removes the mark of a run; see history.Store.
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

// handleRetried marks the runs whose work the batch completes, or an earlier retry completed.
func (s *Store) handleRetried(b *history.Batch) {
	if !b.EndsFork() {
		return
	}
	ids, retry := b.Handles(s.retriesOf(b.ExecutionID))
	for _, id := range ids {
		x := s.runs[id]
		if _, marked := s.handled[id]; marked || x == nil {
			continue
		}
		if p := x.execution().Phase; p == history.PhaseFailed || p == history.PhaseCancelled {
			s.handled[id] = history.Handling{ExecutionID: id, Retry: retry, At: milli(b.Execution.UpdatedAt)}
		}
	}
}
