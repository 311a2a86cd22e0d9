package temporal

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/internal/library"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
)

// Worker performs runs: their workflows, and the activities for which it has executors. Any number of workers may share the runs of a namespace.
type Worker struct {
	workers []worker.Worker
	queues  []string
	stop    sync.Once
}

// registry is the part of a worker, or of a test environment, that knows workflows and activities.
type registry interface {
	RegisterWorkflowWithOptions(w any, options workflow.RegisterOptions)
	RegisterActivityWithOptions(a any, options activity.RegisterOptions)
}

// The deadlines of a workflow task. An evaluation cannot be divided, and may take longer than the SDK's default of 1 s. A run whose worker is
// killed in a workflow task stands still until workflowTaskTime is over.
const (
	deadlockTime     = 20 * time.Second
	workflowTaskTime = 30 * time.Second
)

// NewWorker returns a worker that has not started.
func NewWorker(o Options) (*Worker, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	if o.Client == nil {
		return nil, problem.New(problem.UsageError, "a Worker needs a client").WithHint("Connect to the Temporal service first.")
	}
	e := newEngine(o, clientBackend{&o})
	p := e.performer
	p.past, p.turns = past{e, true}, clientBackend{&o}
	w := &Worker{}
	l := o.layout()
	lanes := p.lanes(o.Lanes)
	limited, err := o.limited(lanes)
	if err != nil {
		return nil, err
	}
	add := func(name string, limit graph.Limit) worker.Worker {
		own := worker.New(o.Client, name, worker.Options{
			DisableWorkflowWorker: true, MaxConcurrentActivityExecutionSize: cmp.Or(limit.Concurrent, o.MaxConcurrent), WorkerActivitiesPerSecond: limit.PerSecond,
			WorkerStopTimeout: o.WorkerLost / 2,
		})
		w.workers, w.queues = append(w.workers, own), append(w.queues, name)
		return own
	}
	for _, queue := range o.Queues {
		name := l.workflows(queue)
		own := worker.New(o.Client, name, worker.Options{
			MaxConcurrentActivityExecutionSize: o.MaxConcurrent, DeadlockDetectionTimeout: deadlockTime, WorkerStopTimeout: o.WorkerLost / 2,
		})
		w.workers, w.queues = append(w.workers, own), append(w.queues, name)
		register(own, &walker{trust: trust(&o, p.library)}, nil)
		registerShared(own, p)
		for _, needs := range lanes {
			register(add(l.taskQueue(queue, needs), limited[needs]), nil, p)
		}
		if p.sendsWebhooks() {
			registerWebhooks(add(l.webhooks(queue), graph.Limit{}), p)
		}
	}
	return w, nil
}

// trust returns the check of definitions before they are walked, nil without one.
func trust(o *Options, l *library.Library) func(history.StoredDefinition) error {
	if o.VerifyDefinition == nil {
		return nil
	}
	return l.Trust
}

// lanes lists the needs that the process serves: each kind of executor, and each lane that it serves.
func (p *performer) lanes(own []string) (needs []string) {
	for _, name := range p.missing.Performs() {
		kind, _, _ := strings.Cut(name, ":")
		if !slices.Contains(needs, kind) {
			needs = append(needs, kind)
		}
	}
	for _, lane := range own {
		if p.missing.Serves(lane) && !slices.Contains(needs, lane) {
			needs = append(needs, lane)
		}
	}
	return needs
}

// register registers the workflow and the activities that need executors.
func register(r registry, w *walker, p *performer) {
	if w != nil {
		r.RegisterWorkflowWithOptions(w.walk, workflow.RegisterOptions{Name: WorkflowType})
		r.RegisterWorkflowWithOptions(deliver, workflow.RegisterOptions{Name: OutboxType})
	}
	if p != nil {
		for name, f := range map[string]any{activityPerform: p.Perform, activityDelegate: p.Delegate, activityPoll: p.Poll, activityRelease: p.Release} {
			r.RegisterActivityWithOptions(f, activity.RegisterOptions{Name: name})
		}
	}
}

// registerShared registers the activities of the task queues of workflows.
func registerShared(r registry, p *performer) {
	for name, f := range map[string]any{activityResolve: p.Resolve, activityArchive: p.Archive} {
		r.RegisterActivityWithOptions(f, activity.RegisterOptions{Name: name})
	}
}

// registerWebhooks registers the activities of the task queues of webhooks.
func registerWebhooks(r registry, p *performer) {
	for name, f := range map[string]any{activityWrite: p.Write, activityDeliver: p.Deliver} {
		r.RegisterActivityWithOptions(f, activity.RegisterOptions{Name: name})
	}
}

// TaskQueues lists the task queues that the worker polls.
func (w *Worker) TaskQueues() []string { return slices.Clone(w.queues) }

// Start begins to perform runs and returns.
func (w *Worker) Start() error {
	for i, own := range w.workers {
		if err := own.Start(); err != nil {
			for _, started := range w.workers[:i] {
				started.Stop()
			}
			return problem.New(problem.StoreUnavailable, "the worker cannot poll the task queue %q", w.queues[i]).WithCause(err).
				WithHint("Check the address, the namespace and the credentials.")
		}
	}
	return nil
}

// Stop ends the worker. Attempts in flight have half of Options.WorkerLost to end; others get them then.
func (w *Worker) Stop() {
	w.stop.Do(func() {
		var all sync.WaitGroup
		for _, own := range w.workers {
			all.Go(own.Stop)
		}
		all.Wait()
	})
}
