package temporal

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	"github.com/google/uuid"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/internal/admit"
	"github.com/workflows-engine/workflows-engine/graph/internal/library"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
)

// Options configure an Engine and a Worker; both ignore fields that concern only the other one. The zero value works, except for Client. Fields
// with the names of graph.Options mean the same.
type Options struct {
	// Client is the connection to the Temporal service, in the namespace of the runs. The caller closes it. With a SideStore, its data converter
	// is that of NewDataConverter, and so is Converter, which reads the memos of lists; nil means the SDK's default.
	Client    client.Client
	Converter converter.DataConverter
	// Address and Namespace of the service are named in errors.
	Address, Namespace string
	// TaskQueue is the prefix of the names of task queues; "" means "awp". Engines and workers of the same runs have the same prefix.
	TaskQueue string
	// Lanes are executors with task queues of their own, such as "step:charge". Others share a task queue by kind: step, llm_call, tool_call,
	// and the protocol of a delegation. Engines and workers of the same runs have the same lanes.
	Lanes []string
	// Queues are the queues whose runs a Worker performs; nil means history.DefaultQueue.
	Queues []string
	// WorkerLost is the time without a sign of life after which the attempt of a worker is given to another one; 0 means 60 s.
	WorkerLost time.Duration
	// MaxConcurrent is the largest number of attempts in flight in a Worker on each task queue; 0 means 100.
	MaxConcurrent int
	// Limits bound the attempts of a Worker by class, each on the task queue of its executor. A limit that no task queue of the worker can keep
	// is UNSUPPORTED_BY_BACKEND.
	Limits []graph.Limit
	// FairLabel is the label whose values take turns in task queues; "" lets root runs take turns.
	FairLabel string
	// SideStore keeps large values and the journals of agents; nil rejects both.
	SideStore SideStore
	// Archive keeps the records before a run continues as new; nil gives them up.
	Archive Archive
	// Webhooks are the targets of run events that a start can name, and Deliver sends to them. Engines and workers of the same runs have the
	// same targets; a Worker without both leaves the sending to others.
	Webhooks map[string]graph.Webhook
	Deliver  func(context.Context, history.Delivery) (history.Receipt, error)
	Glossary problem.Glossary
	// MaxEvents is the number of events after which a run continues as new; 0 leaves it to the service.
	MaxEvents int

	Activities             activities.Executor
	Delegates              activities.Executor
	Workflows              graph.Resolver
	VerifyDefinition       func(*definition.Document) error
	DefaultMode            machine.Mode
	Branches               machine.BranchOrder
	AllowInterruptInBranch bool
	MaxVisits              int
	MaxRecords             int64
	MaxBytes               int64
	MaxPending             int
	MinHostTimeout         time.Duration
	Attempts               map[string]int
	MaxDepth               int
	MaxDocumentBytes       int
	WaitLimit              time.Duration
	CheckAnswer            func(asked activities.RecordedAttempt, answer map[string]any) error
	Redaction              *history.Redaction
	NewID                  func() string
	Logger                 *slog.Logger

	stretchUnits int // machine.Limits.StretchUnits, for tests
}

// Defaults of Options.
const (
	defaultTaskQueue        = "awp"
	defaultWorkerLost       = time.Minute
	defaultMaxConcurrent    = 100
	defaultMaxRecords       = 1_000_000
	defaultMaxBytes         = 1 << 30
	defaultMaxDepth         = 4
	defaultMaxDocumentBytes = 2 << 20
	defaultWaitLimit        = 20 * time.Second
	// mostPending is the largest number of attempts of a run in flight: Temporal allows 2,000 activities and child workflows.
	mostPending = 1000
	// maxValue is the largest value without a side store: Temporal allows payloads of 2 MiB.
	maxValue = 1 << 20
	// maxStart is the largest input of a workflow without a side store.
	maxStart = 3 << 19
)

// withDefaults checks the options and sets defaults.
func (o Options) withDefaults() (Options, error) {
	if err := cmp.Or(admit.Mode(o.DefaultMode, problem.UsageError), admit.Branches(o.Branches, problem.UsageError),
		admit.NotNegative("MaxVisits", o.MaxVisits), admit.NotNegative("MaxRecords", o.MaxRecords), admit.NotNegative("MaxBytes", o.MaxBytes),
		admit.NotNegative("MaxPending", o.MaxPending), admit.NotNegative("MaxDepth", o.MaxDepth), admit.NotNegative("MaxDocumentBytes", o.MaxDocumentBytes),
		admit.NotNegative("WorkerLost", o.WorkerLost), admit.NotNegative("MaxConcurrent", o.MaxConcurrent), admit.NotNegative("MaxEvents", o.MaxEvents)); err != nil {
		return o, err
	}
	for _, q := range o.Queues {
		if err := admit.Queue(q, problem.UsageError); err != nil {
			return o, err
		}
	}
	if o.MaxPending > mostPending {
		return o, problem.New(problem.UsageError, "invalid option MaxPending: %d", o.MaxPending).WithHint("Use at most %d.", mostPending)
	}
	o.TaskQueue = cmp.Or(o.TaskQueue, defaultTaskQueue)
	if len(o.Queues) == 0 {
		o.Queues = []string{history.DefaultQueue}
	}
	o.WorkerLost = cmp.Or(o.WorkerLost, defaultWorkerLost)
	o.MaxConcurrent = cmp.Or(o.MaxConcurrent, defaultMaxConcurrent)
	o.DefaultMode = cmp.Or(o.DefaultMode, machine.InProcess)
	o.Branches = cmp.Or(o.Branches, machine.Concurrent)
	o.MaxVisits = cmp.Or(o.MaxVisits, machine.DefaultMaxVisits)
	o.MaxRecords = cmp.Or(o.MaxRecords, defaultMaxRecords)
	o.MaxBytes = cmp.Or(o.MaxBytes, defaultMaxBytes)
	o.MaxPending = cmp.Or(o.MaxPending, mostPending)
	o.MaxDepth = cmp.Or(o.MaxDepth, defaultMaxDepth)
	o.MaxDocumentBytes = cmp.Or(o.MaxDocumentBytes, defaultMaxDocumentBytes)
	o.WaitLimit = max(0, cmp.Or(o.WaitLimit, defaultWaitLimit))
	if o.Converter == nil {
		o.Converter = converter.GetDefaultDataConverter()
	}
	if o.NewID == nil {
		o.NewID = func() string { return uuid.Must(uuid.NewV7()).String() }
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.SideStore == nil {
		o.MaxDocumentBytes = min(o.MaxDocumentBytes, maxValue)
	}
	return o, nil
}

// limits returns the limits of new runs.
func (o *Options) limits() limits {
	l := limits{
		Records: o.MaxRecords, Bytes: o.MaxBytes, Pending: o.MaxPending, Depth: o.MaxDepth, Document: o.MaxDocumentBytes, Value: maxValue,
		MinHostTimeout: o.MinHostTimeout, StretchUnits: o.stretchUnits, Events: o.MaxEvents,
	}
	if o.SideStore != nil {
		l.Value = 0
	}
	return l
}

func (o *Options) layout() layout {
	return layout{TaskQueue: o.TaskQueue, Lanes: o.Lanes, Lost: o.WorkerLost, Archive: o.Archive != nil}
}

func (o *Options) library(store library.Store) *library.Library {
	return library.New(library.Options{
		Store: store, Workflows: o.Workflows, Verify: o.VerifyDefinition, MaxBytes: o.MaxDocumentBytes,
		Compile: definition.Options{AllowInterruptInBranch: o.AllowInterruptInBranch}, Log: o.Logger,
	})
}
