package machine

import (
	"time"

	"github.com/workflows-engine/workflows-engine/history"
)

// Mode says who performs activities and delegates.
type Mode string

// The two modes (spec: execution, 1.1).
const (
	InProcess    Mode = "in_process"
	HostMediated Mode = "host_mediated"
)

// BranchOrder says how the branches of a parallel node are walked.
type BranchOrder string

// Concurrent branches run at once, each on the state at the fork plus its own updates. Sequential branches run one
// after another over one shared state, as the reference engine walks them; runs that it began stay sequential.
const (
	Concurrent BranchOrder = "concurrent"
	Sequential BranchOrder = "sequential"
)

// DefaultMaxVisits is the step budget of a run: how many node visits it may make.
const DefaultMaxVisits = 10_000

// Limits bound what a run may grow to; a limit of 0 is none. They belong to the process that drives the run.
type Limits struct {
	// MaxRecords bounds the records of the history.
	MaxRecords int64
	// MaxBytes bounds what they take in the store, as SetBytes says.
	MaxBytes int64
	// MaxPending bounds the activities and delegates that are awaited at the same time.
	MaxPending int
}

// Config fixes a run's circumstances. All but the limits are recorded in ExecutionStarted.
type Config struct {
	ExecutionID string
	Mode        Mode
	Branches    BranchOrder
	// MaxVisits bounds the node visits of the run; 0 means DefaultMaxVisits.
	MaxVisits int
	Limits    Limits `json:"-"`
	// Parent is the run that started this one as a subworkflow, Depth its nesting depth (0 at the root).
	Parent string
	Depth  int
}

// Status is where a run stands.
type Status string

// All statuses. Of a run that waits in several places the first of interrupted, awaiting_activity, awaiting_signal,
// awaiting_child, awaiting_timer in branch order counts, and running if an in-process effect is in flight.
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

// Batch is everything that came of one input.
type Batch struct {
	// Records to append in one transaction, in order. Seq members are set relative to the run's history.
	Records []history.Record
	// Effects to perform after Records are durable. Records has the request of each, so that without Records there are none.
	Effects []Effect
	// Abandoned lists effects whose outcome is not wanted any more: stop them, drop what they answer.
	Abandoned []string
	// Dropped lists tasks at remote agents that nobody waits for any more: tell the agents.
	Dropped []*DelegateEffect
	// TimersChanged reports that Timers (the complete set of open timers) differs from before.
	TimersChanged bool
	Timers        []Timer
}

// Timer wakes the machine: Handle(TimerFired{Key}) at Due or later. One that Machine.Poll knows asks for that effect
// instead.
type Timer struct {
	Key string
	Due time.Time
}

// Effect is something that the driver performs. The kinds are *ActivityEffect, *DelegateEffect, *PollEffect and
// *ChildEffect.
type Effect interface {
	// Key names the effect within the run: "<node>#<visit>.<attempt>", the same however often the run is rebuilt.
	Key() string
	// Base returns what all kinds of effects have in common.
	Base() *EffectBase
	effect()
}

// EffectBase is what all effects have in common.
type EffectBase struct {
	EffectKey      string
	NodeID         string
	Visit, Attempt int
	Span           *history.ParallelSpan
	// State is the state as the node sees it. Shared: copy it before handing it out.
	State map[string]any
	// Deadline is zero without a timeout.
	Deadline time.Time
}

// Key gives the effect's key.
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
	// Repair is what the attempt before gave to put it right; nil for any other attempt. Shared: copy it before handing it
	// out.
	Repair map[string]any
}

// DelegateEffect asks for one attempt of an agent_delegate in process: to hand the input to the agent, or, if there is a
// Task, to deliver Task.Answer to it. Answer with an Outcome or a TaskUpdate.
type DelegateEffect struct {
	EffectBase
	AgentID       string
	Protocol      string
	Input         map[string]any
	CorrelationID string
	// Task at the agent; nil before it has taken one.
	Task *Task
}

// ChildEffect asks for a subworkflow's run. If a run ChildExecutionID exists already and belongs to this run, it is
// continued or its outcome taken. Answer with ChildEnded.
type ChildEffect struct {
	EffectBase
	ChildExecutionID string
	WorkflowRef      string
	VersionPin       string
	Input            map[string]any
}

// Input is one thing that happened. The kinds are listed below.
type Input interface{ input() }

// Outcome is the end of an attempt of an activity or delegate.
type Outcome struct {
	// Key of the effect, for in-process outcomes. A host's submit leaves it empty and gives NodeID and Span.
	Key    string
	NodeID string
	Span   *history.ParallelSpan
	// Host is true for a submitted outcome. Only requests made in host-mediated mode take one.
	Host bool

	OK bool
	// Output is the plain JSON output (OK).
	Output any
	// Error, Code describe the failure (not OK). RetryAfter is the least back-off; Final forbids another attempt.
	Error      string
	Code       string
	RetryAfter time.Duration
	Final      bool
	// Repair asks for an attempt that gets it in hand to put this one right (not OK, an executor's activity). One is granted
	// in each visit of a node, at once but for RetryAfter, also where the policy has no attempt left or Final is set; not
	// where the policy names the code as one that is not tried again. Nil asks for none.
	Repair map[string]any

	// CorrelationID must equal the request's for a host's successful delegate outcome; it may also stand in Output as
	// "delegateCorrelationId". ExternalTaskID likewise as "externalTaskId", optional.
	CorrelationID  string
	ExternalTaskID string
	IdempotencyKey string
	Usage          map[string]any
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
	// IdempotencyKey, if not "", names the signal: one that the run has taken already is refused.
	IdempotencyKey string
}

// MaxSignalKeys is how many keys of signals a run remembers.
const MaxSignalKeys = 256

// TimerFired says that a timer's time has come. A key that is not open is refused.
type TimerFired struct{ Key string }

// ChildEnded is the outcome of a subworkflow.
type ChildEnded struct {
	Key        string
	Status     Status // Completed, Failed or Cancelled
	FinalState map[string]any
	Result     any
	// Error and Code of a failed child; Error is the reason of a cancelled one.
	Error, Code string
	// DefinitionHash of the child, recorded.
	DefinitionHash string
}

// ChildRefused says that a subworkflow could not be started: unknown reference, wrong pin, too deep. No child exists.
type ChildRefused struct {
	Key   string
	Error string
	Code  string
}

// Cancel ends the run.
type Cancel struct {
	Reason string
	// KeepTasks is recorded with the end: no agent is to be told, whatever Batch.Dropped lists.
	KeepTasks bool
}

func (Outcome) input()      {}
func (Resume) input()       {}
func (Signal) input()       {}
func (TimerFired) input()   {}
func (ChildEnded) input()   {}
func (ChildRefused) input() {}
func (Cancel) input()       {}

// WaitKind tells what a run waits for.
type WaitKind string

// The kinds of waits.
const (
	WaitActivity  WaitKind = "activity"  // step, llm_call, tool_call
	WaitDelegate  WaitKind = "delegate"  // agent_delegate
	WaitInterrupt WaitKind = "interrupt" // a person's answer
	WaitSignal    WaitKind = "signal"
	WaitTimer     WaitKind = "timer"   // a wait of kind duration or until
	WaitBackoff   WaitKind = "backoff" // a retry that is due later
	WaitChild     WaitKind = "child"   // a subworkflow
)

// Wait is one place where a run waits, with all that whoever ends the wait needs.
type Wait struct {
	Kind WaitKind
	// Key is the effect's or interrupt's key; Node names the node of the program.
	Key     string
	NodeID  string
	Visit   int
	Attempt int
	Span    *history.ParallelSpan
	// Host is true if the host is to perform it.
	Host bool
	// State is the state as the waiting node sees it. Shared: do not change it.
	State map[string]any

	// RequestedAt is when the wait began; Deadline when the attempt or interrupt times out, zero without a timeout.
	RequestedAt time.Time
	Deadline    time.Time
	Timeout     time.Duration
	// BlockDeadline is when the first of the parallel blocks around it times out, zero if none does.
	BlockDeadline time.Time
	// LastError and LastCode are the failure of the attempt before, for attempt 2 and up and for a backoff.
	LastError, LastCode string

	SignalName string    // WaitSignal
	Prompt     string    // WaitInterrupt, cut as recorded
	Due        time.Time // WaitTimer, WaitBackoff

	AgentID, Protocol, CorrelationID string         // WaitDelegate
	DelegateInput                    map[string]any // WaitDelegate
	// Task of a delegate at its agent, nil before it has taken one. An agent that asks something is a WaitInterrupt.
	Task *Task

	ChildExecutionID, WorkflowRef string // WaitChild
}
