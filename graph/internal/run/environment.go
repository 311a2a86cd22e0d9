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

// Environment holds the parts that the runs of a process share. It does not change while in use.
type Environment struct {
	work.Env
	Process   Process
	Performer *work.Performer
	Programs  Programs
	// CheckAnswer checks answers to the questions of executors; nil accepts all.
	CheckAnswer CheckAnswer
	// Outbox makes the deliveries for the events in records.
	Outbox Outbox
	// Sharing is how runs are shared with other processes.
	Sharing Sharing
	// ReadOnly: runs write nothing and fire no timer.
	ReadOnly bool
	// KeepRecords makes News carry the records of each commit.
	KeepRecords bool
	// MaxVisits and Limits bound each run, Tree the runs of a tree, MaxDocumentBytes each input.
	MaxVisits, MaxDocumentBytes int
	Limits                      machine.Limits
	Tree                        *TreeBudget
	// DefaultMode is shown for a run that does not record its mode.
	DefaultMode machine.Mode
}

// draining reports whether this process starts no new attempts and leaves them to other processes.
func (e *Environment) draining() bool { return e.Performer.InFlight.Draining() }

// Process is the process of the runs. Owns, Recorded, Changed and Timers are called while a run is locked and must return at once.
type Process interface {
	// Hold returns the name of the process once its lease in the store has enough time left.
	Hold(ctx context.Context) (process string, err error)
	// Alive returns the parent of the contexts of attempts that the process performs as an owner under a name. It ends with
	// work.ErrLeaseLost when the lease is lost.
	Alive(process string) context.Context
	// Owns reports that the process now owns a run under a name, or no longer does.
	Owns(x *Run, process string, owns bool)
	// PresentSince returns the time since which the process has run without a break, such as the sleep of its host.
	PresentSince() time.Time
	// Recorded receives the records of each append. They may be reused after it returns.
	Recorded(x *Run, records []history.Record)
	// Changed reports a write of another process to a run.
	Changed(x *Run)
	// Timers receives the complete set of a run's open timers after each change.
	Timers(x *Run, timers []machine.Timer)
}

// Outbox makes the deliveries for events of runs; see package outbox.
type Outbox interface {
	// Deliveries returns the deliveries for a batch. before is the phase of the run before the batch, after the run after it; view
	// returns the answer about the run after it.
	Deliveries(before history.Phase, after *history.Execution, records []history.Record, view func() *view.Run) []history.Delivery
	// Stored is called with deliveries that are stored now, while their run is locked.
	Stored(ds []history.Delivery)
}

// Programs finds definitions.
type Programs interface {
	// Stored returns the program of a stored definition, or DEFINITION_REQUIRED.
	Stored(ctx context.Context, hash string) (*definition.Program, error)
	// Admit compiles a definition that comes from outside, or rejects it.
	Admit(d *definition.Document) (*definition.Program, error)
	// WaitsFor reports whether a workflow is known to be unknown here, and remembers that a run waits for it.
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
