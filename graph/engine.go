package graph

import (
	"context"
	"io"

	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/graph/view"
	"github.com/workflows-engine/workflows-engine/history"
)

// Engine has the calls that start, continue and read runs. Runner is one. Calls that not every engine supports have their own interfaces:
// Recoverer, Forker, Handler, Exporter, Verifier, Pruner, Limiter, Deliverer, Follower, Peeker, Counter, Definitions. Use Need to get one.
type Engine interface {
	ReadDefinition(text []byte) (*definition.Document, error)
	Program(*definition.Document) (*definition.Program, error)
	Start(context.Context, StartRequest) (*view.Run, error)
	Status(context.Context, StatusRequest) (*view.Run, error)
	Resume(context.Context, ResumeRequest) (*view.Run, error)
	SubmitActivity(context.Context, SubmitRequest) (*view.Run, error)
	Signal(context.Context, SignalRequest) (*view.Run, error)
	Cancel(context.Context, CancelRequest) (*view.Run, error)
	List(context.Context, history.ListQuery) (history.ListPage, error)
	History(context.Context, HistoryRequest) ([]history.Record, error)
	// Close stops executing runs; another process can claim and continue them.
	Close() error
}

// Recoverer is an Engine that claims orphaned runs.
type Recoverer interface {
	Drive(context.Context, DriveRequest) (*view.Run, error)
	Recover(context.Context, RecoverRequest) (*RecoverResult, error)
	Survey(ctx context.Context, executionIDs ...string) (*RecoverResult, error)
}

// Forker is an Engine that forks and retries runs.
type Forker interface {
	Fork(context.Context, ForkRequest) (*view.Run, error)
}

// Handler is an Engine that can mark failed runs as handled.
type Handler interface {
	Handle(context.Context, HandleRequest) error
}

// Exporter is an Engine that exports runs to files and imports them; see the functions Export and Import.
type Exporter interface {
	Export(ctx context.Context, executionID string, o ExportOptions, out io.Writer) error
	Import(ctx context.Context, in io.Reader) (*ImportResult, error)
}

// Verifier is an Engine that checks its store.
type Verifier interface {
	// Verify checks a run, or all if executionID is "": the store's own checks (history.Verifier) and those of the machine (Inspect). It
	// changes nothing unless repair is set.
	Verify(ctx context.Context, executionID string, repair bool, report func(history.Finding)) (history.Verified, error)
}

// Pruner is an Engine that deletes ended runs.
type Pruner interface {
	history.Pruner
	history.Shrinker
}

// Limiter is an Engine with limits that all processes of a database share; see Runner.
type Limiter interface {
	SetLimits(ctx context.Context, limits ...history.SharedLimit) error
	SharedLimits(ctx context.Context) ([]history.LimitUse, error)
}

// Deliverer is an Engine that delivers events to webhooks.
type Deliverer interface {
	Deliveries(context.Context, history.DeliveryQuery) (history.DeliveryPage, error)
	Redeliver(ctx context.Context, deliveryID string) (history.Delivery, error)
}

// Follower is an Engine that reports changes of runs.
type Follower interface {
	// Follow calls changed for each run that any process has appended to, with the seq of its last record. It returns nil when ctx ends, or
	// the error that ends it earlier. A call of changed is a hint: it may come twice, late or, if the store cannot tell, never; look at the run
	// with Peek or Status. The calls of one Follow come one after the other, so a slow one gets fewer: only the newest seq of a run.
	Follow(ctx context.Context, changed func(executionID string, seq int64)) error
}

// Peeker is an Engine that reads the row of one run, as List returns it.
type Peeker interface {
	// Peek returns a run with its Lineage. Unlike Status, it neither loads the run nor fires its due timers. The error is
	// EXECUTION_NOT_FOUND or the store's.
	Peek(ctx context.Context, executionID string) (history.Execution, error)
}

// Counter is an Engine that counts runs.
type Counter interface {
	// Count returns how many runs a query selects, but at most most: a larger number costs more. It ignores Limit, Cursor and Oldest. Errors:
	// VALIDATION_ERROR for a negative most and an unknown phase.
	Count(ctx context.Context, q history.ListQuery, most int) (n int, err error)
}

// Definitions is an Engine that reads stored definitions.
type Definitions interface {
	// Definitions returns a page of the stored definitions, the one stored last first. cursor is DefinitionPage.NextCursor of the page before;
	// limit is 1 to 100, 0 means 50. Errors: VALIDATION_ERROR, INVALID_LIST_CURSOR.
	Definitions(ctx context.Context, cursor string, limit int) (history.DefinitionPage, error)
	// Definition returns the stored definition with a hash, such as view.Run.DefinitionHash, without its signatures. It is for showing: this
	// process need not trust it. Errors: DEFINITION_REQUIRED if it is not stored, HISTORY_CORRUPT if it has been altered.
	Definition(ctx context.Context, hash string) (*definition.Document, error)
}

// DefinitionStore is an Engine that finds definitions by name and stores them without a run.
type DefinitionStore interface {
	// FindDefinition returns the definition that StartRequest.DefinitionRef selects: by hash, name or name@version. The error is
	// WORKFLOW_NOT_FOUND or that of Start.
	FindDefinition(ctx context.Context, ref string) (*definition.Document, error)
	// StoreDefinition stores a definition under its document name and version, and reports whether it was not stored before. Definitions
	// that no run has are deleted with PruneDefinitions. Errors: that of Start for a definition that cannot be run, and
	// DUPLICATE_WORKFLOW_ID if another definition is stored under the name and version.
	StoreDefinition(ctx context.Context, d *definition.Document) (stored bool, err error)
}

// Need returns an engine as one of the interfaces above. call names the call that needs it. The error is UNSUPPORTED_BY_BACKEND.
func Need[T any](e Engine, call string) (T, error) {
	t, ok := e.(T)
	if !ok {
		return t, unsupported("this engine", call)
	}
	return t, nil
}

func unsupported(subject, call string) error {
	return problem.New(problem.Unsupported, "%s does not support %s", subject, call).
		WithHint("Nothing was changed. Use an engine with its own database.")
}
