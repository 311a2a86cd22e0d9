package graph

import (
	"context"

	"github.com/workflows-engine/workflows-engine/history"
)

// Engine is what hosts of workflows need, such as an MCP server: the calls that start, drive and read runs. Runner is one. What only
// an engine with a store of its own can do is asked for by type: Recoverer, Forker. A caller that needs one of
// these from an engine that lacks it fails with UNSUPPORTED_BY_BACKEND before it does anything; see Unsupported.
type Engine interface {
	Start(context.Context, StartRequest) (*Run, error)
	Status(context.Context, StatusRequest) (*Run, error)
	Resume(context.Context, ResumeRequest) (*Run, error)
	SubmitActivity(context.Context, SubmitRequest) (*Run, error)
	Signal(context.Context, SignalRequest) (*Run, error)
	Cancel(context.Context, CancelRequest) (*Run, error)
	List(context.Context, history.ListQuery) (history.ListPage, error)
	History(context.Context, HistoryRequest) ([]history.Record, error)
	// Close stops driving runs; they go on where another process takes them over.
	Close() error
}

// Recoverer is an Engine that takes over runs which have lost their driver.
type Recoverer interface {
	Recover(context.Context, RecoverRequest) (*RecoverResult, error)
	Survey(ctx context.Context, executionIDs ...string) (*RecoverResult, error)
}

// Forker is an Engine that begins runs with the past of others.
type Forker interface {
	Fork(context.Context, ForkRequest) (*Run, error)
}
