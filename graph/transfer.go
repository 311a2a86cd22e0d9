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
	// Redact masks secrets with Redaction; nil means history.DefaultRedaction. A redacted file cannot be imported.
	Redact    bool
	Redaction *history.Redaction
	// Now is the time of the export.
	Now time.Time
}

// ImportResult describes an imported file.
type ImportResult struct {
	// ExecutionID is the exported run. Subworkflows counts the others.
	ExecutionID  string
	Subworkflows int
	Records      int
	Definitions  int
	// Phase is that of the run.
	Phase history.Phase
	// Tasks counts the pending tasks at agents. Cancelling the run in the database of its export would cancel them; see
	// CancelRequest.KeepTasks.
	Tasks int
	// NotReplayed lists the runs with records of another engine, which were not checked.
	NotReplayed []NotReplayed
	// Existed reports that all records existed before and nothing was changed.
	Existed bool
}

// NotReplayed is a run with records that were not compared with its definition.
type NotReplayed struct {
	ExecutionID string
	// Records counts the records marked as another engine's, or all records of a run that another engine began.
	Records int
}

// Export writes a run with its subworkflows and their definitions as a file of package runfile. An active run is written as of one moment: a
// parent's history is read before those of its subworkflows. The error is EXECUTION_NOT_FOUND, or that of the store or out; Import rejects an
// incomplete file.
func Export(ctx context.Context, store history.Store, executionID string, o ExportOptions, out io.Writer) error {
	return transfer.Export(ctx, store, executionID, transfer.ExportOptions(o), out)
}

// Export is the function Export for the Runner's store.
func (r *Runner) Export(ctx context.Context, executionID string, o ExportOptions, out io.Writer) error {
	if err := r.enter(ctx); err != nil {
		return err
	}
	defer r.p.Leave()
	o.Redaction = cmp.Or(o.Redaction, r.opts.Redaction)
	return Export(ctx, r.p.Store, executionID, o, out)
}

// Import adds the runs of a file that Export has written to a store, all of them or no run; the store must be a history.Importer. It first checks the
// file (IMPORT_INVALID with the line), compares each run with its definition (NONDETERMINISM_DETECTED, DEFINITION_REQUIRED), and checks that
// subworkflows have their parents. Results of activities and answers of people cannot be checked. The error is DUPLICATE_EXECUTION_ID if a
// run exists with other records. The runs continue with the next answer, or once a process claims them; make sure that they do not also
// continue in their first database. Runner.Import also checks the journals of agents.
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

// Import is the function Import for the Runner's store. It also checks the journals of agents (Options.CheckSteps, AGENT_STEPS_DIFFER).
func (r *Runner) Import(ctx context.Context, in io.Reader) (*ImportResult, error) {
	if err := r.enterToWrite(ctx); err != nil {
		return nil, err
	}
	defer r.p.Leave()
	return importResult(transfer.Import(ctx, r.p.Store, in, r.opts.CheckSteps))
}
