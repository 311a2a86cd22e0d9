package run

import (
	"cmp"
	"context"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/internal/library"
	"github.com/workflows-engine/workflows-engine/graph/internal/work"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/view"
	"github.com/workflows-engine/workflows-engine/history"
)

// Environment holds what the runs of a process share. It does not change while it is in use.
type Environment struct {
	work.Env
	Process   Process
	Performer *work.Performer
	Programs  Programs
	// CheckAnswer checks answers to the questions of executors; nil accepts all.
	CheckAnswer CheckAnswer
	// Outbox makes the deliveries of the events that records bring.
	Outbox Outbox
	// ReadOnly: nothing is written, and no timer fired.
	ReadOnly bool
	// KeepRecords has Told carry the records of each commit.
	KeepRecords bool
	// MaxVisits and Limits bound each run, Tree the runs of a tree, MaxDocumentBytes each input.
	MaxVisits, MaxDocumentBytes int
	Limits                      machine.Limits
	Tree                        *TreeBudget
	// DefaultMode is shown of a run that does not record its mode.
	DefaultMode machine.Mode
}

// draining reports whether this process begins nothing new: what follows is left to other processes.
func (e *Environment) draining() bool { return e.Performer.InFlight.Draining() }

// Process is the process that drives the runs. Owns, Recorded, Changed and Timers are called while a run is locked: they note what they
// get, and return.
type Process interface {
	// Hold returns the name of the process once its lease is in the store for a good while to come.
	Hold(ctx context.Context) (process string, err error)
	// Alive returns the parent of the contexts of attempts that the process performs as an owner under a name. It ends with
	// work.ErrLeaseLost once the lease is lost.
	Alive(process string) context.Context
	// Owns notes that the process owns a run under a name from now on, or does not any more.
	Owns(x *Run, process string, owns bool)
	// PresentSince returns since when the process has been running without a break, such as the sleep of its host.
	PresentSince() time.Time
	// Recorded gets the records of each append, which may be reused once it has returned.
	Recorded(x *Run, records []history.Record)
	// Changed notes that another process has written to a run.
	Changed(x *Run)
	// Timers gets the complete set of a run's open timers whenever it has changed.
	Timers(x *Run, timers []machine.Timer)
}

// Outbox makes the deliveries of events of runs; see package outbox.
type Outbox interface {
	// Deliveries returns what is to be delivered of a batch: before is the phase of the run before it, after the run after it, and view
	// returns where the run stands then.
	Deliveries(before history.Phase, after *history.Execution, records []history.Record, view func() *view.Run) []history.Delivery
	// Stored is called with deliveries that are in the store now, while their run is locked.
	Stored(ds []history.Delivery)
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

// The keys of log records.
const (
	LogRun   = "execution_id"
	LogKey   = "effect"
	LogSeq   = "seq"
	LogError = "error"
	LogChild = "child_execution_id"
)
