package view

import (
	"fmt"
	"slices"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/history"
)

// Run is the status of a run: the result of Status and of every call that drives a run.
type Run struct {
	ExecutionID       string
	Status            machine.Status
	DefinitionName    string
	DefinitionVersion string
	DefinitionHash    string
	Mode              machine.Mode
	// Title and Labels are those of the start.
	Title  string
	Labels map[string]string
	// Now is the time of this view, by the clock of its other times. It is not part of the JSON form, which is used to compare views.
	Now time.Time `json:"-"`
	// State is the current state of an active run, FinalState that of a run that has ended.
	State      map[string]any
	FinalState map[string]any
	// Result is the end node's output (completed only).
	Result any
	// Error, ErrorCode and ErrorNodeID describe a failed run.
	Error       string
	ErrorCode   string
	ErrorNodeID string
	// ErrorData holds further fields of the failure, such as {"raised": VALUE}: the value raised by a jq program.
	ErrorData map[string]any
	// Repeated reports that the call repeats an earlier one, and changed nothing.
	Repeated bool
	// Reason is the reason of a cancellation.
	Reason string
	// CurrentNodeID is the node of the first pending entry, or the last node that ran.
	CurrentNodeID string
	// Pending lists the waits of the run, in branch order; those of subworkflows have the id of their run. The protocol's single fields
	// show the first entry.
	Pending []Pending
	// Maps is the progress of the run's maps, in branch order.
	Maps []machine.MapProgress
	// KeptSignals counts the signals that arrived before a wait for them, by name.
	KeptSignals []machine.KeptSignals
	// Rollbacks are the active rollbacks of the run or its branches, in branch order.
	Rollbacks []machine.RollbackProgress
	// Compensated counts the compensations of the rollback that ended the run.
	Compensated int
	// Correlation of the newest delegate and subworkflow, in any phase (spec: execution, 11.2).
	DelegateCorrelationID string
	ChildExecutionID      string
	// ParentExecutionID is the run that started this one as a subworkflow, "" for a root.
	ParentExecutionID string
	// ForkedFrom is the run and record that this run was forked from; zero for other runs.
	ForkedFrom history.ForkOrigin
	// Lineage links the run to its retries and to the run that it retries, and marks it as handled. Only Status and List set it.
	Lineage history.Lineage `json:"-"`
	// GoesOn is the point where a retry continues the agent of a failed run; zero if a retry starts the node again. Only Status sets it.
	GoesOn GoesOn `json:"-"`
	// Seq is the seq of the run's last record in this view: of two views, the one with the higher Seq is newer. Records of subworkflows do
	// not count. CreatedAt and UpdatedAt are the times of the first and last record.
	Seq                  int64
	CreatedAt, UpdatedAt time.Time
	// DeadlineAt is when an active run fails, zero without a deadline.
	DeadlineAt time.Time
	// NodeVisits counts node visits; MaxVisits is their limit.
	NodeVisits, MaxVisits int
	// Bytes is the size of the run's records in the store.
	Bytes int64
	// Warnings name limits that an active run has nearly reached, and parts of the call that had no effect.
	Warnings []Warning
	// Lacks is the executor or definition that this process is missing to continue a run without an owner, or nil: a process that has it
	// continues the run. The run needs it now, or may need it after the next answer (Lack.Host).
	Lacks *Lack
	// Ready is the place of a run that waits in the store for a process with room; nil for another run.
	Ready *Ready
}

// Ready describes a run that waits in the store for a process with room.
type Ready struct {
	history.Place
	// Workers is the number of live processes that perform runs of this lane.
	Workers int
}

// GoesOn is the point where a retry continues an agent: after the journal entry After. Calls counts the tool calls that are not repeated.
// In is the subworkflow of the agent, "" for the run itself.
type GoesOn struct {
	After, In string
	Calls     int
}

// String describes the point for people; "" for the zero value.
func (g GoesOn) String() string {
	text := "continues after " + g.After
	if g.In != "" {
		text += " in " + g.In
	}
	switch {
	case g.After == "":
		return ""
	case g.Calls == 0:
		return text
	case g.Calls == 1:
		return text + "; 1 call is not repeated"
	}
	return fmt.Sprintf("%s; %d calls are not repeated", text, g.Calls)
}

// ChildParentID returns the parent of the subworkflow ChildExecutionID: the run itself, or the parent of the run. The protocol calls it
// parent_execution_id (spec: execution, 11.2).
func (r *Run) ChildParentID() string {
	switch r.ChildExecutionID {
	case "":
		return ""
	case r.ExecutionID:
		return r.ParentExecutionID
	}
	return r.ExecutionID
}

// Executions returns the ids of the run and of the subworkflows that it waits for.
func (r *Run) Executions() []string {
	ids := []string{r.ExecutionID}
	add := func(id string) {
		if id != "" && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	add(r.ChildExecutionID)
	for i := range r.Pending {
		add(r.Pending[i].ExecutionID)
		add(r.Pending[i].ChildExecutionID)
	}
	return ids
}

// Pending is a wait of a run, with everything needed to end it. The Prompt of an interrupt is the whole prompt.
type Pending struct {
	machine.WaitInfo
	// ExecutionID is the run that waits: the run itself or a subworkflow.
	ExecutionID string
	// ID is unique among all runs: "<execution id>:<node>#<visit>" for interrupts and waits, the idempotency key
	// "<execution id>:<node>#<visit>.<attempt>" for attempts.
	ID       string
	NodeType string
	// Config is the node's config as written; nil for timers, signals and subworkflows.
	Config map[string]any
	// OutputSchema is the schema of the result, or nil.
	OutputSchema any
	// IdempotencyKey of an attempt.
	IdempotencyKey string

	// PromptRef and ResumeSchema of an interrupt; ResumeSchema is the schema of the answer.
	PromptRef    string
	ResumeSchema map[string]any
	// showSource is the jq program of Show, which orders its fields. showsState: without Show, the state is shown.
	showSource string
	showsState bool
	// written are the fields of State that are new since the last question, the newest first.
	written []string

	// Limit is a shared limit that the attempt waits for: of this class, all slots are in use, or attempts wait for a start. It is nil for other
	// waits. Only Status of the run itself sets it.
	Limit *history.LimitUse `json:"-"`
	// Steps counts the journal entries of the attempt; Totals are their newest sums, such as tokens. While the executor asks a person, Kind is
	// WaitInterrupt.
	Steps  int
	Totals map[string]any
	// QuestionSeq is the record of an executor's question, which holds Show; 0 for other entries.
	QuestionSeq int64
	// FirstStepSeq and LastStepSeq are the records of the first and last journal entry; 0 without entries. FirstStep and NewestStep are
	// the bodies (agentStep) of the first entry, and of the newest one with progress, which excludes answers and rests. They are nil if
	// many attempts of the run have a journal. Reconfigured is the body of the last entry of kind machine.StepReconfigured, if any.
	FirstStepSeq, LastStepSeq, ReconfiguredSeq int64
	FirstStep, NewestStep, Reconfigured        map[string]any

	// ExternalTaskID is the task at the agent of a delegation, "" before the agent has accepted it.
	ExternalTaskID string
}
