package temporal

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	enums "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
	sdk "go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	visibility "go.temporal.io/api/workflow/v1"

	"github.com/workflows-engine/workflows-engine/history"
)

// testBackend is a service over the environments of the SDK's test suite, one for each root run. Time passes in an environment only while a
// call waits: its main loop stands still between calls.
type testBackend struct {
	o     *Options
	p     *performer
	w     *walker
	suite testsuite.WorkflowTestSuite

	mu   sync.Mutex
	runs map[string]*testRun
	// order are the roots in the order of their start.
	order []string
	// last is the run whose clock the engine reads.
	last *testRun
	// suggest makes runs continue as new once.
	suggest bool
	// events is the length of the event history of the first part of a run.
	events int
	// noTurn makes attempts with a queue_timeout wait until it is over.
	noTurn bool
	// noWorker makes queries fail as they do without a worker.
	noWorker bool
	began    time.Time
}

// newTestEngine returns an engine with workers in the environments of the test suite.
func newTestEngine(t testing.TB, o Options) (*Engine, *testBackend) {
	t.Helper()
	o, err := o.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	b := &testBackend{o: &o, runs: map[string]*testRun{}, began: time.Now().Truncate(time.Millisecond)}
	b.suite.SetLogger(log.NewStructuredLogger(o.Logger))
	e := newEngine(o, b)
	b.p = e.performer
	b.p.past, b.p.turns = activityPast{b}, activityPast{b}
	b.w = &walker{trust: trust(&o, e.library)}
	return e, b
}

// testRun is a root run in its environment.
type testRun struct {
	b   *testBackend
	in  runInput
	o   startOptions
	id  string
	env *testsuite.TestWorkflowEnvironment
	// jobs are given to the main loop while it stands still; parked is signalled when it does.
	jobs   chan func() (leave bool)
	parked chan struct{}
	// over is closed when the workflow has ended.
	over     chan struct{}
	result   *snapshot
	err      error
	failed   any
	children []runInput
	letters  []letter
	now      time.Time
	parts    int
	queues   []string
}

// begin runs the workflow, or its next part, in a new environment.
func (r *testRun) begin(in runInput) {
	r.parts++
	env := r.b.suite.NewTestWorkflowEnvironment()
	r.env, r.jobs, r.parked, r.over, r.result, r.err = env, make(chan func() bool), make(chan struct{}, 1), make(chan struct{}), nil, nil
	env.SetStartTime(r.now)
	env.SetTestTimeout(20 * time.Second)
	env.SetWorkerOptions(worker.Options{DeadlockDetectionTimeout: deadlockTime})
	env.SetStartWorkflowOptions(client.StartWorkflowOptions{ID: r.id, TaskQueue: r.o.queue})
	register(env, r.b.w, r.b.p)
	registerShared(env, r.b.p)
	registerWebhooks(env, r.b.p)
	if r.b.noTurn {
		late := sdk.NewTimeoutError(enums.TIMEOUT_TYPE_SCHEDULE_TO_START, nil)
		env.OnActivity(activityPerform, mock.Anything, mock.Anything).Return(performed{}, late)
	}
	env.SetContinueAsNewSuggested(r.b.suggest && r.parts == 1)
	if r.parts == 1 {
		env.SetCurrentHistoryLength(r.b.events)
	}
	env.SetOnActivityStartedListener(func(info *workflowActivityInfo, _ context.Context, _ converterValues) {
		r.queues = append(r.queues, info.TaskQueue)
	})
	env.SetOnChildWorkflowStartedListener(func(info *workflow.Info, _ workflow.Context, args converterValues) {
		if info.WorkflowType.Name == OutboxType {
			var l letter
			if err := args.Get(&l); err != nil {
				panic(err)
			}
			r.letters = append(r.letters, l)
			return
		}
		var in runInput
		if err := args.Get(&in); err != nil {
			panic(err)
		}
		r.children = append(r.children, in)
	})
	env.RegisterDelayedCallback(r.park, 0)
	go func() {
		defer close(r.over)
		defer func() { r.failed = recover() }()
		env.ExecuteWorkflow(WorkflowType, in)
		r.now = env.Now()
		if r.err = env.GetWorkflowError(); r.err == nil {
			var s snapshot
			if r.err = env.GetWorkflowResult(&s); r.err == nil {
				r.result = &s
			}
		}
	}()
	r.stand()
	for n := 0; n < 3 && r.env == env; n++ { // until the workflow has begun
		r.sleep(time.Nanosecond)
	}
}

// sleep lets time pass.
func (r *testRun) sleep(d time.Duration) {
	r.do(func() bool {
		r.env.RegisterDelayedCallback(r.park, d)
		return true
	})
}

// stand waits until the main loop stands still or the workflow has ended. A run that continues as new goes on in another environment.
func (r *testRun) stand() {
	select {
	case <-r.parked:
	case <-r.over:
		if r.failed != nil {
			panic(r.failed)
		}
		var next *workflow.ContinueAsNewError
		if errors.As(r.err, &next) {
			var in runInput
			if err := decodePayloads(next.Input, &in); err != nil {
				panic(err)
			}
			r.begin(in)
		}
	}
}

// park makes the main loop stand still, and do jobs, until one lets it go on. It runs in the main loop.
func (r *testRun) park() {
	r.now = r.env.Now()
	r.parked <- struct{}{}
	for job := range r.jobs {
		if job() {
			return
		}
		r.parked <- struct{}{}
	}
}

// do gives a job to the main loop and waits until it stands still again. It reports whether the workflow had ended before.
func (r *testRun) do(job func() (leave bool)) (ended bool) {
	select {
	case <-r.over:
		return true
	case r.jobs <- job:
		r.stand()
		return false
	}
}

func (r *testRun) ended() bool {
	select {
	case <-r.over:
		return true
	default:
		return false
	}
}

func (b *testBackend) find(id string) *testRun {
	b.mu.Lock()
	defer b.mu.Unlock()
	root, _, _ := strings.Cut(id, history.ChildMark)
	r := b.runs[root]
	if r != nil {
		b.last = r
	}
	return r
}

func (b *testBackend) start(ctx context.Context, in runInput, o startOptions, limit time.Duration) (*snapshot, error) {
	id := in.Config.ExecutionID
	b.mu.Lock()
	if b.runs[id] != nil {
		b.mu.Unlock()
		return nil, errStarted
	}
	r := &testRun{b: b, in: in, o: o, id: id, now: b.began}
	b.runs[id], b.last = r, r
	b.order = append(b.order, id)
	b.mu.Unlock()
	if err := roundTrip(&in); err != nil {
		return nil, err
	}
	r.begin(in)
	if limit <= 0 && in.Continued != nil && !r.ended() { // an imported run is read next: until it listens
		_, _ = b.update(ctx, id, call{}, nil)
	}
	if limit <= 0 || r.ended() {
		return nil, nil
	}
	return b.update(ctx, id, call{Wait: limit}, nil)
}

func (b *testBackend) update(_ context.Context, id string, c call, accepted func()) (*snapshot, error) {
	r := b.find(id)
	if r == nil {
		return nil, serviceerror.NewNotFound("unknown")
	}
	u := &testUpdate{r: r, accepted: accepted}
	var err error
	ended := r.do(func() bool {
		if id == r.id {
			r.env.UpdateWorkflow(updateCall, "", u, c)
			return true
		}
		err = r.env.UpdateWorkflowByID(id, updateCall, fmt.Sprint(time.Now().UnixNano()), u, c)
		return err == nil
	})
	switch {
	case ended:
		return nil, serviceerror.NewNotFound("workflow execution already completed")
	case err != nil:
		return nil, err
	case u.err != nil:
		return nil, u.err
	case !u.done:
		return nil, nil // the run has continued as new
	}
	s, ok := u.result.(snapshot)
	if !ok {
		return nil, fmt.Errorf("the update has the result %T", u.result)
	}
	return &s, nil
}

// testUpdate receives the outcome of an update in the main loop.
type testUpdate struct {
	r        *testRun
	accepted func()
	done     bool
	result   any
	err      error
}

func (u *testUpdate) Accept() {
	if u.accepted != nil {
		u.accepted()
	}
}

func (u *testUpdate) Reject(err error) {
	u.err, u.done = err, true
	u.r.later()
}

func (u *testUpdate) Complete(result any, err error) {
	u.result, u.err, u.done = result, err, true
	u.r.later()
}

// later makes the main loop stand still after the callbacks that are waiting now.
func (r *testRun) later() { r.env.RegisterDelayedCallback(r.park, 0) }

func (b *testBackend) query(_ context.Context, id, name string, arg, answer any) (ended bool, err error) {
	for n := 0; ; n++ {
		ended, err = b.ask(id, name, arg, answer)
		if r := b.find(id); err == nil || !strings.Contains(err.Error(), notBegun) || n == 1000 || id != r.id {
			return ended, err
		} else if !r.ended() { // its next part is about to begin
			r.sleep(time.Nanosecond)
		}
	}
}

// notBegun is the error of a workflow that answers no queries yet.
const notBegun = "not begun"

func (b *testBackend) ask(id, name string, arg, answer any) (bool, error) {
	r := b.find(id)
	switch {
	case r == nil:
		return false, serviceerror.NewNotFound("unknown")
	case b.noWorker:
		return false, serviceerror.NewFailedPrecondition("no poller seen for task queue recently, worker may be down")
	}
	var args []any
	if arg != nil {
		args = []any{arg}
	}
	var err error
	ask := func() bool {
		defer func() {
			if recover() != nil { // the workflow of a subworkflow has not begun
				err = serviceerror.NewNotFound(notBegun)
			}
		}()
		var v valueGetter
		if id == r.id {
			v, err = r.env.QueryWorkflow(name, args...)
		} else {
			v, err = r.env.QueryWorkflowByID(id, name, args...)
		}
		if err == nil {
			err = v.Get(answer)
		} else if strings.Contains(err.Error(), "unknown queryType") {
			err = serviceerror.NewNotFound(notBegun)
		}
		return false
	}
	if r.do(ask) {
		if name == queryView && id == r.id {
			return true, nil
		}
		ask()
	}
	if s, ok := answer.(*snapshot); ok && err == nil && s.Ending != nil {
		return true, nil
	}
	return false, err
}

// activityPast reads records for activities: the main loop does not stand still while they run.
type activityPast struct{ b *testBackend }

func (p activityPast) Execution(context.Context, string) (history.Execution, error) {
	return history.Execution{}, nil
}

func (p activityPast) Read(_ context.Context, id string, from int64, limit int) (records []history.Record, err error) {
	r, done := p.b.find(id), make(chan recordsPage, 1)
	r.env.RegisterDelayedCallback(func() {
		var page recordsPage
		v, err := r.env.QueryWorkflow(queryRecords, recordsQuery{From: from, Limit: limit})
		if err == nil {
			err = v.Get(&page)
		}
		if err != nil {
			panic(err)
		}
		done <- page
	}, 0)
	page := <-done
	if archive := p.b.o.Archive; archive != nil && from < page.First {
		if records, err = archive.Archived(context.Background(), id, from, limit); err != nil {
			return nil, err
		}
	}
	for i := range page.Records {
		record, err := page.Records[i].Record(id)
		if err != nil {
			return nil, err
		}
		records = append(records, record)
	}
	return records, nil
}

// turn implements turns.
func (p activityPast) turn(_ context.Context, id, turn, updateID string) (a attempt, err error) {
	r, done := p.b.find(id), make(chan *testUpdate, 1)
	u := &turnUpdate{done: done}
	r.env.RegisterDelayedCallback(func() {
		if id == r.id {
			r.env.UpdateWorkflow(updateTurn, updateID, u, turn)
		} else if err := r.env.UpdateWorkflowByID(id, updateTurn, updateID, u, turn); err != nil {
			u.Reject(err)
		}
	}, 0)
	got := <-done
	a, _ = got.result.(attempt)
	return a, got.err
}

// turnUpdate receives the outcome of the update awp.turn.
type turnUpdate struct{ done chan *testUpdate }

func (u *turnUpdate) Accept()          {}
func (u *turnUpdate) Reject(err error) { u.done <- &testUpdate{err: err} }
func (u *turnUpdate) Complete(result any, err error) {
	u.done <- &testUpdate{result: result, err: err}
}

func (b *testBackend) end(_ context.Context, id string) (*closed, error) {
	r := b.find(id)
	if r == nil {
		return nil, serviceerror.NewNotFound("unknown")
	}
	if id == r.id && r.ended() {
		if r.result == nil {
			return nil, r.err
		}
		return &closed{result: r.result, info: b.entry(id)}, nil
	}
	if b.noWorker {
		return &closed{open: true, info: b.info(id)}, nil
	}
	var s snapshot
	ended, err := b.query(context.Background(), id, queryView, nil, &s)
	if err != nil || !ended {
		return &closed{open: true, info: b.entry(id)}, err
	}
	return &closed{result: &s, info: b.entry(id)}, nil
}

func (b *testBackend) list(ctx context.Context, query string, size int, token []byte) (*visibilityPage, error) {
	info := b.info
	if activity.IsActivity(ctx) {
		info = b.entry // the main loop does not stand still
	}
	b.mu.Lock()
	roots := slices.Clone(b.order)
	b.mu.Unlock()
	var ids []string
	for _, id := range roots {
		ids = append(ids, id)
		for _, child := range b.find(id).children {
			ids = append(ids, child.Config.ExecutionID)
		}
	}
	slices.Reverse(ids)
	page := &visibilityPage{}
	after := string(token)
	for _, id := range ids {
		if after != "" {
			if id == after {
				after = ""
			}
			continue
		}
		info := info(id)
		if !selected(query, info) {
			continue
		}
		if len(page.runs) == size {
			page.next = []byte(page.runs[size-1].GetExecution().GetWorkflowId())
			break
		}
		page.runs = append(page.runs, info)
	}
	return page, nil
}

func (b *testBackend) count(ctx context.Context, query string) (int64, error) {
	p, err := b.list(ctx, query, 1_000_000, nil)
	if err != nil {
		return 0, err
	}
	return int64(len(p.runs)), nil
}

// entry returns the entry of a run in visibility as it is at its start.
func (b *testBackend) entry(id string) *visibility.WorkflowExecutionInfo {
	r := b.find(id)
	in := r.in
	for _, child := range r.children {
		if child.Config.ExecutionID == id {
			in = child
		}
	}
	prog, err := b.w.program(&in, in.Definition)
	if err != nil {
		panic(err)
	}
	return infoOf(id, &in, prog)
}

// info returns the entry of a run in visibility.
func (b *testBackend) info(id string) *visibility.WorkflowExecutionInfo {
	info := b.entry(id)
	var s snapshot
	if ended, err := b.query(context.Background(), id, queryView, nil, &s); ended {
		c, _ := b.end(context.Background(), id)
		s, info.Status = *c.result, enums.WORKFLOW_EXECUTION_STATUS_COMPLETED
	} else if err != nil {
		return info
	}
	if exec, err := history.ParseExecution(id, s.Projection); err == nil {
		setPhase(info, exec.Phase)
	}
	return info
}

func (b *testBackend) pollers(context.Context, string) (bool, error) { return true, nil }

// sleep lets time pass in the run that was asked last.
func (b *testBackend) sleep(ctx context.Context, d time.Duration) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	b.mu.Lock()
	r := b.last
	b.mu.Unlock()
	if r == nil {
		return nil
	}
	r.sleep(d)
	return nil
}

func (b *testBackend) now() time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.last == nil {
		return b.began
	}
	return b.last.now
}
