package graph

import (
	"context"
	"io"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/graph/view"
	"github.com/workflows-engine/workflows-engine/history"
)

// Engine is what hosts of workflows need, such as an MCP server: the calls that start, continue and read runs. Runner is one. What
// not every engine can do is an interface of its own: Recoverer, Forker, Handler, Exporter, Verifier, Pruner, Deliverer. A caller that needs one of
// these asks for it with Need before it does anything.
type Engine interface {
	Start(context.Context, StartRequest) (*view.Run, error)
	Status(context.Context, StatusRequest) (*view.Run, error)
	Resume(context.Context, ResumeRequest) (*view.Run, error)
	SubmitActivity(context.Context, SubmitRequest) (*view.Run, error)
	Signal(context.Context, SignalRequest) (*view.Run, error)
	Cancel(context.Context, CancelRequest) (*view.Run, error)
	List(context.Context, history.ListQuery) (history.ListPage, error)
	History(context.Context, HistoryRequest) ([]history.Record, error)
	// Close stops executing runs; another process that takes them over continues them.
	Close() error
}

// Recoverer is an Engine that takes over runs that have lost their owner.
type Recoverer interface {
	Drive(context.Context, DriveRequest) (*view.Run, error)
	Recover(context.Context, RecoverRequest) (*RecoverResult, error)
	Survey(ctx context.Context, executionIDs ...string) (*RecoverResult, error)
}

// Forker is an Engine that begins runs with the past of others.
type Forker interface {
	Fork(context.Context, ForkRequest) (*view.Run, error)
}

// Handler is an Engine that keeps which failed runs need nobody any more.
type Handler interface {
	Handle(context.Context, HandleRequest) error
}

// Exporter is an Engine that writes runs to files and takes in runs from files; see the functions Export and Import.
type Exporter interface {
	Export(ctx context.Context, executionID string, o ExportOptions, out io.Writer) error
	Import(ctx context.Context, in io.Reader) (*ImportResult, error)
}

// Verifier is an Engine that checks what it keeps.
type Verifier interface {
	// Verify checks a run, or everything if executionID is "": what the store can tell (history.Verifier) and what only the
	// machine can (Inspect). Only with repair does it change anything.
	Verify(ctx context.Context, executionID string, repair bool, report func(history.Finding)) (history.Verified, error)
}

// Pruner is an Engine that deletes runs that have ended.
type Pruner interface {
	history.Pruner
	history.Shrinker
}

// Deliverer is an Engine that notifies webhook targets.
type Deliverer interface {
	Deliveries(context.Context, history.DeliveryQuery) (history.DeliveryPage, error)
	Redeliver(ctx context.Context, deliveryID string) (history.Delivery, error)
}

// Need returns an engine as one of the interfaces above. what names the call for which it is needed; an engine that lacks it is
// refused with UNSUPPORTED_BY_BACKEND.
func Need[T any](e Engine, what string) (T, error) {
	t, ok := e.(T)
	if !ok {
		return t, unsupported("this engine", what)
	}
	return t, nil
}

func unsupported(who, what string) error {
	return problem.New(problem.Unsupported, "%s does not support %s", who, what).
		WithHint("Nothing was done. Make the call with an engine over a database of its own.")
}
