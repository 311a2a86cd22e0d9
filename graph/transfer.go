package graph

import (
	"cmp"
	"context"
	"io"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/internal/transfer"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
)

// ExportOptions configure an export.
type ExportOptions struct {
	// Redact masks secrets with Redaction; nil means history.DefaultRedaction. A redacted file cannot be imported.
	Redact    bool
	Redaction *history.Redaction
	// Now is the time of the export.
	Now time.Time
	// Move ends the run and its subworkflows where they are, since they continue where the file is imported: they are cancelled, but agents keep
	// their tasks, and the file has them as they were before. An export that was interrupted can be repeated. Attempts under way are stopped,
	// and repeated there with the same idempotency keys. Only an Engine moves runs.
	Move bool
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
	if o.Move {
		return problem.New(problem.UsageError, "a store cannot move a run").WithHint("Use an engine over the store.")
	}
	return transfer.Export(ctx, store, executionID, o.options(), out)
}

func (o *ExportOptions) options() transfer.ExportOptions {
	return transfer.ExportOptions{Redact: o.Redact, Redaction: o.Redaction, Now: o.Now}
}

// Export is the function Export for the Runner's store. With ExportOptions.Move the errors are also those of Import and Cancel; USAGE_ERROR for a
// subworkflow or a redacted file; CANCEL_NOT_ALLOWED for a run that has ended.
func (r *Runner) Export(ctx context.Context, executionID string, o ExportOptions, out io.Writer) error {
	enter := r.enter
	if o.Move {
		enter = r.enterToWrite
	}
	if err := enter(ctx); err != nil {
		return err
	}
	defer r.p.Leave()
	o.Redaction = cmp.Or(o.Redaction, r.opts.Redaction)
	options := o.options()
	if o.Move {
		options.CheckSteps = r.opts.CheckSteps
		options.Move = func(ctx context.Context, reason string) error {
			_, err := r.Cancel(ctx, CancelRequest{ExecutionID: executionID, Reason: reason, KeepTasks: true})
			return err
		}
	}
	return transfer.Export(ctx, r.p.Store, executionID, options, out)
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

// Database is a database of the npm engine as of one moment, such as a *historysql.EngineFile.
type Database interface {
	// Runs returns the ids of all runs, subworkflows included, in order.
	Runs() ([]string, error)
	// Records returns all records of a run, with their texts in Raw and marked as Foreign.
	Records(executionID string) ([]history.Record, error)
}

// DatabaseOptions configure ImportDatabase.
type DatabaseOptions struct {
	// Definitions are those of the runs: the npm engine stores none. A run that has not ended needs its definition. One that has ended is
	// kept without, and is then neither checked nor forked.
	Definitions []*definition.Document
	// Mode is who performs activities from now on; "" is HostMediated.
	Mode machine.Mode
}

// DatabaseRun is the result for one run of a database with its subworkflows. Err is why the run was rejected; Result is nil then.
type DatabaseRun struct {
	ExecutionID string
	Result      *ImportResult
	Err         error
}

// ImportDatabase imports the runs of a database of the npm engine, each with its subworkflows in one transaction. The database stays as it
// is. Runs are checked as Import checks them, except that recorded values are taken as they are. A run that an earlier import
// brought is reported as Existed. A rejected run keeps no other run out: see DatabaseRun.Err, which is HISTORY_CORRUPT for damaged records,
// DEFINITION_REQUIRED for a run whose definition is missing, NONDETERMINISM_DETECTED, IMPORT_INVALID or DUPLICATE_EXECUTION_ID. The error is that
// of the database or the store; runs imported before it stay.
func ImportDatabase(ctx context.Context, store history.Store, from Database, o DatabaseOptions) ([]DatabaseRun, error) {
	runs, err := transfer.ImportDatabase(ctx, store, from, transfer.DatabaseOptions(o))
	out := make([]DatabaseRun, len(runs))
	for i, r := range runs {
		out[i] = DatabaseRun{ExecutionID: r.ExecutionID, Err: r.Err}
		out[i].Result, _ = importResult(r.Result, nil)
	}
	return out, err
}

// Import is the function Import for the Runner's store. It also checks the journals of agents (Options.CheckSteps, AGENT_STEPS_DIFFER).
func (r *Runner) Import(ctx context.Context, in io.Reader) (*ImportResult, error) {
	if err := r.enterToWrite(ctx); err != nil {
		return nil, err
	}
	defer r.p.Leave()
	return importResult(transfer.Import(ctx, r.p.Store, in, r.opts.CheckSteps))
}
