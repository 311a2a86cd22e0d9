package conformance_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/delegate"
	"github.com/workflows-engine/workflows-engine/delegate/agent/llmagent"
	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/graph/view"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historytest"
)

// trial is one run of a workflow, disturbed or not.
type trial struct {
	t     *testing.T
	c     *crashCase
	m     crashMode
	store history.Store
	fault *historytest.FaultStore
	// calls are the operations of the undisturbed run.
	calls []string
	run   *view.Run
	// given holds the payload that each interrupt or signal wait received.
	given map[string]object
	// inOrder means that answers are given in their order, each once; answered counts them by signal, "" for people.
	inOrder  bool
	answered map[string]int
	// patience is how long drive waits for a running run before it looks for abandoned runs.
	patience time.Duration
	// cancelled means that the run was cancelled.
	cancelled bool

	// performs, if it is set, is called when an attempt is about to be performed.
	performs func(key string)

	// dies is the effect of agents at which the process dies, struck the effect itself.
	dies   strike
	struck effect

	mu sync.Mutex
	// effects are those of agents, in order; gone means that the process that performs them is dead.
	effects []effect
	gone    bool
	// keys are the idempotency keys that executors and host received; wrong lists what they must not see.
	keys  map[string]bool
	wrong []string
}

const (
	crashRun = "r"
	// leaseTTL is shorter than the time that activities may take.
	leaseTTL = 2 * time.Second
)

// inBubble runs f in a bubble whose clock is past every date in the vectors: a process polls its store for as long as it
// waits, and a bubble's clock begins in the year 2000.
func inBubble(t *testing.T, f func(t *testing.T)) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)))
		f(t)
	})
}

func newTrial(t *testing.T, c *crashCase, m crashMode, store history.Store) *trial {
	t.Helper()
	if c.team != nil {
		c.team.office.begin(t, c.team.script)
	}
	x := &trial{
		t: t, c: c, m: m, store: store, fault: historytest.NewFaultStore(store),
		given: map[string]object{}, answered: map[string]int{}, keys: map[string]bool{}, patience: leaseTTL,
	}
	if c.team != nil && c.team.before != nil {
		x.failBefore()
	}
	return x
}

// failedRun is the run that the one of a case is a retry of, if it is one.
const failedRun = "before"

// failBefore has that run fail, undisturbed.
func (x *trial) failBefore() {
	x.t.Helper()
	c, team := *x.c, *x.c.team
	team.agents, team.before = team.before, nil
	c.team = &team
	first := newTrial(x.t, &c, x.m, x.store)
	r := first.runner(x.store)
	run, err := r.Start(x.t.Context(), graph.StartRequest{ExecutionID: failedRun, Definition: c.doc, Input: c.input, Wait: graph.Wait{Limit: time.Hour}})
	if err != nil || run.Status != machine.Failed || run.ErrorCode != string(problem.AgentTurnsExceeded) {
		x.t.Fatalf("%+v, %v", run, err)
	}
	if _, err := r.Fork(x.t.Context(), graph.ForkRequest{ExecutionID: failedRun, NewExecutionID: crashRun}); !errors.Is(err, problem.AgentBudgetSpent) {
		x.t.Errorf("a retry without today's configuration: %v", err)
	}
	x.close(r)
	team.office.begin(x.t, team.script)
}

// begin begins the run, or goes on with it.
func (x *trial) begin(ctx context.Context, r *graph.Runner) (*view.Run, error) {
	if x.c.team == nil || x.c.team.before == nil {
		return r.Start(ctx, graph.StartRequest{ExecutionID: crashRun, Definition: x.c.doc, Input: x.c.input, AllowExisting: true})
	}
	run, err := r.Fork(ctx, graph.ForkRequest{ExecutionID: failedRun, NewExecutionID: crashRun, CurrentAgentConfig: true})
	if errors.Is(err, problem.DuplicateExecutionID) || errors.Is(err, problem.AlreadyRetried) {
		return r.Status(ctx, graph.StatusRequest{ExecutionID: crashRun})
	}
	return run, err
}

func (x *trial) runner(store history.Store) *graph.Runner {
	x.t.Helper()
	var performs activities.Executor = activities.ExecutorFunc(x.execute)
	var delegates activities.Executor = activities.ExecutorFunc(x.delegate)
	if x.c.team != nil {
		agents := x.team()
		performs, delegates = llmagent.New(agents, nil, nil), activities.Composite{SDK: agents}
	}
	r, err := graph.New(store, graph.Options{
		Activities: performs, Delegates: delegates, Workflows: x.c.resolve,
		DefaultMode: x.m.mode, MaxVisits: 60, LeaseTTL: leaseTTL,
	})
	if err != nil {
		x.t.Fatal(err)
	}
	return r
}

func (x *trial) close(r *graph.Runner) {
	x.t.Helper()
	if err := r.Close(); err != nil {
		x.t.Errorf("Close: %v", err)
	}
}

func (x *trial) closeStore() {
	x.t.Helper()
	if err := x.store.Close(); err != nil {
		x.t.Error(err)
	}
}

// execute performs an activity in process.
func (x *trial) execute(ctx context.Context, req activities.Request) (activities.Result, error) {
	x.called(req.ExecutionID, req.NodeID, req.Visit, req.Attempt, req.IdempotencyKey)
	if err := x.take(ctx, req.NodeID); err != nil {
		return activities.Result{}, err
	}
	return x.c.performed(req)
}

func (x *trial) delegate(ctx context.Context, req activities.Request) (activities.Result, error) {
	x.called(req.ExecutionID, req.NodeID, req.Visit, req.Attempt, req.IdempotencyKey)
	if err := x.take(ctx, req.NodeID); err != nil {
		return activities.Result{}, err
	}
	return delegate.Mock{}.Execute(ctx, req)
}

// take waits as long as an activity of the node takes.
func (x *trial) take(ctx context.Context, nodeID string) error {
	pace, ok := x.c.pace[nodeID]
	if !ok {
		pace = 10 * time.Millisecond
	}
	select {
	case <-time.After(pace):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// called notes that an attempt is performed, and checks that its request is recorded and its outcome is not.
func (x *trial) called(id, node string, visit, attempt int, key string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.keys[key] = true
	if x.performs != nil {
		x.performs(key)
	}
	if want := fmt.Sprintf("%s:%s#%d.%d", id, node, visit, attempt); key != want {
		x.wrong = append(x.wrong, fmt.Sprintf("%s was called with the key %q", want, key))
	}
	requested := false
	for _, r := range x.records(id) {
		if r.Payload.NodeID != node || max(r.Payload.Visit, 1) != visit {
			continue
		}
		switch r.Name {
		case history.ActivityRequested:
			requested = requested || max(r.Payload.Attempt, 1) == attempt
		case history.ActivityCompleted:
			x.wrong = append(x.wrong, key+" was performed after its outcome was recorded")
		case history.ActivityFailed:
			if max(r.Payload.Attempt, 1) >= attempt {
				x.wrong = append(x.wrong, key+" was performed after its failure was recorded")
			}
		}
	}
	if !requested {
		x.wrong = append(x.wrong, key+" was performed before its request was recorded")
	}
}

// undisturbed drives the run to its end and notes the operations on the store.
func (x *trial) undisturbed() {
	x.t.Helper()
	x.fault.Set(historytest.Fault{Reads: true})
	r := x.runner(x.fault)
	run, err := x.drive(r)
	x.calls = x.fault.Calls()
	x.close(r)
	if err != nil {
		x.t.Fatalf("undisturbed: %v", err)
	}
	if x.m.cancel && !x.cancelled {
		return
	}
	x.run = run
	x.check("undisturbed")
}

// disturbed drives the run with a fault, and unless again is 0 with a second one in the process that takes over.
func (x *trial) disturbed(at int, w way, again int) {
	x.t.Helper()
	x.fault.Set(historytest.Fault{At: at, Reads: true, AfterCommit: w.late, Dead: w.dead})
	r := x.runner(x.fault)
	var err error
	if w.dead {
		r = x.nextLife(r)
		if again > 0 {
			x.fault.Set(historytest.Fault{At: again, Reads: true, AfterCommit: w.late, Dead: true})
			r = x.nextLife(r)
		}
		x.fault.Revive()
	}
	x.run, err = x.drive(r)
	if err == nil { // recover what the crash left besides the run itself
		for clean := 0; clean < 2; clean++ { // the fault may strike in the first call
			time.Sleep(2 * leaseTTL)
			if _, failed := r.Recover(x.t.Context(), graph.RecoverRequest{}); failed != nil {
				clean = 0
			}
			synctest.Wait()
		}
	}
	x.close(r)
	if err != nil {
		x.t.Errorf("operation %d, %s: %v", at, w.name, err)
	}
}

// nextLife drives until the store has died, and returns the runner of the next process.
func (x *trial) nextLife(r *graph.Runner) *graph.Runner {
	x.t.Helper()
	x.driveUntilDeath(r)
	x.close(r)
	time.Sleep(2 * leaseTTL)
	x.fault.Revive()
	x.mu.Lock()
	x.gone = false
	x.mu.Unlock()
	x.verify("after a crash")
	return x.runner(x.fault)
}

// driveUntilDeath drives until the store has died.
func (x *trial) driveUntilDeath(r *graph.Runner) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = x.drive(r)
	}()
	for {
		select {
		case <-done:
			return
		case <-time.After(time.Second):
			if x.fault.Struck() {
				if err := r.Close(); err != nil {
					x.t.Errorf("Close: %v", err)
				}
				<-done
				return
			}
		}
	}
}
