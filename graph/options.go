package graph

import (
	"context"
	"log/slog"
	"time"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/delegate"
	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/history"
)

// Options configure a Runner. The zero value works: in-process mode without executors, which refuses activities.
type Options struct {
	// Activities performs step, llm_call and tool_call nodes in process. Nil refuses them with
	// COMPOSITE_EXECUTOR_NOT_CONFIGURED in runs that are started here, and leaves other runs to other processes (Run.Lacks).
	Activities activities.Executor
	// Delegates performs agent_delegate nodes in process. Nil refuses them with
	// DELEGATE_PROTOCOL_UNSUPPORTED in runs that are started here, and leaves other runs to other processes.
	Delegates delegate.Executor
	// Workflows resolves the workflow_ref of subworkflow nodes, and StartRequest.DefinitionRef, after the workflows registered with
	// RegisterWorkflow and before the definitions stored under that name. Nil resolves nothing more.
	Workflows Resolver
	// VerifyDefinition, when not nil, is asked about every definition before it is run or continued; a stored one has the signature that
	// it came with. Its error refuses the call, or fails the node of a subworkflow; in a run that was not started here such a
	// subworkflow is left to others. Of a run whose own definition is refused, only Status, History and Cancel work (DEFINITION_REQUIRED).
	VerifyDefinition func(*definition.Document) error
	// DefaultMode of runs whose start names none; "" means machine.InProcess.
	DefaultMode machine.Mode
	// Branches of runs whose start names no order; "" means machine.Concurrent.
	Branches machine.BranchOrder
	// AllowInterruptInBranch lifts the protocol's rule against interrupts in parallel branches.
	AllowInterruptInBranch bool
	// MaxVisits bounds the node visits of a run; 0 means machine.DefaultMaxVisits.
	MaxVisits int
	// MaxRecords bounds the records of a run's history; 0 means 1,000,000.
	MaxRecords int64
	// MaxBytes bounds what they take in the store; 0 means 1 GiB.
	MaxBytes int64
	// MaxPending bounds the activities and delegates that a run awaits at the same time; 0 means 10,000.
	MaxPending int
	// MinHostTimeout is the shortest timeout of an attempt that a host performs; shorter ones in definitions are raised to it. 0 leaves
	// them as they are.
	MinHostTimeout time.Duration
	// Tree bounds what a run and all subworkflows below it use together.
	Tree TreeLimits
	// Limits bound the attempts that are in flight in this process at the same time and that begin in a second, by class. An attempt
	// waits for its turn before it is requested and its timeout begins. Turns go round the runs; see StartRequest.Priority.
	Limits []Limit
	// Attempts are how often activities are attempted whose node has no retry policy, by node type (llm_call, tool_call); the first
	// back-off is 2 s, and each further one twice as long, at most 1 m. It is fixed for a run, and its subworkflows, when the run starts.
	Attempts map[string]int
	// MaxDepth bounds the nesting of subworkflows; 0 means 4 (root plus four levels).
	MaxDepth int
	// MaxDocumentBytes bounds each definition, input, payload and output as canonical JSON; 0 means 2 MiB.
	MaxDocumentBytes int
	// WaitLimit bounds how long a call waits in line; 0 means 20 s, a negative one that no call waits.
	WaitLimit time.Duration
	// LeaseTTL is how long the lease of this process lasts without renewal; 0 means 30 s. Runs that it owns are taken over by other
	// processes, the restarted program among them, that long after it has died, and at once after Close.
	LeaseTTL time.Duration
	// Owner begins the name of this process in leases; the rest is random, so a restarted program has another name.
	Owner string
	// Background keeps watch over the whole store: soon after New and then periodically the Runner takes over runs whose owner is gone
	// and fires timers that other processes set, as Recover does once; those that have just become overdue it finds within a second.
	// Long-lived servers want it; without it a Runner wakes up only for what it began itself.
	Background bool
	// Admit, when not nil, returns an error while this process has no room for further runs. The watch over the store then takes none
	// over and looks again later; calls are not asked about.
	Admit func() error
	// ReadOnly makes a Runner that never writes, for a store that cannot be written to or is to stay as it is. It answers Status,
	// List, History, Survey, Recover with DryRun, Export, Verify without repair and Prune with DryRun, fires no timer, and
	// refuses every other call with STORE_READ_ONLY. Background must not be set.
	ReadOnly bool
	// Drain is how long Close lets attempts in flight end before it ends their contexts; 0 means not at all. See Runner.Close.
	Drain time.Duration
	// CloseLimit bounds how long Close waits after that for executors that do not stop when their context ends; 0 means 10 s.
	CloseLimit time.Duration
	// Webhooks are the targets that are notified of completed, failed, cancelled and interrupted root runs, and of what their subworkflows
	// ask, by the names under which StartRequest.Notify has them. What is to be sent is written with the records that bring an event, by
	// every process; those that have the target, and Deliver, send it: at least once, always under the same event id.
	Webhooks map[string]Webhook
	// Deliver makes one attempt to send a delivery; its context ends with the time for that. An error is one that may pass. Nil leaves
	// sending to other processes.
	Deliver func(ctx context.Context, d history.Delivery) (history.Receipt, error)
	// DeliverLimit bounds how long Close waits for the first attempt to send what this process has written; 0 means not at all.
	DeliverLimit time.Duration
	// Now is the clock; nil means the store's. Tests that fake time use testing/synctest instead where they can.
	Now func() time.Time
	// CheckSteps, when not nil, checks for Verify what executors have recorded: agent.CheckSteps the steps of agents. at is the index of the
	// first step that does not follow from those before it, the number of steps if the output does not.
	CheckSteps func(activities.RecordedAttempt) (at int, err error)
	// CheckAnswer, when not nil, checks for Resume the answer to the question of an executor that records steps, which are given:
	// agent.CheckAnswer those to agents. After an error (INVALID_RESUME_PAYLOAD) nothing is recorded, and the question stands.
	CheckAnswer func(asked activities.RecordedAttempt, answer map[string]any) error
	// Redaction is what History and redacted exports hide; nil means history.DefaultRedaction.
	Redaction *history.Redaction
	// OmitRequests leaves out of the history what is sent to models, tools and agents (history.Payload.Request).
	OmitRequests bool
	// NewID makes execution ids; nil means UUIDs of version 7: the time, then random bits.
	NewID func() string
	// Logger gets what happens in the background, a line for each failed attempt (Warn, LogAttemptFailed) and for the end of each run
	// (Info, or Error if it failed, LogRunEnded), and attempts at Debug; nil discards it. No line holds inputs, outputs or states.
	Logger *slog.Logger
	// OnRecord, when not nil, is called after each append with the records appended, in order per run and outside of all locks: it
	// may call the Runner. The run waits for it. The end of an attempt has Record.Attempt. The command line's live view uses it.
	OnRecord     func(RecordEvent)
	stretchUnits int // machine.Limits.StretchUnits, for tests
}

// Limit bounds the attempts of a class: a node type ("step", "llm_call", "tool_call", "agent_delegate"), a step handler
// ("step:charge"), a model endpoint ("llm:https://api.example.com/v1"), an MCP server ("mcp:github"), an agent ("agent:reviewer"),
// or any class that an executor names. An attempt that belongs to several classes needs room in each.
type Limit struct {
	Class string
	// Concurrent bounds the attempts in flight, 0 for no bound.
	Concurrent int
	// PerSecond bounds the attempts that begin in a second, 0 for no bound. They are spread over the second.
	PerSecond float64
}

// TreeLimits bound a run together with all subworkflows below it, including those that have ended. A run without parent and
// subworkflows has only its own limits. A default is never below the limit of one run.
type TreeLimits struct {
	// Runs bounds the runs of a tree, its root included; 0 means 1,000.
	Runs int64
	// Visits bounds their node visits; 0 means 100,000.
	Visits int64
	// Records bounds the records of their histories; 0 means 2,000,000.
	Records int64
	// Bytes bounds the size of these records in the store; 0 means 2 GiB.
	Bytes int64
	// Pending bounds the activities and delegates that they await at the same time; 0 means 10,000.
	Pending int64
}

// Webhook is a target that is notified of runs.
type Webhook struct {
	// Events are those that the target wants; nil means all.
	Events []history.RunEvent
	// All notifies the target of every root run, whether the start names it or not.
	All bool
	// Timeout bounds an attempt; 0 means 30 s.
	Timeout time.Duration
}

// Resolver finds the definition behind a workflow_ref.
type Resolver interface {
	// ResolveWorkflow returns the definition for ref. pin is the version_pin, "" without one; the engine checks it again. The error for
	// an unknown ref is a *problem.Error with code WORKFLOW_NOT_FOUND; after any other error the engine looks nowhere else.
	ResolveWorkflow(ctx context.Context, ref, pin string) (*definition.Document, error)
}

// ImmediateResolver is a Resolver that has workflows at hand, such as those of a folder. It is asked when a run starts, and the run is
// bound to the versions that it returns. A subworkflow that only another Resolver knows is resolved when the run reaches it, since a
// start does not wait for one.
type ImmediateResolver interface {
	Resolver
	// ResolveNow is ResolveWorkflow without waiting. Any error but WORKFLOW_NOT_FOUND leaves the version open.
	ResolveNow(ref, pin string) (*definition.Document, error)
}
