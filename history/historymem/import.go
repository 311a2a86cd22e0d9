package historymem

import (
	"bytes"
	"context"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
)

var _ history.Importer = (*Store)(nil)

// Import adds whole runs; see history.Importer.
func (s *Store) Import(ctx context.Context, in history.Import) error {
	batches, err := in.Batches()
	if err != nil {
		return err
	}
	additions := make([]addition, len(batches))
	for i := range batches {
		additions[i], err = additionOf(&batches[i], func(r *history.Record) []byte { return bytes.Clone(r.Raw) })
		if err != nil {
			return err
		}
	}
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	for i := range batches {
		if id := batches[i].ExecutionID; s.runs[id] != nil {
			return problem.New(problem.DuplicateExecutionID, "run %q exists already", id).WithPlace(problem.Place{ExecutionID: id})
		}
	}
	for i := range batches {
		s.add(&batches[i], additions[i])
	}
	for _, d := range in.Definitions {
		s.putDefinition(d)
	}
	return nil
}
