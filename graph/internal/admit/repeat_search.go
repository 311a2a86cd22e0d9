package admit

import (
	"context"
	"errors"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
)

// Past reads the histories for a search. A history.Store is one.
type Past interface {
	Execution(ctx context.Context, executionID string) (history.Execution, error)
	Read(ctx context.Context, executionID string, fromSeq int64, limit int) ([]history.Record, error)
}

// backwards passes the records of a run to look, the newest first, until it returns true.
func backwards(ctx context.Context, past Past, id string, look func(*history.Record) (done bool)) error {
	const page = 256
	exec, err := past.Execution(ctx, id)
	if err != nil {
		return err
	}
	for last := exec.Seq; last > 0; last -= page {
		from := max(last-page+1, 1)
		records, err := past.Read(ctx, id, from, int(last-from+1))
		if err != nil {
			return err
		}
		for i := len(records) - 1; i >= 0; i-- {
			if look(&records[i]) {
				return nil
			}
		}
	}
	return nil
}

// lineage returns a run and the subworkflow that each run started last, at most depth of them.
func lineage(ctx context.Context, past Past, id string, depth int) []string {
	ids := []string{id}
	for range depth {
		exec, err := past.Execution(ctx, id)
		if err != nil || exec.ChildExecutionID == "" || exec.ChildExecutionID == id {
			break
		}
		id = exec.ChildExecutionID
		ids = append(ids, id)
	}
	return ids
}

// Search searches for the submit by its key, or without a key by node, branch and content, in subworkflows down to depth.
func (s *RepeatedSubmit) Search(ctx context.Context, past Past, executionID string, depth int) (Found, error) {
	var ids []string
	if s.IdempotencyKey == "" {
		ids = lineage(ctx, past, executionID, depth)
	} else {
		var ok bool
		if s.key, ok = parseKey(executionID, s.IdempotencyKey, s.NodeID); !ok {
			return Found{}, nil
		}
		ids = []string{s.key.executionID}
	}
	for _, id := range ids {
		err := backwards(ctx, past, id, s.look)
		s.found.in(id)
		if err != nil && !errors.Is(err, problem.ExecutionNotFound) || s.found.Repeat != NotRepeated {
			return s.found.withActor(ctx, past), err
		}
	}
	return s.found.withActor(ctx, past), nil
}

// Search searches for the resume by the interrupt's id.
func (s *RepeatedResume) Search(ctx context.Context, past Past, executionID string) (Found, error) {
	id, ok := s.runOf(executionID)
	if !ok {
		return Found{}, nil
	}
	err := backwards(ctx, past, id, s.look)
	s.found.in(id)
	return s.found.withActor(ctx, past), err
}

// maxSignalRuns bounds the runs searched for a signal's key, the newest first.
const maxSignalRuns = 64

// Search searches for the signal by its key in the run and the subworkflows below it, and for the last signal of its name.
func (s *RepeatedSignal) Search(ctx context.Context, past Past, executionID string) (Found, error) {
	if s.IdempotencyKey == "" {
		return Found{}, nil
	}
	ids := []string{executionID}
	for i := 0; i < len(ids) && i < maxSignalRuns; i++ {
		s.children = nil
		err := backwards(ctx, past, ids[i], func(rec *history.Record) bool { return s.look(ids[i], rec) })
		s.found.in(ids[i])
		ids = append(ids, s.children...)
		if i > 0 && errors.Is(err, problem.ExecutionNotFound) {
			continue // about to be started
		}
		if err != nil || s.found.Repeat != NotRepeated {
			return s.found.withActor(ctx, past), err
		}
	}
	return s.found.withActor(ctx, past), nil
}

// SearchBelow searches for the signal before it is delivered, if the run has started subworkflows. A run knows the keys that it has taken
// itself, but another run below may now wait for the same name.
func (s *RepeatedSignal) SearchBelow(ctx context.Context, past Past, executionID string) (Found, error) {
	if s.IdempotencyKey == "" {
		return Found{}, nil
	}
	exec, err := past.Execution(ctx, executionID)
	if err != nil || !history.Descends(exec.ChildExecutionID, exec.ID) {
		return Found{}, err
	}
	return s.Search(ctx, past, executionID)
}
