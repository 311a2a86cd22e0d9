package history

import "context"

// Importer is a Store that can take in runs as a whole. Both stores of this module are.
type Importer interface {
	// Import adds runs with their definitions in one transaction: all or nothing. DUPLICATE_EXECUTION_ID if one of the runs
	// exists. A definition that is stored already stays as it is.
	Import(ctx context.Context, in Import) error
}

// Import is what enters a store together. It is not checked further: its records must be those of an export.
type Import struct {
	Definitions []StoredDefinition
	Runs        []ImportedRun
}

// ImportedRun is a run with all its records.
type ImportedRun struct {
	ExecutionID string
	// Records have their payload texts in Raw, which are stored as they are.
	Records []Record
	// Execution is the fold of the records, Timers what they have open.
	Execution Execution
	Timers    []Timer
}
