package history

import "time"

// Payload holds the members of every record's payload; a record uses the few that the protocol gives it (spec:
// execution, 2.2 and 2.3). Zero values are left out of the stored text, unless the member's comment says otherwise.
// Members marked "added" are this engine's additions, which the reference engine ignores (spec: execution, 10.6).
type Payload struct {
	NodeID string
	// Visit tells which visit of NodeID in this run a fact belongs to, from the second on; first visits leave it out,
	// as the reference engine leaves out all. Added, on facts.
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
	// FailedNodeID names the node of an orchestration_error, which by the protocol has no NodeID. Added.
	FailedNodeID string

	// StartParallel, ParallelForked, JoinParallel, ParallelJoined, CancelParallelBranch.
	Join        string
	BranchNames []string
	N           int
	BranchName  string
	// Winners lists the branches that satisfied the join, in branch order. Added, on ParallelJoined.
	Winners []string

	// StartTimer, TimerStarted, TimerFired. TimerKind is "duration" or "until" (member "kind"), or (added) "deadline" of a
	// TimerFired that ends an interrupt or a parallel block. WaitMS is written by
	// StartTimer of kind duration, also when 0.
	TimerKind string
	WaitMS    Optional
	Until     string
	// DueAt is when a timer or retry is due. Added, on TimerStarted and on ActivityFailed that will be retried
	// (members "dueAt" and "retryAt"), and where a task of an agent is recorded that is looked at again then.
	DueAt   time.Time
	RetryAt time.Time

	// Signals. SignalPayload is the member "payload" of DeliverSignal, SignalReceived and (added) InterruptResumed;
	// nil leaves it out.
	SignalName    string
	SignalPayload map[string]any

	// RaiseInterrupt, InterruptRaised: Prompt is written also when empty.
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
	NodeType     string
	TimeoutMS    int64
	Attempt      int
	Span         *ParallelSpan
	WillRetry    bool
	Error        string
	AgentID      string
	Protocol     string
	Correlation  string // delegateCorrelationId
	ExternalTask string // externalTaskId
	// ExternalContext is the conversation that a remote task belongs to (externalContextId). Added, where a task of an
	// agent is recorded.
	ExternalContext string
	// DelegateInput: nil leaves it out.
	DelegateInput map[string]any
	// Mode is activityExecutionMode: how an ActivityRequested is to be performed, and the mode a run was started in
	// (ExecutionStarted). Added.
	Mode string
	// IdempotencyKey, on ActivityCompleted and ActivityFailed that a caller submitted with a key, and on a SignalReceived
	// that was sent with one. Added.
	IdempotencyKey string
	// Usage is what an executor reports besides its output (model, tokens, duration). Added, on ActivityCompleted
	// and ActivityFailed.
	Usage map[string]any
	// Repair is what the next attempt gets in hand to put this one right. Added, on an ActivityFailed that was granted a
	// repair.
	Repair map[string]any
	// KeepTasks says that the end of a run is none for the tasks that it has at agents: they belong to a copy of it
	// elsewhere. Added, on ExecutionCancelled.
	KeepTasks bool

	// ExecutionStarted. InputKeys is written also when empty.
	WorkflowName    string
	WorkflowVersion string
	InputKeys       []string
	// DefinitionHash: CheckpointWritten, and (added) ExecutionStarted.
	DefinitionHash string
	// InputHash is the SHA-256 of the canonical input. Added, on ExecutionStarted.
	InputHash string
	// Input is the original input, kept only when the entry node is not a start node, whose StateUpdated would hold
	// it. Added, on ExecutionStarted.
	Input map[string]any
	// Branches is "concurrent" when parallel branches run at once; absent (reference) means one by one. Added, on
	// ExecutionStarted.
	Branches string
	// Depth is the nesting depth of a subworkflow's run, 0 at the root. Added, on ExecutionStarted.
	Depth int
	// ForkedFrom says of which run this one is a copy up to a record; zero for others. Added, on ExecutionStarted.
	ForkedFrom ForkOrigin

	// CheckpointWritten.
	Policy              string
	IntervalNodes       int
	LastAppliedEventSeq int64
	// StateRef is {"kind":"inline_state","state":…}; StateRef holds the state, nil leaves the member out.
	StateRef map[string]any

	// ExecutionFailed of a replay mismatch.
	Context *MismatchContext
}

// ForkOrigin is where a run was forked: a run, and the seq of the last record that was taken over.
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

// MismatchContext names the recorded and the issued command of a replay mismatch (spec: execution, 10.3).
type MismatchContext struct {
	Expected, Actual CommandIdentity
}

// CommandIdentity is what replay compares: the command's name and node. Seq is 0 where it does not apply.
type CommandIdentity struct {
	Name   Name
	Seq    int64
	NodeID string
}
