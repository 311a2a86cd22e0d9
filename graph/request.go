package graph

import (
	"time"

	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/internal/admit"
	"github.com/workflows-engine/workflows-engine/graph/internal/process"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/history"
)

// StartRequest starts a run.
type StartRequest struct {
	// ExecutionID is the id of the new run; blank means a new UUID. Ids that contain ":sub:" are reserved for subworkflows.
	ExecutionID string
	// Definition to run; nil if DefinitionRef is set.
	Definition *definition.Document
	// DefinitionRef is the hash of a stored definition, or a name: of RegisterWorkflow, Options.Workflows or a stored definition.
	DefinitionRef string
	// Input is the initial state. Nil counts as {}.
	Input map[string]any
	// Mode is recorded with the run; "" means Options.DefaultMode.
	Mode machine.Mode
	// Branches is recorded with the run; "" means Options.Branches.
	Branches machine.BranchOrder
	// Priority is recorded with the run and its subworkflows. Where attempts wait for a place (Options.Limits), the run with the highest
	// priority is next. Runs of equal priority take turns, and lower ones are not starved.
	Priority int
	// Queue is the queue of the run and its subworkflows, from which processes take them (Options.Queues); "" means history.DefaultQueue.
	Queue string
	// Deadline is the longest time that the run may take, from its start; then it fails with RUN_TIMEOUT. It only shortens the deadline of the
	// definition. 0 means that of the definition.
	Deadline time.Duration
	// Title, one line of up to 200 characters, and up to 16 Labels with short values describe the run for List.
	Title  string
	Labels map[string]string
	// Notify names up to 16 of Options.Webhooks that receive the run's events. The names are recorded with the run.
	Notify []string
	// AllowExisting makes the start of an existing run return its status, and claim it if its owner is gone, rather than fail.
	AllowExisting bool
	// RequireCapable rejects an in-process run if this Runner is missing executors, handlers, servers, agents or subworkflows, with one
	// COMPOSITE_EXECUTOR_NOT_CONFIGURED that lists them. Otherwise Run.Warnings lists those of the definition itself, and the run fails when
	// it reaches such a node.
	RequireCapable bool
	// Wait limits the time that the call waits; see Wait.
	Wait Wait
}

// Wait configures how a call waits for its run to end or to need input.
type Wait struct {
	// Limit is the longest wait. 0 means Options.WaitLimit; a negative value makes the call return at once.
	Limit time.Duration
	// Progress, if not nil, is called for changes of the run while the call waits, in the goroutine of the call and never after it has
	// returned. Only the call waits for it. If there are many changes, some are left out. Of runs driven by another process, only current
	// nodes are reported.
	Progress func(Progress)
	// Applied, if not nil, is called once the change of the call is committed and before the call waits, so that the caller can make its next
	// call in order. It is not called if the call does not wait, and must return at once.
	Applied func()
	// End, if not nil, ends the wait when it is closed; the call then returns the current status. The end of the context does that, too, but
	// also rejects a call that has not started.
	End <-chan struct{}
}

func (w Wait) waiting() process.Wait {
	p := process.Wait{Limit: w.Limit, Applied: w.Applied, End: w.End}
	if w.Progress != nil {
		p.Progress = func(happened process.Progress) { w.Progress(progress(happened)) }
	}
	return p
}

// NoWait is the Wait.Limit of a call that returns at once.
const NoWait time.Duration = -1

// WaitAtMost returns a Wait of d, or of NoWait if d is not positive.
func WaitAtMost(d time.Duration) Wait {
	if d <= 0 {
		d = NoWait
	}
	return Wait{Limit: d}
}

// Caller holds optional arguments of calls after the start. If given, they are compared with the run.
type Caller struct {
	// Definition must have the hash of the run's definition; nil skips the check. It is needed only if the run's definition is not stored.
	Definition *definition.Document
	// Input must equal the run's input if InputSet.
	Input    map[string]any
	InputSet bool
	// Mode changes the run's mode for later activities; "" keeps it.
	Mode machine.Mode
	Wait Wait
}

func (c *Caller) verified() admit.Caller {
	return admit.Caller{Definition: c.Definition, Input: c.Input, InputSet: c.InputSet, Mode: c.Mode}
}

// ResumeRequest answers an interrupt.
type ResumeRequest struct {
	ExecutionID string
	// InterruptID is Pending.ID of the interrupt. It may be omitted if only one interrupt can be meant; see Resume.
	InterruptID string
	Payload     map[string]any
	Caller
}

// SubmitRequest submits the outcome of a pending activity or delegation.
type SubmitRequest struct {
	ExecutionID string
	NodeID      string
	// Span of the pending activity in a parallel branch. It may be omitted with IdempotencyKey.
	Span *history.ParallelSpan
	// OK distinguishes success (Result) from failure (Error, Code). At most problem.MaxText bytes of Error and Code are recorded.
	OK     bool
	Result map[string]any
	Error  string
	Code   string
	// CorrelationID must be that of the pending delegation (success). ExternalTaskID is optional.
	CorrelationID  string
	ExternalTaskID string
	// IdempotencyKey is Pending.IdempotencyKey; optional. If given, it must be that of the pending attempt, and a repeated submit of the
	// key with the same outcome returns the status. Without it, a submit counts as repeated if it equals the newest recorded outcome of
	// its node and branch.
	IdempotencyKey string
	Caller
}

// SignalRequest delivers a signal.
type SignalRequest struct {
	ExecutionID string
	Name        string
	// Payload is merged into the state by the reducers. Nil counts as {}.
	Payload map[string]any
	// IdempotencyKey is optional. A run accepts each key once; it keeps the last machine.MaxSignalKeys keys.
	IdempotencyKey string
	// Start, if not nil, starts the run with the signal unless ExecutionID exists, in one commit. The run must await the signal at its first
	// wait, or keep early signals of its name; a signal that it rejects starts nothing. Its ExecutionID, AllowExisting and Wait are ignored. An
	// existing run gets the signal alone. Set IdempotencyKey to make the call safe to repeat.
	Start *StartRequest
	Caller
}

// CancelRequest cancels a run.
type CancelRequest struct {
	ExecutionID string
	// Reason is optional; at most problem.MaxText bytes are recorded.
	Reason string
	// KeepTasks keeps the tasks of the run and its subworkflows at agents: no process ever notifies an agent of the end. Set it for a run
	// that continues in another database.
	KeepTasks bool
}

// StatusRequest reads the status of a run.
type StatusRequest struct {
	ExecutionID string
	// Wait, if not nil, makes the call wait while the run is active, until its status changes.
	Wait *Wait
	// Since, if not 0, is Run.Seq of an earlier result: the call then waits for any change after it, also of a waiting run, and returns at
	// once if there was one.
	Since int64
}

// HistoryRequest reads the records of a run.
type HistoryRequest struct {
	ExecutionID string
	// FromSeq is the first record (0 and 1: the first of the run). Limit is the largest number of records; 0 means all.
	FromSeq int64
	Limit   int
	// Reveal returns the records without redaction.
	Reveal bool
}

// RecoverRequest claims orphaned runs.
type RecoverRequest struct {
	// DryRun changes nothing, and returns the runs that would be claimed.
	DryRun bool
	// OmitElsewhere leaves RecoverResult.Elsewhere empty: to fill it, every open run is read.
	OmitElsewhere bool
	// Limit is the largest number of runs to check, or to list with DryRun; 0 means 100.
	Limit int
}
