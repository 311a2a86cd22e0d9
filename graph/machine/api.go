package machine

import (
	"time"

	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/history"
)

// Mode determines who performs activities and delegates: the process that drives the run, or the host.
type Mode string

// The two modes (spec: execution, 1.1).
const (
	InProcess    Mode = "in_process"
	HostMediated Mode = "host_mediated"
)

// BranchOrder is the order of the branches of a parallel node.
type BranchOrder string

// Concurrent branches run at once, each on the state at the fork plus its own updates. Sequential branches run one after another over
// one shared state, as in the reference engine; runs that it started stay sequential.
const (
	Concurrent BranchOrder = "concurrent"
	Sequential BranchOrder = "sequential"
)

// DefaultMaxVisits is the default limit of the node visits of a run.
const DefaultMaxVisits = 10_000

// Limits bound the size of a run; 0 means no limit. They belong to the process that drives the run and are not recorded.
type Limits struct {
	// MaxRecords bounds the records of the history.
	MaxRecords int64
	// MaxBytes bounds their size in the store, which SetBytes sets.
	MaxBytes int64
	// MaxPending bounds the activities and delegates that are pending at the same time.
	MaxPending int
	// MinHostTimeout is the shortest timeout of an attempt that a host performs. Shorter timeouts are raised to it, and recorded so.
	MinHostTimeout time.Duration
	// Tree, unless nil, returns the shared limit that ends the run at its next step, or, with pending, before it awaits another
	// activity or delegate; "" if no limit is reached.
	Tree func(pending bool) string
	// Queued, unless nil, is asked once before each attempt of a node in process is requested: the attempt waits for a turn if it returns
	// true, and begins with the effects of the batch otherwise. See TurnEffect.
	Queued func(*definition.Node) bool
	// StretchUnits is the length of a stretch of a long walk, in units of expr.Env; 0 is the default. See WalkEffect.
	StretchUnits int
	// Short, unless nil, reports whether the next stretch ends before its first visit, so that an input is recorded before a long walk.
	Short func() bool
	// Stop, unless nil, is called while expressions are evaluated. If it returns true, the walk is abandoned; see Machine.Stopped.
	Stop func() bool
}

// Config configures the walk of a run. All but the limits are recorded in ExecutionStarted.
type Config struct {
	ExecutionID string
	Mode        Mode
	Branches    BranchOrder
	// MaxVisits bounds the node visits of the run; 0 means DefaultMaxVisits.
	MaxVisits int
	Limits    Limits `json:"-"`
	// Moves, unless nil, is called when a token moves from one node to the next, also when a branch reaches the join target.
	Moves func(from, to *definition.Node) `json:"-"`
	// Parent is the run that started this one as a subworkflow, Depth its nesting depth (0 at the root).
	Parent string
	Depth  int
	// TraceParent is the trace parent of the call that started the run (W3C Trace Context), "" without one.
	TraceParent string `json:",omitempty"`
	// Priority decides between runs whose attempts wait for a turn; the higher one is first.
	Priority int `json:",omitempty"`
	// Subworkflows are the definition hashes of the run's subworkflows, resolved at its start, by workflow_ref.
	Subworkflows map[string]string `json:",omitempty"`
	// Attempts is the number of attempts for nodes without a retry policy, by node type; 1 for a type without an entry.
	Attempts map[string]int `json:",omitempty"`
	// Title and Labels help people find the run. Only the start of a run needs them.
	Title  string            `json:"-"`
	Labels map[string]string `json:"-"`
	// Notify are the targets that are notified of the run's events. Only the start of a run needs them.
	Notify []string `json:"-"`
	// Queue is the queue of the run, "" for the usual one. Only the start of a run needs it.
	Queue string `json:"-"`
	// Deadline is the longest time that the run may take, if that is shorter than the deadline of its definition; 0 for no bound. Only the
	// start of a run needs it.
	Deadline time.Duration `json:"-"`
}

// Status is the state of a run as a whole.
type Status string

// All statuses. A run that waits in several places is running while an in-process effect is in flight. Otherwise the first wait,
// in branch order, for a person, a host or a signal counts, then for a child, then for a timer.
const (
	Running          Status = "running"
	Completed        Status = "completed"
	Failed           Status = "failed"
	Cancelled        Status = "cancelled"
	Interrupted      Status = "interrupted"
	AwaitingActivity Status = "awaiting_activity"
	AwaitingSignal   Status = "awaiting_signal"
	AwaitingTimer    Status = "awaiting_timer"
	AwaitingChild    Status = "awaiting_child"
)

// Terminal reports whether the run has ended.
func (s Status) Terminal() bool { return s == Completed || s == Failed || s == Cancelled }

// Batch is the result of one input.
type Batch struct {
	// Records to append in one transaction, in order, with their Seq.
	Records []history.Record
	// Effects to perform once Records are durable. Records holds the request of each; only a turn for an attempt that was
	// requested before leads to an effect without records.
	Effects []Effect
	// Abandoned lists the keys of effects that are no longer needed: stop them and ignore their outcome.
	Abandoned []string
	// Dropped lists tasks at remote agents that are no longer needed: cancel them at the agents.
	Dropped []*DelegateEffect
	// TimersChanged reports that the set of open timers has changed. Timers then holds the complete set.
	TimersChanged bool
	Timers        []Timer
}

// Timer wakes the machine: call Handle(TimerFired{Key}) at Due or later. If Machine.Poll returns an effect for the key, perform
// that effect instead.
type Timer struct {
	Key string
	Due time.Time
}

// Effect is something that the driver performs. The kinds are *ActivityEffect, *DelegateEffect, *PollEffect,
// *ChildEffect, *TurnEffect and *WalkEffect.
type Effect interface {
	// Key identifies the effect within the run: "<node>#<visit>.<attempt>". It is the same in every rebuilt machine.
	Key() string
	// Base returns the part that all kinds of effects share.
	Base() *EffectBase
	effect()
}

// EffectBase is the part that all effects share.
type EffectBase struct {
	EffectKey      string
	NodeID         string
	Visit, Attempt int
	Span           *history.ParallelSpan
	// State is the state as the node sees it. Shared: copy it before handing it out.
	State map[string]any
	// Requested is when the attempt was requested; a restart after a crash does not change it.
	Requested time.Time
	// Deadline is zero without a timeout.
	Deadline time.Time
	// Heartbeat is the longest silence of the attempt, 0 for no bound.
	Heartbeat time.Duration `json:",omitempty"`
	// LastError and LastCode are the failure of the previous attempt in the same visit.
	LastError, LastCode string
}

// Key returns the effect's key.
func (b *EffectBase) Key() string { return b.EffectKey }
func (b *EffectBase) effect()     {}

// Base returns b.
func (b *EffectBase) Base() *EffectBase { return b }

// ActivityEffect asks for one attempt of a step, llm_call or tool_call in process.
type ActivityEffect struct {
	EffectBase
	NodeType string
	Config   map[string]any
	Metadata map[string]any
	// Repair is the Outcome.Repair of the previous attempt; nil unless this attempt repairs it. Shared: copy it before handing it
	// out.
	Repair map[string]any
	// Journal of the attempt, nil without an entry. Shared: do not change it.
	Journal *Journal
}

// DelegateEffect asks for one attempt of an agent_delegate in process: send the input to the agent or, if Task is set, deliver
// Task.Answer to it. Respond with an Outcome or a TaskUpdate.
type DelegateEffect struct {
	EffectBase
	AgentID       string
	Protocol      string
	Input         map[string]any
	Metadata      map[string]any
	CorrelationID string
	// Task at the agent; nil until the agent has accepted one.
	Task *Task
	// Journal of the attempt, nil without an entry. Shared: do not change it.
	Journal *Journal
}

// ChildEffect asks for the run of a subworkflow. If ChildExecutionID exists already and belongs to this run, continue it or
// take its outcome. Respond with ChildEnded or ChildRefused.
type ChildEffect struct {
	EffectBase
	ChildExecutionID string
	WorkflowRef      string
	VersionPin       string
	// Version is the definition hash of a bound subworkflow, "" if it is resolved now.
	Version string
	Input   map[string]any
	// From, if set, is a run of another tree whose records the subworkflow starts with, because its parent is a retry.
	From history.ForkOrigin
}

// Input is an input of a Machine: one of the types of this package with the method input.
type Input interface{ input() }

// Outcome is the end of an attempt of an activity or delegate.
type Outcome struct {
	// Key of the effect, for in-process outcomes. For a host's submit it is empty, and NodeID and Span name the attempt.
	Key    string
	NodeID string
	Span   *history.ParallelSpan
	// Host is true for a submitted outcome. It ends an attempt that was requested in host-mediated mode, and no other.
	Host bool

	OK bool
	// Output is the plain JSON output (OK).
	Output any
	// Error and Code describe the failure (not OK). RetryAfter is the minimum back-off; Final rules out another attempt.
	Error      string
	Code       string
	RetryAfter time.Duration
	Final      bool
	// Data holds further facts about the failure, such as the class of a model's failure.
	Data map[string]any
	// Repair, unless nil, asks for another attempt that receives it as ActivityEffect.Repair (not OK, in process, no delegates).
	// Each visit of a node is granted one, after RetryAfter, even if the policy has no attempt left or Final is set, but not
	// if the policy lists Code as non-retryable.
	Repair map[string]any

	// CorrelationID of a host's successful delegate outcome must be that of the request; it may also be in Output, as
	// "delegateCorrelationId". ExternalTaskID is optional; it may also be in Output, as "externalTaskId".
	CorrelationID  string
	ExternalTaskID string
	IdempotencyKey string
	Usage          map[string]any

	// Steps are journal entries to record before the outcome of an attempt in process; Index is the number of entries before them.
	Steps []Step
	Index int

	// backoff, in a replay, is true if a back-off was recorded, even one of length 0.
	backoff bool
}

// Resume answers an interrupt. Key may be empty when only one interrupt is open; otherwise it is the interrupt's key
// ("<node>#<visit>").
type Resume struct {
	Key     string
	Payload map[string]any
}

// Signal delivers a signal to the first wait, in branch order, for that name.
type Signal struct {
	Name    string
	Payload map[string]any
	// IdempotencyKey, if not "", identifies the signal: the run rejects a key that it has already accepted.
	IdempotencyKey string
}

// MaxSignalKeys is how many idempotency keys of signals a run remembers.
const MaxSignalKeys = 256

// TimerFired reports a due timer. A key that is not open is rejected.
type TimerFired struct{ Key string }

// ChildEnded is the outcome of a subworkflow.
type ChildEnded struct {
	Key        string
	Status     Status // Completed, Failed or Cancelled
	FinalState map[string]any
	Result     any
	// Error and Code of a failed child; Error is the reason if the child was cancelled.
	Error, Code string
	// Data is the Data of the child's failure, or nil.
	Data map[string]any
	// DefinitionHash of the child is recorded.
	DefinitionHash string
}

// ChildRefused reports that a subworkflow could not be started: unknown reference, wrong pin, too deep. No child exists.
type ChildRefused struct {
	Key   string
	Error string
	Code  string
}

// Cancel ends the run, or begins the rollback after which it ends.
type Cancel struct {
	Reason string
	// KeepTasks is recorded with the end: no task is cancelled at its agent, whatever Batch.Dropped lists.
	KeepTasks bool
	// ByParent marks a cancel by the parent run, which does not wait for this run any more. It does not end a rollback.
	ByParent bool
}

func (Outcome) input()      {}
func (Resume) input()       {}
func (Signal) input()       {}
func (TimerFired) input()   {}
func (ChildEnded) input()   {}
func (ChildRefused) input() {}
func (Cancel) input()       {}

// WaitKind is the kind of input that a run waits for.
type WaitKind string

// The kinds of waits.
const (
	WaitActivity  WaitKind = "activity"  // step, llm_call, tool_call
	WaitDelegate  WaitKind = "delegate"  // agent_delegate
	WaitInterrupt WaitKind = "interrupt" // a person's answer
	WaitSignal    WaitKind = "signal"
	WaitTimer     WaitKind = "timer"   // a wait of kind duration or until
	WaitBackoff   WaitKind = "backoff" // the time of the next attempt
	WaitChild     WaitKind = "child"   // a subworkflow
)

// WaitInfo is the part of a wait that the engine shows to callers as it is: Wait and view.Pending embed it.
type WaitInfo struct {
	Kind    WaitKind
	NodeID  string
	Visit   int
	Attempt int
	// MaxAttempts of the node's retry policy, 1 without one; set for WaitActivity, WaitDelegate and WaitBackoff. An attempt beyond it is
	// a repair (activities.Failure.Repair).
	MaxAttempts int
	// Span is the branch of a parallel block that waits, or nil.
	Span *history.ParallelSpan
	// Item is the index of a map item, Items their number; 0 for other waits.
	Item, Items int
	// Host is true if the host must perform it.
	Host bool
	// Queued is true while the attempt, or the next one after a back-off, waits for a free place (graph.Options.Limits). Its timeout
	// has not started.
	Queued bool
	// State as the node sees it.
	State map[string]any

	// RequestedAt is when the wait began. Deadline is when the attempt, interrupt or signal times out; zero without a timeout.
	RequestedAt time.Time
	Deadline    time.Time
	Timeout     time.Duration
	// BlockDeadline is the earliest deadline of the parallel blocks around it; zero without one.
	BlockDeadline time.Time
	// LastError and LastCode are the failure of the previous attempt in this visit.
	LastError, LastCode string

	// SignalName of a WaitSignal.
	SignalName string
	// Prompt of a WaitInterrupt.
	Prompt string
	// Show is the value that the author shows below the prompt of a WaitInterrupt, or nil.
	Show any
	// Due is when a WaitTimer or WaitBackoff ends, or when an executor's question expires.
	Due time.Time

	// Of a WaitDelegate; a question of its agent is a WaitInterrupt with these fields.
	AgentID, Protocol, CorrelationID string
	DelegateInput                    map[string]any

	// Of a WaitChild.
	ChildExecutionID, WorkflowRef string
}

// Wait is one place where a run waits, with everything needed to end the wait. The Prompt of an interrupt is cut as recorded. Its maps are
// shared: do not change them.
type Wait struct {
	WaitInfo
	// Key of the effect or interrupt.
	Key string
	// Filled are the fields of the node's config that are filled in from the state, for a host.
	Filled map[string]any
	// Question is the whole prompt of an interrupt, if the prompt is a template.
	Question string
	// Written are the fields of State that were written since the last question, the newest first. Set for an interrupt without Show.
	Written []string
	// Task of a delegate at its agent, nil until the agent has accepted one. While the agent asks a question, Kind is WaitInterrupt.
	Task *Task
	// Journal of an attempt whose executor records entries, nil before the first one. While the executor asks a question, Kind is
	// WaitInterrupt; while it rests until a time, WaitTimer.
	Journal *Journal
}
