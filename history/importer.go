package history

import (
	"cmp"
	"context"
	"time"
)

// Importer is a Store that can import whole runs. Both stores of this module implement it.
type Importer interface {
	// Import adds runs with their definitions in one transaction, all or nothing. It returns DUPLICATE_EXECUTION_ID if a run exists,
	// otherwise the errors of Append. It does not change a definition that is already stored.
	Import(ctx context.Context, in Import) error
}

// Import holds runs and definitions to be stored together. The records must come from an export; only the values that Batches uses are
// checked.
type Import struct {
	Definitions []StoredDefinition
	Runs        []ImportedRun
}

// Batches returns one initial batch for each run. It returns an error for a batch that Append would refuse.
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
	// Records have their payload texts in Raw, which are stored unchanged.
	Records []Record
	// Execution is the projection of the records, Timers the run's open timers.
	Execution Execution
	Timers    []Timer
	// Handled is set for a handled run.
	Handled *Handling
}
