package graph

import (
	"time"

	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/internal/admit"
	"github.com/workflows-engine/workflows-engine/graph/internal/process"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/history"
)

// StartRequest begins a run.
type StartRequest struct {
	// ExecutionID is taken as it is; blank means a new UUID. Ids with ":sub:" inside are reserved for subworkflows.
	ExecutionID string
	// Definition to run; nil if DefinitionRef names a stored one.
	Definition *definition.Document
	// DefinitionRef is the hash of a stored definition, or what RegisterWorkflow, Options.Workflows or a stored document is named.
	DefinitionRef string
	// Input is the first state. Nil counts as {}.
	Input map[string]any
	// Mode is remembered with the run; "" means Options.DefaultMode.
	Mode machine.Mode
	// Branches is remembered with the run; "" means Options.Branches.
	Branches machine.BranchOrder
	// Priority is remembered with the run, and with its subworkflows: where attempts wait for their turn (Options.Limits), the next free
	// one is that of the run with the highest priority. Lower ones are not starved, and equals have one turn each in a round.
	Priority int
	// Title, one line of up to 200 characters, and up to 16 Labels with short values are what List shows and finds the run by.
	Title  string
	Labels map[string]string
	// Notify are names of Options.Webhooks that are notified of the run's events, up to 16. They are remembered with the run, as are those
	// of targets of all runs.
	Notify []string
	// AllowExisting makes a start of an existing id say where that run stands, and take it over if its owner is gone, not fail.
	AllowExisting bool
	// RequireCapable refuses a run in process for which this Runner lacks an executor, handler, server, agent or subworkflow, with
	// one COMPOSITE_EXECUTOR_NOT_CONFIGURED that lists all that is missing. Otherwise Run.Warnings names what the definition's own nodes
	// lack, and the run fails when it comes to such a node.
	RequireCapable bool
	// Wait bounds how long the call waits in line; see Wait.
	Wait Wait
}

// Wait bounds how long a call waits for the run to come to rest.
type Wait struct {
	// Limit is the longest wait. 0 means Options.WaitLimit; a negative one makes the call return at once.
	Limit time.Duration
	// Progress, if not nil, is called with each change of the run while the call waits, in the call's own goroutine and never after it
	// has returned. Only the call waits for it. Where a lot happens, some is left out. Of the work of another process only the run's
	// current nodes are reported.
	Progress func(Progress)
	// Applied, if not nil, is called once the call's change is committed and before the call waits, so that a caller that must keep the
	// order of calls may make the next one. It is not called if the call does not wait, and must return at once.
	Applied func()
	// End, if not nil, ends the wait when it is closed: the call then answers with the run's current state. The end of the call's
	// context does that too, but refuses a call that has not begun.
	End <-chan struct{}
}

func (w Wait) waiting() process.Wait {
	p := process.Wait{Limit: w.Limit, Applied: w.Applied, End: w.End}
	if w.Progress != nil {
		p.Progress = func(happened process.Progress) { w.Progress(progress(happened)) }
	}
	return p
}

// NoWait as Wait.Limit makes a call return at once.
const NoWait time.Duration = -1

// WaitAtMost is a Wait for a time that was computed: if nothing is left of it, the call returns at once.
func WaitAtMost(d time.Duration) Wait {
	if d <= 0 {
		d = NoWait
	}
	return Wait{Limit: d}
}

// Caller is what a call after start may repeat: it is verified against the run if given, and not needed.
type Caller struct {
	// Definition must hash to the run's definition; nil skips the check. It is needed only for runs that another
	// engine began, whose definition is not stored.
	Definition *definition.Document
	// Input must equal the run's input if InputSet.
	Input    map[string]any
	InputSet bool
	// Mode changes the run's mode for requests made from now on; "" keeps it.
	Mode machine.Mode
	Wait Wait
}

func (c *Caller) verified() admit.Caller {
	return admit.Caller{Definition: c.Definition, Input: c.Input, InputSet: c.InputSet, Mode: c.Mode}
}

// ResumeRequest answers an interrupt.
type ResumeRequest struct {
	ExecutionID string
	// InterruptID is Pending.ID of the interrupt. It may be left out where the answer can mean one alone: see Resume.
	InterruptID string
	Payload     map[string]any
	Caller
}

// SubmitRequest reports the outcome of a pending activity or delegate.
type SubmitRequest struct {
	ExecutionID string
	NodeID      string
	// Span of the pending activity, inside a parallel branch. It may be left out with IdempotencyKey.
	Span *history.ParallelSpan
	// OK tells success (Result) from failure (Error, Code), of which at most problem.MaxText bytes each are recorded.
	OK     bool
	Result map[string]any
	Error  string
	Code   string
	// CorrelationID must be that of a pending delegate (success); ExternalTaskID is optional.
	CorrelationID  string
	ExternalTaskID string
	// IdempotencyKey is Pending.IdempotencyKey; optional. If given it must be the pending attempt's, and a repeated
	// submit of the same key with the same outcome is answered with where the run stands. Without it a refused submit
	// counts as repeated if it equals what was recorded last for its node and branch.
	IdempotencyKey string
	Caller
}

// SignalRequest delivers a signal.
type SignalRequest struct {
	ExecutionID string
	Name        string
	// Payload merges into the state through the reducers. Nil counts as {}.
	Payload map[string]any
	// IdempotencyKey, if given, names this signal: a run takes no second one with any of its last machine.MaxSignalKeys keys.
	IdempotencyKey string
	Caller
}

// CancelRequest ends a run.
type CancelRequest struct {
	ExecutionID string
	// Reason is optional. Of more than problem.MaxText bytes the beginning is recorded.
	Reason string
	// KeepTasks leaves the tasks alone that the run and its subworkflows have at agents: no agent is notified of the end, by
	// no process and at no later time. For a run that goes on in another database, whose tasks these are now.
	KeepTasks bool
}

// StatusRequest asks where a run stands.
type StatusRequest struct {
	ExecutionID string
	// Wait, if not nil, makes the call wait while the run goes on by itself, until its status changes.
	Wait *Wait
	// Since, if not 0, is Run.Seq of an earlier answer: a call that waits then waits for any change since that one, also
	// of a run that is at rest, and returns at once if there was one.
	Since int64
}

// HistoryRequest reads a run's records.
type HistoryRequest struct {
	ExecutionID string
	// FromSeq is the first record wanted (0 and 1: the first); Limit 0 means all.
	FromSeq int64
	Limit   int
	// Reveal returns the records unredacted.
	Reveal bool
}

// RecoverRequest takes over runs whose owner is gone.
type RecoverRequest struct {
	// DryRun writes nothing, and only says what would be done.
	DryRun bool
	// Limit is the most runs to look at, or with DryRun the most to list as taken over; 0 means 100.
	Limit int
}
