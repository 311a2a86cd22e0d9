package run

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/internal/library"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/view"
	"github.com/workflows-engine/workflows-engine/history"
)

// Environment is what the runs of a process have in common. Nothing in it changes once it is in use.
type Environment struct {
	Store history.Store
	// Now is the store's clock as this process reads it.
	Now func() time.Time
	Log *slog.Logger
	// Context is the parent of the contexts of attempts for which no owner is needed.
	Context      context.Context
	Lease        ProcessLease
	Programs     Programs
	Capabilities library.Capabilities
	Observer     Observer
	// Describe adds to the requests in a batch what is sent for them. bytes is what the run takes in the store.
	Describe func(executionID string, bytes int64, b *machine.Batch)
	// CheckAnswer checks answers to the questions of executors.
	CheckAnswer CheckAnswer
	// Outbox makes the deliveries of the events that records bring.
	Outbox Outbox
	// ReadOnly: nothing is written, and no timer fired.
	ReadOnly bool
	// PresentSince returns since when this process has been running without a break, such as the sleep of its host.
	PresentSince func() time.Time
	// Draining reports whether nothing new is to be begun here: what follows is left to other processes.
	Draining func() bool
	// MaxVisits and Limits bound each run, Tree the runs of a tree, MaxDocumentBytes each input.
	MaxVisits, MaxDocumentBytes int
	Limits                      machine.Limits
	Tree                        *TreeBudget
	// DefaultMode is shown of a run that does not record its mode.
	DefaultMode machine.Mode
}

// Outbox makes the deliveries of events of runs; see package outbox.
type Outbox interface {
	// Deliveries returns what is to be delivered of a batch: before is the phase of the run before it, after the run after it, and view
	// returns where the run stands then.
	Deliveries(before history.Phase, after *history.Execution, records []history.Record, view func() *view.Run) []history.Delivery
	// Stored is called with deliveries that are in the store now, while their run is locked.
	Stored(ds []history.Delivery)
}

// ProcessLease is the lease under which this process owns runs.
type ProcessLease interface {
	// Hold returns the name of the process once its lease is in the store for a good while to come.
	Hold(ctx context.Context) (process string, err error)
	// Owns notes that the process owns a run under a name from now on, or does not any more.
	Owns(x *Run, process string, owns bool)
	// Alive returns the parent of the contexts of attempts that the process performs as an owner under a name. It ends with
	// attempt.ErrLeaseLost once the lease is lost.
	Alive(process string) context.Context
}

// Programs finds definitions.
type Programs interface {
	// Stored returns the program of a stored definition, or DEFINITION_REQUIRED.
	Stored(ctx context.Context, hash string) (*definition.Program, error)
	// Admit compiles a definition that comes from outside, or refuses it.
	Admit(d *definition.Document) (*definition.Program, error)
	// WaitsFor reports whether a workflow has turned out to be unknown here, and notes that a run waits for it.
	WaitsFor(name library.WorkflowName) bool
}

// NameOf returns the name of the workflow that a node of the run starts. The run is locked, and its program is known.
func (x *Run) NameOf(c *definition.SubworkflowConfig) library.WorkflowName {
	return library.WorkflowName{Ref: c.WorkflowRef, Pin: c.VersionPin, Version: cmp.Or(c.VersionPin, x.exec.Subworkflows[c.WorkflowRef])}
}

// Observer is notified of commits. Its methods are called while the run is locked: they note what they get, and return.
type Observer interface {
	// Recorded gets the records of each append. They may be used again once the method has returned, unless it says that it
	// has kept them.
	Recorded(id string, visits int, records []history.Record) (kept bool)
	// Changed says that something that others may wait for has changed.
	Changed(id string)
	// Timers gets the complete set of a run's open timers whenever it has changed.
	Timers(x *Run, timers []machine.Timer)
}

// The keys of log records.
const (
	LogRun   = "execution_id"
	LogKey   = "effect"
	LogSeq   = "seq"
	LogError = "error"
	LogChild = "child_execution_id"
)

// detached is the context of work that outlives the call it came from: recording what has happened. It carries no deadline
// of its own; stores bound how long they wait for a lock.
func detached(ctx context.Context) context.Context { return context.WithoutCancel(ctx) }
