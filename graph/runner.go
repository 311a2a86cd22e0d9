package graph

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/internal/library"
	"github.com/workflows-engine/workflows-engine/graph/internal/outbox"
	"github.com/workflows-engine/workflows-engine/graph/internal/process"
	"github.com/workflows-engine/workflows-engine/graph/internal/run"
	"github.com/workflows-engine/workflows-engine/graph/internal/work"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/arrival"
	"github.com/workflows-engine/workflows-engine/internal/wait"
)

// Runner runs workflows on a store. It is an Engine, Recoverer, Forker, Exporter, Verifier, Pruner and Deliverer.
type Runner struct {
	store history.Store
	opts  Options // with defaults
	log   *slog.Logger

	library   *library.Library
	performer *work.Performer
	inFlight  work.InFlight
	runs      *run.Table
	tree      *run.TreeBudget
	answers   arrival.Answers
	notifier  process.Notifier
	standings run.Tree
	records   process.RecordHook
	runLog    process.RunLog
	clock     process.Clock
	presence  process.Presence
	lease     *process.Lease
	timers    *process.Queue
	search    *process.Search
	outbox    *outbox.Box

	// ctx ends when the Runner is closed; executors' contexts are made from it.
	ctx    context.Context
	cancel context.CancelCauseFunc

	// tasks counts calls and goroutines. Nothing is added once closed is set, unless it comes from a counted one.
	tasks  sync.WaitGroup
	mu     sync.Mutex
	closed bool
}

// New returns a Runner on a store. The caller closes the store after Runner.Close.
func New(store history.Store, o Options) (*Runner, error) {
	if store == nil {
		return nil, problem.New(problem.UsageError, "a Runner needs a store").
			WithHint("Open one with historysql.Open or historymem.New.")
	}
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	r := &Runner{store: store, opts: o, log: o.Logger, records: process.RecordHook{Log: o.Logger}}
	if o.OnRecord != nil {
		r.records.Call = func(e process.RecordEvent) { o.OnRecord(RecordEvent(e)) }
	}
	r.runLog.Log, r.inFlight.Log = r.log, r.log
	r.ctx, r.cancel = context.WithCancelCause(context.Background())
	r.clock = process.Clock{Store: store, Log: o.Logger, Go: r.tasks.Go, Context: r.ctx, Override: o.Now}
	r.presence.Begin(r.now())
	r.library = library.New(library.Options{
		Store: store, Workflows: o.Workflows, Verify: o.VerifyDefinition, MaxBytes: o.MaxDocumentBytes,
		Compile: definition.Options{AllowInterruptInBranch: o.AllowInterruptInBranch}, Log: r.log,
	})
	r.performer = &work.Performer{
		Activities: o.Activities, Delegates: o.Delegates, MaxBytes: o.MaxDocumentBytes, Now: r.now, Log: r.log,
		Steps: steps{r}, Requests: work.Requests{Omit: o.OmitRequests, MaxRunBytes: o.MaxBytes, Hide: o.Redaction.Or().Value},
		Turns: work.NewQueue(workLimits(o.Limits), r.tasks.Go, r.ctx.Done()), Alive: r.alive, Go: r.tasks.Go, Context: r.ctx,
		KeepsTasks: func(ctx context.Context, id string) (bool, error) { return run.KeepsTasks(ctx, store, id) },
	}
	r.lease = &process.Lease{
		Store: store, Label: o.Owner, TTL: o.LeaseTTL, Log: r.log, Go: r.tasks.Go, Context: r.ctx, Look: r.look,
		Lost: func(x *run.Run, process string) {
			_ = locked(x, func() error { x.LoseLease(process); return nil })
		},
		Stray: r.takeBack,
	}
	r.timers = &process.Queue{Go: r.tasks.Go, Done: r.ctx.Done(), Now: r.now, Fire: r.fire}
	r.search = &process.Search{
		Store: store, Now: r.now, Log: r.log, TTL: o.LeaseTTL, Presence: &r.presence, Pause: r.pause, Context: r.ctx, Take: r.takeOrphan, Admit: o.Admit,
		Reconsider: func(ctx context.Context) func() bool { return r.library.Reconsider(ctx, r.tasks.Go) }, Queue: r.timers,
	}
	r.outbox = &outbox.Box{Targets: targets(o.Webhooks), Now: r.now, Redaction: o.Redaction.Or()}
	if o.Deliver != nil && len(o.Webhooks) > 0 && !o.ReadOnly {
		r.outbox.Sender = &outbox.Sender{
			Store: store, Targets: r.outbox.Targets, Send: o.Deliver, Process: process.ProcessName(o.Owner), Now: r.now, Log: r.log, Go: r.tasks.Go, Context: r.ctx,
		}
		r.outbox.Sender.Begin()
	}
	r.tree = &run.TreeBudget{Store: store, Now: r.now, Log: r.log, Limits: run.TreeLimits(o.Tree), Depth: o.MaxDepth}
	r.runs = run.NewTable(&run.Environment{
		Store: store, Now: r.now, Log: r.log, Context: r.ctx, Lease: ownership{r}, Programs: r.library, Capabilities: r.performer,
		Observer: observer{r}, PresentSince: func() time.Time { return r.presence.Since(r.now()) }, Draining: r.inFlight.Draining,
		ReadOnly: o.ReadOnly, MaxVisits: o.MaxVisits, MaxDocumentBytes: o.MaxDocumentBytes, Limits: r.limits(), Tree: r.tree, Describe: r.performer.Describe, Outbox: r.outbox,
		DefaultMode: o.DefaultMode, CheckAnswer: o.CheckAnswer,
	})
	r.standings = run.Tree{Runs: r.runs, Library: r.library, Now: r.now, Read: r.reading, NotifyParent: r.notifyParent, ReadOnly: o.ReadOnly}
	if o.Background {
		r.tasks.Go(r.search.Run)
	}
	return r, nil
}

// errClosed is the cause with which the contexts of executors end when the Runner is closed.
var errClosed = problem.New(problem.RunnerClosed, "the engine is shutting down").
	WithHint("Start the engine again; its runs go on where they stood.")

// enter counts a call in, or refuses it after Close or once its context has ended. If it returns nil, call r.tasks.Done.
func (r *Runner) enter(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return errClosed
	}
	r.tasks.Add(1)
	return nil
}

// enterToWrite is enter for a call that may write.
func (r *Runner) enterToWrite(ctx context.Context) error {
	if r.opts.ReadOnly {
		return problem.New(problem.StoreReadOnly, "this engine only reads").WithHint("Nothing was changed. Make the call where the store can be written to.")
	}
	return r.enter(ctx)
}

// now is the engine's clock in the form that records have.
func (r *Runner) now() time.Time { return r.clock.Now().UTC() }

// pause waits, unless the Runner is closed.
func (r *Runner) pause(d time.Duration) bool { return wait.For(r.ctx, d) == nil }

// detached is the context of work that outlives the call it came from: recording what has happened.
func detached(ctx context.Context) context.Context { return context.WithoutCancel(ctx) }

// limits are those that the machine watches besides the budget of node visits.
func (r *Runner) limits() machine.Limits {
	return machine.Limits{
		MaxRecords: r.opts.MaxRecords, MaxBytes: r.opts.MaxBytes, MaxPending: r.opts.MaxPending, MinHostTimeout: r.opts.MinHostTimeout, Queued: r.performer.Limited(), StretchUnits: r.opts.stretchUnits,
	}
}

// RegisterWorkflow registers a definition under a workflow_ref. Registering a ref again replaces the definition for new runs.
func (r *Runner) RegisterWorkflow(ref string, d *definition.Document) error {
	return r.library.Register(ref, d)
}

// Validate checks a definition as Start does.
func (r *Runner) Validate(d *definition.Document) error {
	_, err := r.library.Admit(d)
	return err
}

// Lacking lists, in one line, the executors and subworkflows that this Runner lacks to perform definitions in process; "" if none are
// missing.
func (r *Runner) Lacking(ctx context.Context, ds ...*definition.Document) string {
	return r.library.LackingFor(ctx, ds, r.performer)
}
