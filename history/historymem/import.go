package historymem

import (
	"bytes"
	"context"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
)

var _ history.Importer = (*Store)(nil)

// Import adds whole runs; see history.Importer.
func (s *Store) Import(ctx context.Context, in history.Import) error {
	for i := range in.Definitions {
		if err := in.Definitions[i].Check(); err != nil {
			return err
		}
	}
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	for i := range in.Runs {
		if id := in.Runs[i].ExecutionID; s.runs[id] != nil {
			return problem.New(problem.DuplicateExecutionID, "run %q exists already", id).WithPlace(problem.Place{ExecutionID: id})
		}
	}
	for i := range in.Runs {
		r := &in.Runs[i]
		text := r.Execution.AppendText(nil)
		execution, err := history.ParseExecution(r.ExecutionID, text)
		if err != nil {
			return err
		}
		x := &run{execution: execution, text: text}
		for j := range r.Records {
			record := &r.Records[j]
			x.rows = append(x.rows, row{kind: record.Kind, name: record.Name, payload: bytes.Clone(record.Raw), at: milli(record.CreatedAt)})
			x.bytes += int64(len(record.Raw))
		}
		for _, t := range r.Timers {
			x.timers = append(x.timers, history.Timer{ExecutionID: r.ExecutionID, Key: t.Key, Due: time.UnixMilli(history.CeilMillis(t.Due)).UTC()})
		}
		s.runs[r.ExecutionID] = x
		s.changed(r.ExecutionID, execution.Seq)
	}
	for _, d := range in.Definitions {
		s.putDefinition(d)
	}
	return nil
}
