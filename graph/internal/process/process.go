package process

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/graph/internal/library"
	"github.com/workflows-engine/workflows-engine/graph/internal/outbox"
	"github.com/workflows-engine/workflows-engine/graph/internal/run"
	"github.com/workflows-engine/workflows-engine/graph/internal/work"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/wait"
)

// Config configures a Process. graph.Options documents the settings and has their defaults.
type Config struct {
	Store history.Store
	Log   *slog.Logger
	// Clock, unless nil, replaces the store's clock.
	Clock func() time.Time
	// Library has no Store and Log; New sets them.
	Library    library.Options
	Activities activities.Executor
	Delegates  activities.Executor
	Requests   work.Requests
	// Turns limits the attempts in flight, Limits each run.
	Turns  []work.Limit
	Limits machine.Limits
	Tree   run.TreeLimits

	MaxVisits, MaxDocumentBytes, MaxDepth int

	DefaultMode machine.Mode
	CheckAnswer run.CheckAnswer
	// Owner begins the name of the process in leases.
	Owner    string
	LeaseTTL time.Duration
	ReadOnly bool
	// Work, Queues, Capacity, MaxQueued, FairLabel and Version are how runs are shared with other processes. Capacity 0 and MaxQueued 0 mean
	// no limit.
	Work      Work
	Queues    []string
	Capacity  int
	MaxQueued int
	FairLabel string
	Version   string
	// Admit returns an error while there is no room for further runs; nil admits all.
	Admit func() error
	// OnRecord, unless nil, is called with the records of each append, in order for each run and outside of all locks.
	OnRecord  func(executionID string, records []history.Record)
	Webhooks  outbox.Targets
	Deliver   outbox.Send // nil leaves sending to other processes
	Redaction history.Redaction
	// Glossary has the names that hints in bodies of webhooks use.
	Glossary problem.Glossary
}

// Process drives the runs of a store. A call, an outcome or a timer is an input of one run: With applies it under the run's lock and
// dispatches the resulting work. A Lease, a Queue of timers and a Search find the runs that need this without a call.
type Process struct {
	work.Env
	Library   *library.Library
	Performer *work.Performer
	Runs      *run.Table
	Outbox    *outbox.Box

	config   Config
	notifier Notifier
	clock    Clock
	presence Presence
	lease    *Lease
	share    *Share
	limits   *SharedLimits
	timers   *Queue
	search   *Search
	budget   *run.TreeBudget
	cancel   context.CancelCauseFunc

	// tasks counts calls and goroutines. After closed is set, only counted ones add to it.
	tasks  sync.WaitGroup
	mu     sync.Mutex
	closed bool
}

// New returns a process on a store and, with WorkAll, starts its search.
func New(c Config) *Process {
	p := &Process{}
	p.Context, p.cancel = context.WithCancelCause(context.Background())
	c.Log = slog.New(&outage{Handler: c.Log.Handler(), state: &outageState{
		reach: func(ctx context.Context) error { _, err := c.Store.Now(ctx); return err },
		task:  func(f func(context.Context)) { p.Go(func() { f(p.Context) }) },
	}})
	c.Store = history.Wrap(survivors{c.Store, c.Log, c.ReadOnly}, c.Store)
	p.config = c
	p.Env = work.Env{Store: c.Store, Log: c.Log, Context: p.Context, Go: p.tasks.Go, Now: func() time.Time { return p.clock.Now().UTC() }}
	p.clock.Env, p.clock.Override = p.Env, c.Clock
	p.presence.Begin(p.Now())
	c.Library.Store, c.Library.Log = c.Store, c.Log
	p.Library = library.New(c.Library)
	p.Performer = &work.Performer{
		Env: p.Env, Activities: c.Activities, Delegates: c.Delegates, MaxBytes: c.MaxDocumentBytes, Requests: c.Requests,
		Runs: performed{p}, Turns: work.NewQueue(p.Env, c.Turns, c.Capacity), InFlight: work.InFlight{Log: c.Log},
	}
	p.lease = newLease(p.Env, c.Owner, c.LeaseTTL, p)
	p.share = &Share{
		Env: p.Env, Work: c.Work, Queues: c.Queues, Capacity: c.Capacity, Version: c.Version, Admit: c.Admit, performer: p.Performer, lease: p.lease, runs: p,
	}
	p.share.queue, _ = history.As[history.Queue](c.Store)
	p.share.roster, _ = history.As[history.Roster](c.Store)
	p.limits = &SharedLimits{Env: p.Env, lease: p.lease, turns: p.Performer.Turns}
	p.limits.limiter, _ = history.As[history.Limiter](c.Store)
	p.lease.lostShares, p.share.limits = p.Performer.Turns.LoseShares, p.limits
	p.timers = &Queue{Env: p.Env, runs: p}
	p.search = &Search{Env: p.Env, TTL: c.LeaseTTL, Presence: &p.presence, Admit: c.Admit, Free: p.Performer.Turns.Free, Skip: p.share.claims, Queue: p.timers, Overview: p.overview, runs: p}
	p.share.search = p.search
	p.Outbox = &outbox.Box{Targets: c.Webhooks, Now: p.Now, Redaction: c.Redaction, Glossary: c.Glossary}
	if c.Deliver != nil && len(c.Webhooks) > 0 && !c.ReadOnly {
		p.Outbox.Sender = &outbox.Sender{
			Store: c.Store, Targets: c.Webhooks, Send: c.Deliver, Process: ProcessName(c.Owner), Now: p.Now, Log: c.Log, Go: p.Go, Context: p.Context,
		}
		p.Outbox.Sender.Begin()
	}
	p.budget = &run.TreeBudget{Env: p.Env, Limits: c.Tree, Depth: c.MaxDepth}
	p.Runs = run.NewTable(&run.Environment{
		Env: p.Env, Process: runProcess{p}, Performer: p.Performer, Programs: p.Library, CheckAnswer: c.CheckAnswer, Outbox: p.Outbox,
		ReadOnly: c.ReadOnly, KeepRecords: c.OnRecord != nil, MaxVisits: c.MaxVisits, MaxDocumentBytes: c.MaxDocumentBytes, Limits: p.config.Limits,
		Tree: p.budget, DefaultMode: c.DefaultMode,
		Sharing: run.Sharing{None: c.Work == WorkNone, Gives: c.Work == WorkAll, Queue: p.share.queue, Limits: p.limits.inUse, FairLabel: c.FairLabel,
			Others: p.share.Others, Workers: p.share.Workers, Taking: p.share.Taking, Leaves: p.share.leaves, Admit: (&backlog{queue: p.share.queue, most: c.MaxQueued}).admit},
	})
	if !c.ReadOnly {
		p.limits.Begin()
		p.share.Begin()
	}
	if c.Work == WorkAll {
		p.Go(p.search.Run)
	}
	return p
}

// overview reads the overview of the store, and passes it to the parts of the process that ask for nothing else while it has no news for them.
func (p *Process) overview() (history.Overview, error) {
	process, asked, begun := p.lease.Process(), p.clock.here(), time.Now()
	o, err := p.Store.Overview(p.Context, process)
	if err != nil {
		return o, err
	}
	p.clock.note(asked, o.Now)
	p.lease.note(process, o.Owns, begun)
	p.limits.lookAgain(o.Limited)
	p.share.note(o.Ready)
	return o, nil
}

// Processes returns the live processes of the store.
func (p *Process) Processes(ctx context.Context) ([]history.Process, error) {
	return p.share.Processes(ctx)
}

// Lanes returns the lanes with runs that wait for a process.
func (p *Process) Lanes(ctx context.Context) ([]history.LaneUse, error) {
	if p.share.queue == nil {
		return nil, nil
	}
	return p.share.queue.Lanes(ctx)
}

// LookAtLimits makes this process keep to the shared limits of the store at once. Otherwise it reads them within a second.
func (p *Process) LookAtLimits(ctx context.Context) { p.limits.look(ctx) }

// Limits returns the limits of each run.
func (p *Process) Limits() machine.Limits { return p.config.Limits }

// Name returns the name of the process in leases, "" before it has first owned a run.
func (p *Process) Name() string { return p.lease.Process() }

// errClosed is the cause of the end of executors' contexts when the engine closes.
var errClosed = problem.New(problem.RunnerClosed, "the engine is shutting down").
	WithHint("Start the engine again; its runs continue.")

// Enter admits a call, or rejects it after Close or the end of its context. If it returns nil, call Leave.
func (p *Process) Enter(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return errClosed
	}
	p.tasks.Add(1)
	return nil
}

// Leave ends a call.
func (p *Process) Leave() { p.tasks.Done() }

// Closing holds the time limits of Close: Drain for attempts in flight, Deliver for webhooks, then Limit for everything to stop.
type Closing struct{ Drain, Deliver, Limit time.Duration }

// Close stops driving; see graph.Runner.Close.
func (p *Process) Close(c Closing) error {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	if c.Drain > 0 {
		drained := p.Performer.InFlight.Drain()
		p.Performer.Turns.Open()
		wait.Within(c.Drain, drained)
	}
	p.Performer.Turns.Close()
	if p.Outbox.Sender != nil && c.Deliver > 0 {
		if left := p.Outbox.Sender.Drain(c.Deliver); left > 0 {
			p.Log.Warn("webhooks left to other processes", "deliveries", left)
		}
	}
	p.cancel(errClosed)

	done := make(chan struct{})
	go func() {
		p.tasks.Wait()
		close(done)
	}()
	var err error
	if !wait.Within(c.Limit, done) {
		err = p.Performer.InFlight.Hanging(c.Limit)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if err := p.lease.Release(ctx); err != nil {
		p.Log.Warn("lease not released: it runs out by itself", "error", err)
	}
	return err
}
