package view

import (
	"fmt"
	"slices"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/history"
)

// Run is where a run stands: the answer of every call that drives one, and of Status.
type Run struct {
	ExecutionID string
	Status      machine.Status
	// DefinitionName, DefinitionVersion and DefinitionHash say what runs.
	DefinitionName    string
	DefinitionVersion string
	DefinitionHash    string
	Mode              machine.Mode
	// Title and Labels are what the run was given at its start to be found by.
	Title  string
	Labels map[string]string
	// Now is when the run stood so, by the clock of its times. It is no part of the JSON form, by which views are compared.
	Now time.Time `json:"-"`
	// State is the current state while the run goes on, FinalState when it has ended.
	State      map[string]any
	FinalState map[string]any
	// Result is the end node's output (completed only).
	Result any
	// Error, ErrorCode and ErrorNodeID describe a failed run.
	Error       string
	ErrorCode   string
	ErrorNodeID string
	// ErrorData is what the failure carries besides its message: as a rule {"raised": VALUE}, the value that a jq program raised.
	ErrorData map[string]any
	// Repeated says that the call was taken before, and changed nothing now.
	Repeated bool
	// Reason is why a run was cancelled.
	Reason string
	// CurrentNodeID is the node of the first pending entry, or the last node that ran.
	CurrentNodeID string
	// Pending lists everything the run waits for, in branch order; entries of subworkflows carry their run's id. The
	// first one is what the classic single fields of the protocol show.
	Pending []Pending
	// Maps say how far the run's maps have come, in branch order.
	Maps []machine.MapProgress
	// KeptSignals are the signals that came before a wait for them, by name.
	KeptSignals []machine.KeptSignals
	// Rollbacks are those under way, of the run or of its branches, in branch order.
	Rollbacks []machine.RollbackProgress
	// Compensated is how many compensations were made before the run ended, if a rollback led to its end.
	Compensated int
	// Correlation of the newest delegate and subworkflow, in any phase (spec: execution, 11.2).
	DelegateCorrelationID string
	ChildExecutionID      string
	// ParentExecutionID is the run that started this one as a subworkflow, "" for a root.
	ParentExecutionID string
	// ForkedFrom is the run that this one is a copy of up to a record; zero for others.
	ForkedFrom history.ForkOrigin
	// Lineage says of which run this one is a retry, which ones are retries of it, and whether it is handled. Only Status and List say so.
	Lineage history.Lineage `json:"-"`
	// GoesOn says where the agent of a failed run stood, and goes on in a retry; zero where a retry begins before the node. Only Status says so.
	GoesOn GoesOn `json:"-"`
	// Seq is the seq of the last record of the run's own that this view shows: of two views the one with the higher Seq is newer.
	// Subworkflows count by themselves, each in its own view. CreatedAt and UpdatedAt are the times of the first and last record.
	Seq                  int64
	CreatedAt, UpdatedAt time.Time
	// NodeVisits so far, and the run's budget.
	NodeVisits, MaxVisits int
	// Bytes is what the run's records take in the store.
	Bytes int64
	// Warnings say which limits the run nears, unless it has ended, and what the call did not do that it was asked for.
	Warnings []Warning
	// Lacks is what this process lacks to go on with a run that no process drives, nil if it lacks nothing: the run goes
	// on in a process that has it. It is what the run waits for now, or else may come to once it is answered (Lack.Host).
	Lacks *Lack
}

// GoesOn is where an agent goes on in a retry: after a step of it, with so many calls of tools that are not made again. In is the
// subworkflow that the agent works in, "" for the run itself.
type GoesOn struct {
	After, In string
	Calls     int
}

// String says so to people; "" for the zero value.
func (g GoesOn) String() string {
	text := "goes on after " + g.After
	if g.In != "" {
		text += " in " + g.In
	}
	switch {
	case g.After == "":
		return ""
	case g.Calls == 0:
		return text
	case g.Calls == 1:
		return text + "; 1 call is not made again"
	}
	return fmt.Sprintf("%s; %d calls are not made again", text, g.Calls)
}

// ChildParentID is the parent of the subworkflow that ChildExecutionID names: the run itself, or for a subworkflow that started none
// its own parent. The protocol calls it parent_execution_id (spec: execution, 11.2).
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

// Pending is one thing that a run waits for, with all that whoever ends the wait needs.
type Pending struct {
	Kind machine.WaitKind
	// ExecutionID is the run that waits: the run itself or a subworkflow of it.
	ExecutionID string
	// ID is unique among all runs: "<execution id>:<node>#<visit>" for interrupts and waits, the idempotency key
	// "<execution id>:<node>#<visit>.<attempt>" for attempts.
	ID       string
	NodeID   string
	NodeType string
	Visit    int
	// Item is the index of an item of a map, which has Items of them; 0 for other entries.
	Item, Items int
	Attempt     int
	// MaxAttempts of the node's retry policy, 1 without one. An attempt beyond it is a repair (activities.Failure.Repair).
	MaxAttempts int
	Span        *history.ParallelSpan
	// Host is true if the host is to perform it.
	Host bool
	// Queued is true while the attempt, or the one after a back-off, waits for its turn (graph.Options.Limits): its timeout has not
	// begun.
	Queued bool
	// Config is the node's config as written; nil for timers, signals and subworkflows.
	Config map[string]any
	// OutputSchema is what the result must satisfy, nil if nothing is checked.
	OutputSchema any
	// State as the node sees it.
	State map[string]any
	// IdempotencyKey of the attempt; Deadline zero without a timeout.
	IdempotencyKey      string
	RequestedAt         time.Time
	Deadline            time.Time
	Timeout             time.Duration
	LastError, LastCode string
	// BlockDeadline is when the first of the parallel blocks around it fails with TIMEOUT, zero if none does.
	BlockDeadline time.Time

	// Interrupts: the full prompt and the schema of the answer.
	Prompt       string
	PromptRef    string
	ResumeSchema map[string]any
	// Show is what the author shows the person beside the prompt, nil for nothing: see Shown.
	Show any
	// showSource is the program that made Show, in which its author has ordered the members. showsState: the author shows nothing.
	showSource string
	showsState bool
	// written are the members of State that are new since the last question, the newest first.
	written []string

	// Steps counts what the executor of an attempt has recorded, and Totals are its newest sums, such as tokens; 0 and nil without steps.
	// While it asks a person, Kind is WaitInterrupt, and Due when the question expires.
	Steps  int
	Totals map[string]any
	// QuestionSeq is the record with the question of an executor, 0 for other entries: Show is read from it.
	QuestionSeq int64
	// FirstStepSeq and LastStepSeq are the records with the first and the last step, 0 without steps. FirstStep and NewestStep are members of
	// steps (agentStep): of the first, and of the newest that says how far the executor is, which is not that of an answer or a rest. They
	// are nil where many attempts of the run have steps. Reconfigured is that of the last step of this kind (machine.StepReconfigured), if any.
	FirstStepSeq, LastStepSeq, ReconfiguredSeq int64
	FirstStep, NewestStep, Reconfigured        map[string]any

	SignalName string
	Due        time.Time

	AgentID, Protocol, CorrelationID string
	DelegateInput                    map[string]any
	// ExternalTaskID is a delegate's task at its agent, "" before the agent has taken it. A question of the agent is a
	// WaitInterrupt with these members too.
	ExternalTaskID string

	ChildExecutionID, WorkflowRef string
}
