package history

import "time"

// Payload holds the members of all payloads; a record uses those that the protocol defines for it (spec: execution, 2.2 and
// 2.3). Zero values are left out of the stored text, unless the comment of the member says otherwise.
// Members marked "added" are this engine's additions, which the reference engine ignores (spec: execution, 10.6).
type Payload struct {
	NodeID string
	// Visit is the visit of NodeID that a record belongs to, from the second visit on. Added, on facts and
	// on the commands of parallel blocks. FailNode in a branch has it always, on the main path never.
	Visit int

	// CompleteNode: the node's output; nil leaves the member out, an empty map is written.
	Output map[string]any
	// StateUpdated: the whole state; nil leaves the member out, an empty map is written.
	State map[string]any
	// ActivityCompleted: the outcome's object. ExecutionCompleted: the run's result, JSON null included.
	Result Optional

	// FailNode.
	Reason  string
	Message string
	Code    string
	// FailedNodeID names the node of an orchestration_error, which by the protocol has no NodeID, and on ExecutionFailed the node that
	// failed before a rollback. Added.
	FailedNodeID string
	// CaughtBy is the node that catches the failure, the failing one or a parallel node around it, and Target the node at which the
	// run goes on; "" if nothing does. Added.
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

	// Compensations is how much a rollback is to undo. Added, on RollbackStarted, and on the ExecutionCancelled and ExecutionFailed of a
	// run that a rollback came before. Compensates is the visit that a compensation undoes, "<node>#<visit>". Added, on NodeScheduled.
	Compensations int
	Compensates   string

	// StartTimer, TimerStarted, TimerFired. TimerKind is "duration" or "until" (member "kind"), or (added) "deadline" of a
	// TimerFired that ends an interrupt or a parallel block. StartTimer of kind duration has WaitMS, even if it is 0.
	TimerKind string
	WaitMS    Optional
	Until     string
	// DueAt is when a timer is due, or a remote task is polled; RetryAt when a failed attempt is retried. Added, on
	// TimerStarted, ActivityFailed and the records of remote tasks.
	DueAt   time.Time
	RetryAt time.Time

	// Signals. SignalPayload is the member "payload" of DeliverSignal, SignalReceived and (added) InterruptResumed and SignalKept;
	// nil leaves it out.
	SignalName    string
	SignalPayload map[string]any

	// RaiseInterrupt, InterruptRaised: Prompt is written even when empty.
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
	// BlockVisit is the visit of Span's node, from the second visit on. Added.
	BlockVisit   int
	WillRetry    bool
	Error        string
	AgentID      string
	Protocol     string
	Correlation  string // delegateCorrelationId
	ExternalTask string // externalTaskId
	// ExternalContext is the conversation of a remote task (externalContextId). Added, on the records of remote tasks.
	ExternalContext string
	// DelegateInput: nil leaves it out.
	DelegateInput map[string]any
	// Request is what is sent: that of a model or tool, or which item of a map an attempt works on. It is for readers: no replay looks
	// at it. Nil if nothing is said beyond the definition and the state. Added, on ActivityRequested.
	Request map[string]any
	// AgentStep is a step that an executor has recorded of an attempt, with "key", "kind", "n", "totals" and members of its own. Added, on
	// ActivityRequested, InterruptRaised and InterruptResumed.
	AgentStep map[string]any
	// Mode is activityExecutionMode: who performs an ActivityRequested, and the mode in which the run was started. Added, on
	// ActivityRequested and ExecutionStarted.
	Mode string
	// IdempotencyKey is the key with which an outcome was submitted or a signal was sent. Added, on ActivityCompleted,
	// ActivityFailed, SignalReceived and SignalKept.
	IdempotencyKey string
	// Data is what a failure carries besides its message, such as the value that a program raised. Added, on ActivityFailed, FailNode, ExecutionFailed
	// and SubworkflowCompleted.
	Data map[string]any
	// Usage is what an executor reports besides its output (model, tokens, duration). Added, on ActivityCompleted
	// and ActivityFailed.
	Usage map[string]any
	// Repair is the input of the next attempt, which repairs this one. Added, on an ActivityFailed that was granted a repair.
	Repair map[string]any
	// Queued says that the attempt of a node waits for its turn before it is requested. Added, on NodeScheduled.
	Queued bool
	// Partial are the nodes whose output was less than was asked for, each with the code of the reason. Added, on ExecutionCompleted.
	Partial map[string]string
	// FailFast says that the first failure of a branch, as recorded, fails the parallel block that the visit begins. Without it, the
	// first one in branch order does, once the branches before it have ended. Added, on NodeScheduled of a join "all".
	FailFast bool
	// Correction says that the state is not what led here but what a fork was told to continue with. Added, on StateUpdated.
	Correction bool
	// KeepTasks says that the tasks at agents are not cancelled with the run: they belong to a copy of it elsewhere. Added, on
	// ExecutionCancelled.
	KeepTasks bool

	// ExecutionStarted. InputKeys is written even when empty.
	WorkflowName    string
	WorkflowVersion string
	InputKeys       []string
	// DefinitionHash: CheckpointWritten, and (added) ExecutionStarted.
	DefinitionHash string
	// InputHash is the SHA-256 of the canonical input. Added, on ExecutionStarted.
	InputHash string
	// Input is the original input, unless the entry node is a start node, whose StateUpdated holds it. Added, on
	// ExecutionStarted.
	Input map[string]any
	// Branches is the order in which parallel branches run, "concurrent" or "sequential"; "" (reference) means sequential.
	// Added, on ExecutionStarted.
	Branches string
	// Depth is the nesting depth of a subworkflow's run, 0 at the root. Added, on ExecutionStarted.
	Depth int
	// TraceParent is the trace parent (W3C Trace Context) of the call that started the run. Added, on ExecutionStarted.
	TraceParent string
	// Priority decides between runs whose attempts wait for a turn. Added, on ExecutionStarted.
	Priority int
	// ForkedFrom says where the run was forked; zero for other runs. Added, on ExecutionStarted.
	ForkedFrom ForkOrigin
	// Subworkflows are the definition hashes of the subworkflows that the run may start, by workflow_ref, as they were resolved when it
	// began; one that could not be resolved then, or that the definition pins, is left out. Added, on ExecutionStarted.
	Subworkflows map[string]string
	// Attempts are how often activities without a retry policy are attempted in the run, by node type. Added, on ExecutionStarted.
	Attempts map[string]int
	// Title and Labels are what people find the run by. Added, on ExecutionStarted.
	Title  string
	Labels map[string]string
	// Notify are the names of the targets that are notified of the run's events. Added, on ExecutionStarted.
	Notify []string

	// Actor is who made the call that the record comes from, nil if the caller did not say. Added, on the first record of a start,
	// fork, resume, signal, cancel or submit.
	Actor *Actor
	// ImportedBy is who imported the run into this store, and ImportedAt when. Added, on ExecutionStarted.
	ImportedAt time.Time
	ImportedBy *Actor

	// CheckpointWritten.
	Policy              string
	IntervalNodes       int
	LastAppliedEventSeq int64
	// StateRef is {"kind":"inline_state","state":…}; StateRef holds the state, nil leaves the member out.
	StateRef map[string]any

	// ExecutionFailed of a replay mismatch.
	Context *MismatchContext

	// over is the first member of the text it was read from that has another form than its field; see DecodePayload.
	over *passedOver
}

// ForkOrigin is where a run was forked: the other run, and the seq of the last record that was copied.
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

// CommandIdentity is what a replay compares: the command's name and node. Seq is 0 if it does not apply.
type CommandIdentity struct {
	Name   Name
	Seq    int64
	NodeID string
}
