package graph

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
)

// Runner runs workflows over a store.
type Runner struct {
	store history.Store
	opts  Options // with defaults
	log   *slog.Logger
	// wakeful says since when the Runner has been there.
	wakeful wakefulness

	library library
	runs    runTable
	hub     hub
	alarms  alarms
	keeper  keeper
	unknown unknown
	// orphans and due are the runs that were looked at because they have no driver, or because a timer is due.
	orphans, due turns

	// ctx ends when the Runner is closed; executors' contexts are made from it.
	ctx    context.Context
	cancel context.CancelCauseFunc

	// tasks counts calls and goroutines. Nothing is added once closed is set, unless it comes from a counted one.
	tasks  sync.WaitGroup
	mu     sync.Mutex
	closed bool
}

// RecordEvent is what Options.OnRecord gets.
type RecordEvent struct {
	ExecutionID string
	Records     []history.Record
}

// New makes a Runner over a store, which stays the caller's to close after Runner.Close.
func New(store history.Store, o Options) (*Runner, error) {
	if store == nil {
		return nil, problem.New(problem.UsageError, "a Runner needs a store").
			WithHint("Open one with historysql.Open or historymem.New.")
	}
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	r := &Runner{store: store, opts: o, log: o.Logger}
	r.wakeful.begin(r.now())
	r.ctx, r.cancel = context.WithCancelCause(context.Background())
	r.library.init(r)
	r.runs.init(r)
	r.alarms.init(r)
	r.keeper.init(r)
	if o.Background {
		r.tasks.Go(r.watch)
	}
	return r, nil
}

// errClosed is the cause with which the contexts of executors end when the Runner is closed.
var errClosed = problem.New(problem.RunnerClosed, "the engine is shutting down").
	WithHint("Start the engine again; its runs go on where they stood.")

// enter counts a call in, or refuses it after Close. The caller must call r.tasks.Done when it returns nil.
func (r *Runner) enter() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return errClosed
	}
	r.tasks.Add(1)
	return nil
}

// Close stops driving: executors' contexts end, what they answered in time is recorded, leases are given back. What was
// in flight is performed again, with the same keys, by whoever takes the runs over. It returns once everything has
// stopped, or with an error when an executor has not stopped within Options.CloseLimit.
func (r *Runner) Close() error {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	r.cancel(errClosed)

	done := make(chan struct{})
	go func() {
		r.tasks.Wait()
		close(done)
	}()
	limit := time.NewTimer(r.opts.CloseLimit)
	defer limit.Stop()
	var err error
	select {
	case <-done:
	case <-limit.C:
		err = problem.New(problem.RunnerClosed, "some executors have not stopped within %s", r.opts.CloseLimit).
			WithHint("Executors must return when their context ends.")
	}
	r.runs.releaseLeases()
	return err
}

// untilClose gives the context of a call that may take long: it ends with the Runner too, whose error is its cause then. The
// caller must call stop when it is done.
func (r *Runner) untilClose(ctx context.Context) (_ context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	quit := context.AfterFunc(r.ctx, func() { cancel(errClosed) })
	return ctx, func() {
		quit()
		cancel(nil)
	}
}

// now is the engine's clock in the form that records have.
func (r *Runner) now() time.Time { return r.opts.Now().UTC() }

// lasting is the context of work that outlives the call it came from: recording what has happened. It carries no
// deadline of its own; stores bound how long they wait for a lock.
func lasting(ctx context.Context) context.Context { return context.WithoutCancel(ctx) }
