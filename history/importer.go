package history

import (
	"cmp"
	"context"
	"time"
)

// Importer is a Store that can import whole runs. Both stores of this module are.
type Importer interface {
	// Import adds runs with their definitions in one transaction: all or nothing. DUPLICATE_EXECUTION_ID if one of the runs
	// exists, otherwise the errors of Append. A definition that is stored already stays as it is.
	Import(ctx context.Context, in Import) error
}

// Import is what enters a store together. Its records must be those of an export; only what Batches looks at is checked.
type Import struct {
	Definitions []StoredDefinition
	Runs        []ImportedRun
}

// Batches returns each run as the batch that begins it. It refuses what Append would refuse.
func (in *Import) Batches() ([]Batch, error) {
	for i := range in.Definitions {
		if err := in.Definitions[i].Check(); err != nil {
			return nil, err
		}
	}
	batches := make([]Batch, len(in.Runs))
	for i := range in.Runs {
		r := &in.Runs[i]
		batches[i] = Batch{ExecutionID: r.ExecutionID, Records: r.Records, Execution: r.Execution, SetTimers: true, Timers: r.Timers}
		if err := batches[i].Check(); err != nil {
			return nil, err
		}
		if h := r.Handled; h != nil {
			handled := *h
			handled.ExecutionID, handled.At = r.ExecutionID, h.At.UTC().Truncate(time.Millisecond)
			if err := cmp.Or(handled.Check(), NotToHandle(r.ExecutionID, r.Execution.Phase)); err != nil {
				return nil, err
			}
			r.Handled = &handled
		}
	}
	return batches, nil
}

// ImportedRun is a run with all its records.
type ImportedRun struct {
	ExecutionID string
	// Records have their payload texts in Raw, which are stored as they are.
	Records []Record
	// Execution is the projection of the records, Timers their open timers.
	Execution Execution
	Timers    []Timer
	// Handled is set for a run that is handled.
	Handled *Handling
}
