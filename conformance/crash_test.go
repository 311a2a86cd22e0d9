package conformance_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/delegate"
	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historymem"
	"github.com/workflows-engine/workflows-engine/history/historysql"
	"github.com/workflows-engine/workflows-engine/history/historytest"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// The crash enumeration. Every workflow is run once undisturbed. Then, for every operation that this run asked of its
// store, it is run again with that operation failing, in each of the ways below; afterwards it is driven to its end, by
// a new runner over the same store where the process has died. The two runs must have ended alike.
//
// The short form tries every point of the examples and each seventh of the vectors' workflows; the race detector gets a
// smaller sample. With SOAK set every point of all workflows is tried, long waits are polled and not slept through, and the
// process that takes over dies too, at each of its first operations.

// way is how an operation of the store fails.
type way struct {
	name string
	// late lets it take effect first; dead says that nothing of the process runs afterwards.
	late, dead bool
}

var ways = []way{
	{"died before the commit", false, true},
	{"died after the commit", true, true},
	{"error, not committed", false, false},
	{"error, although committed", true, false},
}

// crashMode is how a workflow is run.
type crashMode struct {
	mode machine.Mode
	// cancel ends the run at its first rest instead of driving it to its end.
	cancel bool
}

var crashModes = []crashMode{
	{machine.InProcess, false}, {machine.HostMediated, false}, {machine.InProcess, true}, {machine.HostMediated, true},
}

// raceSample is how many points of one workflow in one mode are tried under the race detector.
const raceSample = 4

// vectorStride is how far apart the points of a vector's workflow are in the short form. It has no divisor in common with
// the number of ways to fail, so that all of these have their turn.
const vectorStride = 7

// TestCrashAtEveryOperation is the enumeration in memory: all of it for the examples, for the vectors' workflows a sample
// unless SOAK is set.
func TestCrashAtEveryOperation(t *testing.T) {
	t.Parallel()
	cases := crashCases(t)
	var points tally
	var possible atomic.Int64
	t.Run("memory", func(t *testing.T) {
		for _, c := range cases {
			for _, m := range crashModes {
				points.offered++
				t.Run(fmt.Sprintf("%s/%s/cancel=%v", c.name, m.mode, m.cancel), func(t *testing.T) {
					points.taken.Add(1)
					t.Parallel()
					synctest.Test(t, func(t *testing.T) {
						newStore := func() history.Store { return historymem.New() }
						stride := func(points int) float64 {
							switch {
							case underRace:
								return spread(points, raceSample)
							case c.example || soaking():
								return 1
							}
							return vectorStride
						}
						tried, all := enumerate(t, c, m, newStore, stride)
						points.n.Add(int64(tried))
						possible.Add(int64(all))
					})
				})
			}
		}
	})
	t.Logf("%d workflows, %d of %d crash points tried", len(cases), points.n.Load(), possible.Load())
	if points.short(500) {
		t.Errorf("only %d points", points.n.Load())
	}
}

// tally counts what the parts of a test tried.
type tally struct {
	offered int          // parts
	taken   atomic.Int64 // parts that -run has not selected away
	n       atomic.Int64
}

// short reports whether less was tried than a test is worth. Whoever selects parts of it wants no more than these.
func (c *tally) short(least int64) bool {
	return int(c.taken.Load()) == c.offered && c.n.Load() < least
}

func TestTally(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		offered  int
		taken, n int64
		short    bool
	}{{0, 0, 0, true}, {9, 9, 499, true}, {9, 9, 500, false}, {9, 1, 372, false}} {
		c := tally{offered: tt.offered}
		c.taken.Store(tt.taken)
		c.n.Store(tt.n)
		if got := c.short(500); got != tt.short {
			t.Errorf("%+v: %v", tt, got)
		}
	}
}

// TestCrashOnSQLite is a sample of the same over real files.
func TestCrashOnSQLite(t *testing.T) {
	t.Parallel()
	limit := 6
	if soaking() {
		limit = 100
	}
	var points tally
	t.Run("files", func(t *testing.T) {
		for _, c := range crashCases(t) {
			if !slices.Contains([]string{"subworkflow.child_asks", "parallel.nested_state", "retries.backoff", "parallel.nested_state/repairs"}, c.name) {
				continue
			}
			for _, m := range crashModes[:2] {
				points.offered++
				t.Run(fmt.Sprintf("%s/%s", c.name, m.mode), func(t *testing.T) {
					points.taken.Add(1)
					t.Parallel()
					dir, files := t.TempDir(), 0
					synctest.Test(t, func(t *testing.T) {
						newStore := func() history.Store {
							files++
							s, err := historysql.Open(t.Context(), filepath.Join(dir, fmt.Sprintf("%d.db", files)), historysql.Options{Synchronous: historysql.Normal})
							if err != nil {
								t.Fatal(err)
							}
							return s
						}
						tried, _ := enumerate(t, c, m, newStore, func(points int) float64 { return spread(points, limit) })
						points.n.Add(int64(tried))
					})
				})
			}
		}
	})
	t.Logf("%d crash points tried", points.n.Load())
	if points.short(20) {
		t.Errorf("only %d points", points.n.Load())
	}
}

// soaking reports whether the long forms are wanted.
func soaking() bool { return os.Getenv("SOAK") != "" }

// spread is the distance between at most limit points that are spread over all of them.
func spread(points, limit int) float64 { return max(1, float64(points)/float64(limit)) }

// enumerate tries points of one workflow in one mode, and returns how many it tried of how many there are. stride is the
// distance between two that are tried; the first is another one for each workflow.
func enumerate(t *testing.T, c *crashCase, m crashMode, newStore func() history.Store, stride func(points int) float64) (tried, all int) {
	want := newTrial(t, c, m, newStore())
	defer want.closeStore()
	want.undisturbed()
	switch {
	case want.run == nil:
		return 0, 0 // a run without a rest cannot be cancelled
	case want.run.ErrorCode == string(problem.WorkflowNotFound), want.run.ErrorCode == string(problem.VersionPinMismatch):
		return 0, 0 // such a run is not failed by a process that took it over, which may be the one that lacks the workflow
	}
	type point struct {
		at int
		w  way
		// again is the operation at which the process that takes over dies, 0 if it does not.
		again int
	}
	var points []point
	for at, call := range want.calls {
		for _, w := range ways {
			if w.late && reading(call) {
				continue // a lookup that is lost before or after it was made is the same
			}
			points = append(points, point{at + 1, w, 0})
			if w.dead && soaking() {
				for again := range 12 {
					points = append(points, point{at + 1, w, again + 1})
				}
			}
		}
	}
	step := stride(len(points))
	first := len(c.name) % max(1, min(int(step), len(points)))
	for i := float64(first); int(i) < len(points); i += step {
		p := points[int(i)]
		got := newTrial(t, c, m, newStore())
		got.disturbed(p.at, p.w, p.again)
		got.compare(want, fmt.Sprintf("operation %d of %d (%s), %s, again at %d", p.at, len(want.calls), want.calls[p.at-1], p.w.name, p.again))
		got.closeStore()
		tried++
	}
	return tried, len(points)
}

func reading(call string) bool {
	switch call {
	case "Append", "PutDefinition", "AcquireLease", "ReleaseLease":
		return false
	}
	return true
}

// trial is one run of a workflow, disturbed or not.
type trial struct {
	t     *testing.T
	c     *crashCase
	m     crashMode
	store history.Store
	fault *historytest.FaultStore
	// calls are the operations of an undisturbed run.
	calls []string
	run   *graph.Run
	// given is the payload that each wait of a person or signal got.
	given map[string]object
	// patience is how long a run is waited for that goes on by itself, before the store is searched for abandoned runs.
	patience time.Duration
	// cancelled says that the run was told to end.
	cancelled bool

	mu sync.Mutex
	// keys are the idempotency keys that executors and host were called with; wrong is what they saw that must not be.
	keys  map[string]bool
	wrong []string
}

const (
	crashRun = "r"
	// leaseTTL is short, so that a process that has died is away for less than activities may take.
	leaseTTL = 2 * time.Second
)

func newTrial(t *testing.T, c *crashCase, m crashMode, store history.Store) *trial {
	return &trial{
		t: t, c: c, m: m, store: store, fault: historytest.NewFaultStore(store),
		given: map[string]object{}, keys: map[string]bool{}, patience: leaseTTL,
	}
}

func (x *trial) runner(store history.Store) *graph.Runner {
	x.t.Helper()
	r, err := graph.New(store, graph.Options{
		Activities: activities.ExecutorFunc(x.execute), Delegates: delegate.ExecutorFunc(x.delegate), Workflows: x.c.resolve,
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

func (x *trial) delegate(ctx context.Context, req delegate.Request) (delegate.Result, error) {
	x.called(req.ExecutionID, req.NodeID, req.Visit, req.Attempt, req.IdempotencyKey)
	if err := x.take(ctx, req.NodeID); err != nil {
		return delegate.Result{}, err
	}
	return delegate.Mock{}.Delegate(ctx, req)
}

// take lets the time of an activity pass.
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

// called notes that an attempt is performed, and looks whether it may be: its request is recorded, its outcome is not.
func (x *trial) called(id, node string, visit, attempt int, key string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.keys[key] = true
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

func (x *trial) records(id string) []history.Record {
	rs, err := x.store.Read(context.Background(), id, 1, 0)
	if err != nil {
		x.t.Errorf("Read: %v", err)
	}
	return rs
}

// undisturbed drives the run to its end and notes what was asked of the store.
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

// disturbed drives the run with a fault, and with a second one in the life after it unless again is 0.
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
	if err == nil { // what a crash has left over besides the run itself
		for clean := 0; clean < 2; clean++ { // the first may be what fails
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

// nextLife drives until the store has died, and gives the runner of the process that comes after.
func (x *trial) nextLife(r *graph.Runner) *graph.Runner {
	x.t.Helper()
	x.driveUntilDeath(r)
	x.close(r)
	time.Sleep(2 * leaseTTL)
	x.fault.Revive()
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

// drive plays host and people until the run has ended. Calls that fail are made again, as a host does.
func (x *trial) drive(r *graph.Runner) (*graph.Run, error) {
	ctx := x.t.Context()
	var run *graph.Run
	_, err := r.Recover(ctx, graph.RecoverRequest{}) // as a server does that starts
	for range 4000 {
		if run == nil {
			run, err = r.Start(ctx, graph.StartRequest{ExecutionID: crashRun, Definition: x.c.doc, Input: x.c.input, AllowExisting: true})
		} else {
			seen := run.Seq
			run, err = x.next(ctx, r, run)
			if run != nil && run.Seq == seen && run.Status == machine.Running {
				x.patience = min(2*x.patience, time.Hour)
				_, err = r.Recover(ctx, graph.RecoverRequest{}) // what a server's watch does by itself
			} else {
				x.patience = leaseTTL
			}
		}
		if err == nil && run != nil && run.Status.Terminal() {
			return run, nil
		}
		if err == nil {
			continue
		}
		if p, ok := problem.As(err); !ok || errors.Is(err, problem.RunnerClosed) || p.Code != problem.Internal && !x.fault.Struck() {
			return nil, err
		}
		time.Sleep(time.Second)
		if again, serr := r.Status(ctx, graph.StatusRequest{ExecutionID: crashRun}); serr == nil {
			run = again
			if run.Status.Terminal() {
				return run, nil
			}
		}
	}
	return nil, fmt.Errorf("the run does not end: %v, %v", run, err)
}

// next does what a run waits for first.
func (x *trial) next(ctx context.Context, r *graph.Runner, run *graph.Run) (*graph.Run, error) {
	var p *graph.Pending
	for i := range run.Pending {
		if k := run.Pending[i].Kind; run.Pending[i].Host || k == machine.WaitInterrupt || k == machine.WaitSignal {
			p = &run.Pending[i]
			break
		}
	}
	if x.m.cancel && (p != nil || x.cancelled) {
		x.cancelled = true
		return r.Cancel(ctx, graph.CancelRequest{ExecutionID: crashRun, Reason: "enough"})
	}
	if p == nil {
		limit := 20_000 * time.Hour // more than any timer
		if run.Status == machine.Running {
			limit = x.patience
		} else if !soaking() {
			sleepUntilDue(run)
		}
		return r.Status(ctx, graph.StatusRequest{ExecutionID: crashRun, Wait: graph.Wait{Set: true, Limit: limit}})
	}
	switch p.Kind {
	case machine.WaitInterrupt:
		return x.give(p.ID, payloads(x.c.answers, p.ResumeSchema), func(payload object) (*graph.Run, error) {
			return r.Resume(ctx, graph.ResumeRequest{ExecutionID: p.ExecutionID, Payload: payload})
		})
	case machine.WaitSignal:
		return x.give(p.ID, payloads(x.c.signals[p.SignalName], nil), func(payload object) (*graph.Run, error) {
			return r.Signal(ctx, graph.SignalRequest{ExecutionID: p.ExecutionID, Name: p.SignalName, Payload: payload})
		})
	}
	return x.submit(ctx, r, p)
}

// sleepUntilDue sleeps through a long wait of a run. A status call that waits for the timer instead reads the run again and
// again, which would be most of the operations of such a run.
func sleepUntilDue(run *graph.Run) {
	var due time.Time
	for _, p := range run.Pending {
		if due.IsZero() || !p.Due.IsZero() && p.Due.Before(due) {
			due = p.Due
		}
	}
	if wait := time.Until(due); wait > time.Minute {
		time.Sleep(wait)
	}
}

// give tries payloads until one is taken. A wait that was given one gets the same again: the answer may have been lost.
func (x *trial) give(id string, tries []object, call func(object) (*graph.Run, error)) (run *graph.Run, err error) {
	if payload, ok := x.given[id]; ok {
		tries = append([]object{payload}, tries...)
	}
	for _, payload := range tries {
		run, err = call(payload)
		if !errors.Is(err, problem.InvalidResumePayload) && !errors.Is(err, problem.SignalValidationError) {
			x.given[id] = payload
			break
		}
	}
	if run != nil && run.ExecutionID != crashRun {
		return nil, err // a subworkflow's answer; status says where the root stands
	}
	return run, err
}

func (x *trial) submit(ctx context.Context, r *graph.Runner, p *graph.Pending) (*graph.Run, error) {
	x.called(p.ExecutionID, p.NodeID, p.Visit, p.Attempt, p.IdempotencyKey)
	req := graph.SubmitRequest{
		ExecutionID: p.ExecutionID, NodeID: p.NodeID, Span: p.Span, OK: true, IdempotencyKey: p.IdempotencyKey, CorrelationID: p.CorrelationID,
	}
	if p.Kind == machine.WaitDelegate {
		res, err := delegate.Mock{}.Delegate(ctx, delegate.Request{Protocol: p.Protocol, Input: p.DelegateInput, CorrelationID: p.CorrelationID})
		if err != nil {
			return nil, err
		}
		req.Result, _ = res.Output.(object)
	} else {
		res, err := x.c.outcome(p.NodeID, nil, p.Attempt)
		req.OK = err == nil
		if failure, ok := errors.AsType[*activities.Failure](err); ok {
			req.Error, req.Code = failure.Message, failure.Code
		} else if req.Result, ok = res.Output.(object); !ok && res.Output != nil {
			req.Result = object{"value": res.Output}
		}
	}
	run, err := r.SubmitActivity(ctx, req)
	if errors.Is(err, problem.SubmitValidationError) { // the state does not take it: the host gives up
		req.OK, req.Result, req.Error, req.Code = false, nil, "not accepted", "NO"
		run, err = r.SubmitActivity(ctx, req)
	}
	if run != nil && run.ExecutionID != crashRun {
		return nil, err
	}
	return run, err
}

// check looks at everything in the store: no gaps, one end, each outcome once.
func (x *trial) check(at string) {
	x.t.Helper()
	for _, w := range x.wrong {
		x.t.Errorf("%s: %s", at, w)
	}
	x.verify(at)
	for id, e := range x.executions() {
		rs := x.records(id)
		ends, once := 0, map[string]bool{}
		for i, r := range rs {
			if r.Seq != int64(i+1) {
				x.t.Errorf("%s: %s: record %d has seq %d", at, id, i+1, r.Seq)
			}
			p := r.Payload
			fact := fmt.Sprintf("%s %s#%d", r.Name, p.NodeID, max(p.Visit, 1))
			switch r.Name {
			case history.ExecutionCompleted, history.ExecutionFailed, history.ExecutionCancelled:
				ends++
				if i != len(rs)-1 {
					x.t.Errorf("%s: %s: %s is followed by %s", at, id, r.Name, rs[i+1].Name)
				}
				continue
			case history.ActivityRequested, history.ActivityFailed:
				fact += fmt.Sprint(".", max(p.Attempt, 1))
			case history.ActivityCompleted, history.InterruptResumed, history.SignalReceived, history.TimerFired, history.SubworkflowStarted, history.SubworkflowCompleted:
			default:
				continue
			}
			if once[fact] {
				x.t.Errorf("%s: %s: %s is recorded twice", at, id, fact)
			}
			once[fact] = true
		}
		if ends != 1 || !e.Phase.Terminal() || e.Seq != int64(len(rs)) {
			x.t.Errorf("%s: %s has %d ends, phase %s, seq %d of %d", at, id, ends, e.Phase, e.Seq, len(rs))
		}
	}
	if due, err := x.store.DueTimers(context.Background(), time.Now().Add(1e6*time.Hour), 0); err != nil || len(due) > 0 {
		x.t.Errorf("%s: timers are left: %v, %v", at, due, err)
	}
}

func (x *trial) executions() map[string]history.Execution {
	page, err := x.store.List(context.Background(), history.ListQuery{Limit: 100})
	if err != nil {
		x.t.Error(err)
	}
	all := map[string]history.Execution{}
	for _, e := range page.Executions {
		all[e.ID] = e
	}
	return all
}

// compare holds a disturbed run against the undisturbed one.
func (x *trial) compare(want *trial, at string) {
	x.t.Helper()
	if x.run == nil {
		x.t.Errorf("%s: no end\n%s", at, x.text(crashRun, ""))
		return
	}
	x.check(at)
	a, b := x.run, want.run
	if a.Status != b.Status || !jsonvalue.Equal(a.FinalState, b.FinalState) || !jsonvalue.Equal(a.Result, b.Result) || a.Error != b.Error || a.ErrorCode != b.ErrorCode {
		x.t.Errorf("%s: ended %s %v %v %q, want %s %v %v %q\n%s", at, a.Status, a.FinalState, a.Result, a.Error, b.Status, b.FinalState, b.Result, b.Error, x.text(crashRun, ""))
	}
	for key := range x.keys {
		if !want.keys[key] {
			x.t.Errorf("%s: performed %s, which nobody asked for", at, key)
		}
	}
	if len(x.keys) != len(want.keys) && !x.m.cancel { // a cancel may come before what was to be performed again
		x.t.Errorf("%s: performed %v, want %v", at, slices.Sorted(maps.Keys(x.keys)), slices.Sorted(maps.Keys(want.keys)))
	}
	runs, wanted := x.executions(), want.executions()
	if !x.m.cancel && !slices.Equal(slices.Sorted(maps.Keys(runs)), slices.Sorted(maps.Keys(wanted))) {
		x.t.Errorf("%s: runs %v, want %v", at, slices.Sorted(maps.Keys(runs)), slices.Sorted(maps.Keys(wanted)))
	}
	for id := range wanted {
		if x.m.cancel { // how far a run has come by then hangs on the time
			if e, begun := runs[id]; begun && e.Phase != wanted[id].Phase {
				x.t.Errorf("%s: %s is %s, want %s", at, id, runs[id].Phase, wanted[id].Phase)
			}
			continue
		}
		if got, want := x.text(id, history.Command), want.text(id, history.Command); got != want {
			x.t.Errorf("%s: %s: commands\n%s\nwant\n%s", at, id, got, want)
		}
		got, want := strings.Split(x.text(id, history.Event), "\n"), strings.Split(want.text(id, history.Event), "\n")
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			x.t.Errorf("%s: %s: events\n%s\nwant\n%s", at, id, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
}

// text writes the records of a run, one a line, without what depends on the time.
func (x *trial) text(id string, kind history.Kind) string {
	var lines []string
	for _, r := range x.records(id) {
		if kind != "" && r.Kind != kind {
			continue
		}
		p := r.Payload
		lines = append(lines, fmt.Sprintf("%s %s#%d.%d %s%s %v %s", r.Name, p.NodeID, p.Visit, p.Attempt, p.BranchName, p.Reason, p.Winners, p.Code))
	}
	return strings.Join(lines, "\n")
}
