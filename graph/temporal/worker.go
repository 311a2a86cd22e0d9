package temporal

import (
	"slices"
	"strings"
	"sync"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

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

// The deadlines of a workflow task. An evaluation cannot be divided, and may take longer than the SDK's default of 1 s.
const (
	deadlockTime     = 20 * time.Second
	workflowTaskTime = time.Minute
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
	p.past = past{e}
	w := &Worker{}
	l := o.layout()
	add := func(name string, workflows bool) {
		own := worker.New(o.Client, name, worker.Options{
			DisableWorkflowWorker: !workflows, MaxConcurrentActivityExecutionSize: o.MaxConcurrent, DeadlockDetectionTimeout: deadlockTime,
			WorkerStopTimeout: o.WorkerLost / 2,
		})
		if workflows {
			register(own, &walker{trust: trust(&o, p.library)}, nil)
			registerShared(own, p)
		} else {
			register(own, nil, p)
		}
		w.workers, w.queues = append(w.workers, own), append(w.queues, name)
	}
	for _, queue := range o.Queues {
		add(l.workflows(queue), true)
		for _, needs := range p.lanes(o.Lanes) {
			add(l.taskQueue(queue, needs), false)
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
