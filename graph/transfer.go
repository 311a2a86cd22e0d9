package graph

import (
	"cmp"
	"context"
	"io"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/internal/transfer"
	"github.com/workflows-engine/workflows-engine/history"
)

// ExportOptions configure an export.
type ExportOptions struct {
	// Redact masks what Redaction hides, nil being history.DefaultRedaction. The file can then be read, but not imported.
	Redact    bool
	Redaction *history.Redaction
	// Now is the time of the export.
	Now time.Time
}

// ImportResult reports the content of an imported file.
type ImportResult struct {
	// ExecutionID is the run that the file was made of; Subworkflows are counted besides.
	ExecutionID  string
	Subworkflows int
	Records      int
	Definitions  int
	// Phase is the run's.
	Phase history.Phase
	// Tasks counts the tasks at agents on which the runs wait. Cancelling a run in the database that it came from would end them; see
	// CancelRequest.KeepTasks.
	Tasks int
	// NotReplayed lists the runs with records of another engine, which are taken as they are.
	NotReplayed []NotReplayed
	// Existed reports that every record was there already and that nothing was changed.
	Existed bool
}

// NotReplayed is a run with records that were not compared with its definition.
type NotReplayed struct {
	ExecutionID string
	// Records counts the records marked as another engine's, or all records of a run that another engine began.
	Records int
}

// Export writes a run with its subworkflows and their definitions in the form of package runfile. Of a run that continues, it writes a
// state in which the run has been: each history is read as of one moment, a parent's before its children's, so that no parent knows
// more than its child. The error is EXECUTION_NOT_FOUND or that of the store or of out; the part that was written is then of no use,
// and Import rejects it.
func Export(ctx context.Context, store history.Store, executionID string, o ExportOptions, out io.Writer) error {
	return transfer.Export(ctx, store, executionID, transfer.ExportOptions(o), out)
}

// Export is the function Export for the Runner's store.
func (r *Runner) Export(ctx context.Context, executionID string, o ExportOptions, out io.Writer) error {
	if err := r.enter(ctx); err != nil {
		return err
	}
	defer r.tasks.Done()
	o.Redaction = cmp.Or(o.Redaction, r.opts.Redaction)
	return Export(ctx, r.store, executionID, o, out)
}

// Import reads a file that Export has written and adds the runs to a store, all or nothing; the store must be a history.Importer.
// Everything is checked before: the file (IMPORT_INVALID with the line), that each run follows its definition
// (NONDETERMINISM_DETECTED, DEFINITION_REQUIRED), and that subworkflows have their parents. Results of activities and answers of people
// are taken as they are: a forged result together with everything that follows from it cannot be told from a true one.
// DUPLICATE_EXECUTION_ID if a run exists with other records. The runs continue with the next answer, or as soon as a process claims
// them; make sure that they do not also continue in the database that they came from. Runner.Import also checks the journals of agents.
func Import(ctx context.Context, store history.Store, in io.Reader) (*ImportResult, error) {
	return importResult(transfer.Import(ctx, store, in, nil))
}

func importResult(res *transfer.ImportResult, err error) (*ImportResult, error) {
	if res == nil {
		return nil, err
	}
	r := &ImportResult{
		ExecutionID: res.ExecutionID, Subworkflows: res.Subworkflows, Records: res.Records, Definitions: res.Definitions, Phase: res.Phase, Tasks: res.Tasks, Existed: res.Existed,
	}
	for _, n := range res.NotReplayed {
		r.NotReplayed = append(r.NotReplayed, NotReplayed(n))
	}
	return r, err
}

// Import is the function Import for the Runner's store. It also checks that the steps of agents follow from each other
// (Options.CheckSteps, AGENT_STEPS_DIFFER).
func (r *Runner) Import(ctx context.Context, in io.Reader) (*ImportResult, error) {
	if err := r.enterToWrite(ctx); err != nil {
		return nil, err
	}
	defer r.tasks.Done()
	return importResult(transfer.Import(ctx, r.store, in, r.opts.CheckSteps))
}
