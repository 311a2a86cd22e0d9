package history

import "time"

// Payload holds the fields of all payloads. Each record uses the fields that the protocol defines for it (spec: execution, 2.2 and 2.3). Zero
// values are omitted from the stored text, unless the field's comment states otherwise. Fields marked "added" are additions of this engine,
// which the reference engine ignores (spec: execution, 10.6).
type Payload struct {
	NodeID string
	// Visit is the record's visit of NodeID, set from the second visit on. Added, on facts and on the commands of parallel blocks. FailNode
	// always has it in a branch and never on the main path.
	Visit int

	// Output is the node's output, on CompleteNode. If it is nil, the field is omitted; an empty map is written.
	Output map[string]any
	// State is the whole state, on StateUpdated. If it is nil, the field is omitted; an empty map is written.
	State map[string]any
	// Result is the outcome's object on ActivityCompleted, and the run's result, including JSON null, on ExecutionCompleted.
	Result Optional

	// FailNode.
	Reason  string
	Message string
	Code    string
	// FailedNodeID is the failed node: on orchestration_error, where the protocol omits NodeID, and on ExecutionFailed after a rollback.
	// Added.
	FailedNodeID string
	// CaughtBy is the node that catches the failure: the failing node or an enclosing parallel node. The run continues at Target. Both are ""
	// for an uncaught failure. Added.
	CaughtBy string
	Target   string

	// StartParallel, ParallelForked, JoinParallel, ParallelJoined, CancelParallelBranch.
	Join        string
	BranchNames []string
	N           int
	BranchName  string
	// Winners lists the branches that satisfied the join, in branch order. Added, on ParallelJoined.
	Winners []string

	// Items is the number of items of a map. Added, on MapStarted.
	Items Optional

	// Compensations is the number of compensations of a rollback. Added, on RollbackStarted, and on ExecutionCancelled and ExecutionFailed
	// after a rollback. Compensates is the visit that a compensation undoes, "<node>#<visit>". Added, on NodeScheduled.
	Compensations int
	Compensates   string

	// StartTimer, TimerStarted, TimerFired. TimerKind (field "kind") is "duration", "until" or, added, "deadline" for a TimerFired that ends
	// an interrupt, a parallel block, a visit with a deadline or, without a node, the run. StartTimer of kind duration has WaitMS, even if it is 0.
	TimerKind string
	WaitMS    Optional
	Until     string
	// DueAt is the due time of a timer, or of the next poll of a remote task. RetryAt is the time of the next attempt. Added, on
	// TimerStarted, ActivityFailed and the records of remote tasks.
	DueAt   time.Time
	RetryAt time.Time

	// DeadlineAt is when the run, or the visit of a node, fails. Added, on ExecutionStarted and NodeScheduled.
	DeadlineAt time.Time

	// Signals. SignalPayload is the field "payload" of DeliverSignal, SignalReceived and, added, InterruptResumed and SignalKept. If it is
	// nil, the field is omitted.
	SignalName    string
	SignalPayload map[string]any

	// RaiseInterrupt, InterruptRaised: Prompt is written even if it is empty.
	Prompt string

	// Subworkflows.
	WorkflowRef       string
	ChildExecutionID  string
	ParentExecutionID string
	ChildFinalState   map[string]any
	ChildResult       Optional
	MergedOutput      map[string]any
	Failed            bool
	Replayed          bool
	// ChildDefinitionHash is added.
	ChildDefinitionHash string

	// Activities and delegates.
	NodeType  string
	TimeoutMS int64
	Attempt   int
	Span      *ParallelSpan
	// BlockVisit is the visit of Span's node, set from the second visit on. Added.
	BlockVisit   int
	WillRetry    bool
	Error        string
	AgentID      string
	Protocol     string
	Correlation  string // delegateCorrelationId
	ExternalTask string // externalTaskId
	// ExternalContext is the conversation of a remote task (externalContextId). Added, on the records of remote tasks.
	ExternalContext string
	// DelegateInput is omitted if it is nil.
	DelegateInput map[string]any
	// Request is the request sent to a model or tool, or the map item of an attempt. It is for readers; replay ignores it. It is nil if the
	// definition and the state determine the request. Added, on ActivityRequested.
	Request map[string]any
	// AgentStep is a journal entry that an executor recorded within an attempt. It has the fields "key", "kind", "n" and "totals", and
	// others. Added, on ActivityRequested, InterruptRaised and InterruptResumed.
	AgentStep map[string]any
	// Mode is activityExecutionMode: the performer of an ActivityRequested, or the mode of the run. Added, on ActivityRequested and
	// ExecutionStarted.
	Mode string
	// IdempotencyKey is the key of a submitted outcome or a sent signal. Added, on ActivityCompleted, ActivityFailed, SignalReceived and
	// SignalKept.
	IdempotencyKey string
	// Data holds details of a failure besides its message, such as the value that a program raised. Added, on ActivityFailed, FailNode,
	// ExecutionFailed and SubworkflowCompleted.
	Data map[string]any
	// Usage is an executor's report besides its output (model, tokens, duration). Added, on ActivityCompleted and ActivityFailed.
	Usage map[string]any
	// Repair is the input of the next attempt, which repairs this one. Added, on an ActivityFailed that was granted a repair.
	Repair map[string]any
	// Queued is true if the node's attempt waits for its turn before it is requested. Added, on NodeScheduled.
	Queued bool
	// Partial maps each node with an incomplete output to the code of the reason. Added, on ExecutionCompleted.
	Partial map[string]string
	// FailFast makes the first recorded failure of a branch fail the parallel block that the visit begins. Without it, the first failure in
	// branch order fails the block, after the preceding branches have ended. Added, on NodeScheduled of a join "all".
	FailFast bool
	// Correction is true for a state that was given to a fork, in place of the state that led to this point. Added, on StateUpdated.
	Correction bool
	// KeepTasks excludes tasks at agents from the cancellation of the run, because they belong to a copy of the run elsewhere. Added, on
	// ExecutionCancelled.
	KeepTasks bool

	// ExecutionStarted. InputKeys is written even if it is empty.
	WorkflowName    string
	WorkflowVersion string
	InputKeys       []string
	// DefinitionHash: CheckpointWritten, and (added) ExecutionStarted.
	DefinitionHash string
	// InputHash is the SHA-256 of the canonical input. Added, on ExecutionStarted.
	InputHash string
	// Input is the original input. It is omitted if the entry node is a start node, whose StateUpdated holds it. Added, on ExecutionStarted.
	Input map[string]any
	// Branches is the execution order of parallel branches, "concurrent" or "sequential"; "" (reference) means sequential. Added, on
	// ExecutionStarted.
	Branches string
	// Depth is the nesting depth of a subworkflow's run, 0 at the root. Added, on ExecutionStarted.
	Depth int
	// TraceParent is the trace parent (W3C Trace Context) of the call that started the run. Added, on ExecutionStarted.
	TraceParent string
	// Priority orders runs whose attempts wait for a turn. Added, on ExecutionStarted.
	Priority int
	// ForkedFrom is the origin of a fork; zero for other runs. Added, on ExecutionStarted.
	ForkedFrom ForkOrigin
	// Subworkflows maps each workflow_ref that the run may start to a definition hash, as resolved at the start. References that could not be
	// resolved, or that the definition pins, are omitted. Added, on ExecutionStarted.
	Subworkflows map[string]string
	// Attempts is the maximum number of attempts, by node type, of activities without a retry policy. Added, on ExecutionStarted.
	Attempts map[string]int
	// Title and Labels help people find the run. Added, on ExecutionStarted.
	Title  string
	Labels map[string]string
	// Notify lists the names of the targets to notify of the run's events. Added, on ExecutionStarted.
	Notify []string
	// Queue is the queue of the run and its subworkflows, "" for DefaultQueue. Added, on ExecutionStarted.
	Queue string

	// Actor is the caller whose call caused the record, nil if unknown. Added, on the first record of a start, fork, resume, signal, cancel
	// or submit.
	Actor *Actor
	// ImportedBy is the caller that imported the run into this store, ImportedAt the time of the import. Added, on ExecutionStarted.
	ImportedAt time.Time
	ImportedBy *Actor

	// CheckpointWritten.
	Policy              string
	IntervalNodes       int
	LastAppliedEventSeq int64
	// StateRef is {"kind":"inline_state","state":…}. The Go field holds the state; if it is nil, the field is omitted.
	StateRef map[string]any

	// ExecutionFailed of a replay mismatch.
	Context *MismatchContext

	// over is the first field of the parsed text whose form does not fit its Go field; see DecodePayload.
	over *passedOver
}

// ForkOrigin is the origin of a fork: the other run, and the seq of the last copied record.
type ForkOrigin struct {
	ExecutionID string
	Seq         int64
}

// Optional is a JSON value that may be absent; JSON null is a value.
type Optional struct {
	Set   bool
	Value any
}

// Some returns a present value.
func Some(v any) Optional { return Optional{Set: true, Value: v} }

// ParallelSpan identifies the branch that a record belongs to (spec: execution, 6.3).
type ParallelSpan struct {
	ParallelNodeID    string
	JoinTargetID      string
	BranchName        string
	BranchEntryNodeID string
}

// MismatchContext holds the recorded and the issued command of a replay mismatch (spec: execution, 10.3).
type MismatchContext struct {
	Expected, Actual CommandIdentity
}

// CommandIdentity identifies a command for replay: its name and node. Seq is 0 if it does not apply.
type CommandIdentity struct {
	Name   Name
	Seq    int64
	NodeID string
}
