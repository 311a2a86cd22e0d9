package graph

import (
	"context"
	"log/slog"
	"time"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
)

// Options configure a Runner. The zero value works: in-process mode without executors.
type Options struct {
	// Activities performs step, llm_call and tool_call nodes in process. Without it, runs started here fail at such a node with
	// COMPOSITE_EXECUTOR_NOT_CONFIGURED, and other runs are left to other processes (Run.Lacks).
	Activities activities.Executor
	// Delegates performs agent_delegate nodes in process. Without it, runs started here fail at such a node with
	// DELEGATE_PROTOCOL_UNSUPPORTED, and other runs are left to other processes.
	Delegates activities.Executor
	// Workflows resolves the workflow_ref of subworkflow nodes and StartRequest.DefinitionRef: after the workflows of RegisterWorkflow, and
	// before stored definitions of that name. It may be nil.
	Workflows Resolver
	// VerifyDefinition, if not nil, is called for each definition before it is run or continued. A stored definition has the signature that
	// it was stored with. An error rejects the call, or fails the node of a subworkflow; a run that was not started here is left to other
	// processes instead. If the own definition of a run is rejected, only Status, History and Cancel work (DEFINITION_REQUIRED).
	VerifyDefinition func(*definition.Document) error
	// DefaultMode is the mode of runs started without one; "" means machine.InProcess.
	DefaultMode machine.Mode
	// Branches is the branch order of runs started without one; "" means machine.Concurrent.
	Branches machine.BranchOrder
	// AllowInterruptInBranch allows interrupts in parallel branches, which the protocol forbids.
	AllowInterruptInBranch bool
	// MaxVisits is the largest number of node visits of a run; 0 means machine.DefaultMaxVisits.
	MaxVisits int
	// MaxRecords is the largest number of records of a run; 0 means 1,000,000.
	MaxRecords int64
	// MaxBytes is the largest size of these records in the store; 0 means 1 GiB.
	MaxBytes int64
	// MaxPending is the largest number of pending activities and delegations of a run; 0 means 10,000.
	MaxPending int
	// MinHostTimeout is the shortest timeout of an attempt by a host; shorter timeouts of definitions are raised to it. 0 keeps them.
	MinHostTimeout time.Duration
	// Tree limits a run together with all its subworkflows.
	Tree TreeLimits
	// Limits bound the attempts of this process by class. A request is recorded, and its timeout starts, when the attempt has a place. Runs
	// take turns; see StartRequest.Priority.
	Limits []Limit
	// Attempts is the number of attempts of activities without a retry policy, by node type (llm_call, tool_call). The first back-off is 2 s,
	// and each one doubles, up to 1 m. The number is fixed for a run and its subworkflows at the start.
	Attempts map[string]int
	// MaxDepth is the deepest nesting of subworkflows; 0 means 4 levels below the root.
	MaxDepth int
	// MaxDocumentBytes is the largest definition, input, payload or output as canonical JSON; 0 means 2 MiB.
	MaxDocumentBytes int
	// WaitLimit is the longest time that a call waits for its run; 0 means 20 s, a negative value that calls return at once.
	WaitLimit time.Duration
	// LeaseTTL is the duration of the lease of this process without renewal; 0 means 30 s. Other processes claim its runs at
	// once after Close, about a second after it has died on the same machine (Linux and macOS), and elsewhere at the end of the lease.
	LeaseTTL time.Duration
	// Owner is the start of the name of this process in leases. The rest is random, so that a restarted program has a new name.
	Owner string
	// Work tells which runs this process performs; "" means WorkOwn.
	Work Work
	// Capacity is the largest number of attempts in flight in this process; further ones wait, or are given to processes with room. 0 means
	// 100, a negative value no limit. An attempt of any kind counts as one.
	Capacity int
	// Queues are the queues that WorkAll serves; nil means all.
	Queues []string
	// MaxQueued is the largest number of runs that wait in the store for a process with room, in each lane (Lanes); a start of a root run
	// that would wait there too returns QUEUE_FULL, and nothing is recorded. 0 means 100,000, the largest value; a negative value means no limit.
	// Processes that start runs at the same time may exceed it by the runs of a second.
	MaxQueued int
	// FairLabel is a label whose values take turns among the runs that wait in the store, such as the customer; "" lets root runs take turns.
	FairLabel string
	// Version is the version of the program, for Processes.
	Version string
	// Admit, if not nil, returns an error while this process cannot take more runs. WorkAll then claims no runs for a while. It does not
	// concern calls.
	Admit func() error
	// ReadOnly makes a Runner that never writes. It supports Status, List, History, Survey, Export, and Recover, Verify and Prune without
	// changes; it fires no timers and rejects all other calls with STORE_READ_ONLY. Work must not be set.
	ReadOnly bool
	// Drain is the time that Close gives running attempts before it ends their contexts; 0 means no time. See Runner.Close.
	Drain time.Duration
	// CloseLimit is the time that Close then waits for executors to return; 0 means 10 s.
	CloseLimit time.Duration
	// Webhooks are the targets of run events, by name (StartRequest.Notify): a root run completed, failed, was cancelled or interrupted, or
	// its subworkflow asks a question. Each process stores deliveries with the records of the event; a process with the target and Deliver
	// sends them, at least once, always under the same event id.
	Webhooks map[string]Webhook
	// Deliver makes one attempt to send a delivery; its context has the timeout. An error is taken as temporary. Nil leaves sending to other
	// processes.
	Deliver func(ctx context.Context, d history.Delivery) (history.Receipt, error)
	// Glossary has the names that hints in the bodies of webhooks use instead of problem.Names, such as flags; nil changes nothing.
	Glossary problem.Glossary
	// DeliverLimit is the time that Close waits for the first attempt of each delivery of this process; 0 means no wait.
	DeliverLimit time.Duration
	// Now is the clock; nil means the clock of the store. Tests that fake time use testing/synctest where they can.
	Now func() time.Time
	// CheckSteps, if not nil, checks the journals of executors for Verify and Import, such as agent.CheckSteps. at is the index of the first
	// entry that does not follow from those before it; the number of entries if the output does not.
	CheckSteps func(activities.RecordedAttempt) (at int, err error)
	// CheckAnswer, if not nil, checks the answer to an executor's question for Resume, such as agent.CheckAnswer. After an error
	// (INVALID_RESUME_PAYLOAD) nothing is recorded, and the question stays open.
	CheckAnswer func(asked activities.RecordedAttempt, answer map[string]any) error
	// Redaction masks secrets in History and redacted exports; nil means history.DefaultRedaction.
	Redaction *history.Redaction
	// OmitRequests keeps the requests to models, tools and agents out of the history (history.Payload.Request).
	OmitRequests bool
	// NewID makes execution ids; nil means UUIDs of version 7.
	NewID func() string
	// Logger gets a line for each failed attempt (Warn, LogAttemptFailed), the end of each run (Info, or Error after a failure, LogRunEnded)
	// and background events; nil discards them. No line has inputs, outputs or states.
	Logger *slog.Logger
	// OnRecord, if not nil, is called after each append with its records, in order for each run and outside of all locks: it may call the
	// Runner. The run waits for it.
	OnRecord     func(RecordEvent)
	stretchUnits int // machine.Limits.StretchUnits, for tests
}

// Work tells which runs a process performs.
type Work string

// The values of Work.
const (
	// WorkOwn performs the runs that the process starts or continues.
	WorkOwn Work = "own"
	// WorkAll also performs the runs of other processes: those that wait in the store for a process with room, those of processes that have
	// ended, and those with due timers. It begins soon after New. Servers and workers set it.
	WorkAll Work = "all"
	// WorkNone performs no activities and delegates, and needs no executors: the process starts runs, applies answers, signals and cancels,
	// and reads. Other processes perform the runs.
	WorkNone Work = "none"
)

// Limit bounds the attempts of a class: a node type ("step", "llm_call", "tool_call", "agent_delegate"), a step handler ("step:charge"), a
// model endpoint ("llm:https://api.example.com/v1"), an MCP server ("mcp:github"), an agent ("agent:reviewer"), or a class of an executor. An
// attempt in several classes needs a place in each.
type Limit struct {
	Class string
	// Concurrent is the largest number of attempts at the same time; 0 means no limit.
	Concurrent int
	// PerSecond is the largest number of attempts started in a second, evenly spread; 0 means no limit.
	PerSecond float64
}

// TreeLimits limit a run together with all its subworkflows, including those that have ended. A default is never below the limit of one run.
// A run without parent and subworkflows has only its own limits.
type TreeLimits struct {
	// Runs is the largest number of runs of a tree; 0 means 1,000.
	Runs int64
	// Visits is the largest number of node visits; 0 means 100,000.
	Visits int64
	// Records is the largest number of records; 0 means 2,000,000.
	Records int64
	// Bytes is the largest size of these records in the store; 0 means 2 GiB.
	Bytes int64
	// Pending is the largest number of pending activities and delegations; 0 means 10,000.
	Pending int64
}

// Webhook configures a webhook target.
type Webhook struct {
	// Events selects events; nil means all.
	Events []history.RunEvent
	// All sends the events of every root run, not only of runs that name the target.
	All bool
	// Timeout is the longest attempt; 0 means 30 s.
	Timeout time.Duration
}

// Resolver returns the definition of a workflow_ref.
type Resolver interface {
	// ResolveWorkflow returns the definition of ref. pin is the version_pin, or ""; the engine checks it again. The error of an unknown ref
	// is a *problem.Error with code WORKFLOW_NOT_FOUND; any other error ends the search.
	ResolveWorkflow(ctx context.Context, ref, pin string) (*definition.Document, error)
}

// ImmediateResolver is a Resolver that answers at once, such as from a directory. It is called when a run starts, which then keeps the
// returned versions. Other Resolvers are called when the run reaches the subworkflow.
type ImmediateResolver interface {
	Resolver
	// ResolveNow is ResolveWorkflow without waiting. An error other than WORKFLOW_NOT_FOUND leaves the version open.
	ResolveNow(ref, pin string) (*definition.Document, error)
}
