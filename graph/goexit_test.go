package graph_test

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historymem"
)

// faults are the ways in which a function of the embedder does not return.
var faults = map[string]func(){
	"goexit": runtime.Goexit,
	"panic":  func() { panic("no luck") },
}

// eachFault runs a test for each of them, in a bubble.
func eachFault(t *testing.T, f func(t *testing.T, fault func())) {
	t.Helper()
	t.Parallel()
	for name, fault := range faults {
		t.Run(name, func(t *testing.T) { synctest.Test(t, func(t *testing.T) { f(t, fault) }) })
	}
}

// unreturning is a delegate executor that does not return, at once or when the task is polled.
type unreturning struct {
	fault func()
	tasks bool
}

func (f unreturning) Execute(context.Context, activities.Request) (activities.Result, error) {
	f.fault()
	return activities.Result{}, nil
}

func (f unreturning) Capabilities(activities.Node) activities.Capabilities {
	if !f.tasks {
		return activities.Capabilities{}
	}
	return activities.Capabilities{Tasks: f}
}

func (f unreturning) Send(context.Context, activities.Request) (activities.Task, error) {
	return activities.Task{ID: "t", PollAfter: time.Second}, nil
}

func (f unreturning) Poll(context.Context, activities.Request, activities.TaskRef) (activities.Task, error) {
	f.fault()
	return activities.Task{}, nil
}

func (f unreturning) Answer(context.Context, activities.Request, activities.TaskRef, map[string]any) (activities.Task, error) {
	return activities.Task{}, nil
}

func (f unreturning) Cancel(context.Context, activities.Request, activities.TaskRef) error {
	f.fault()
	return nil
}

// hasty is an executor that does not return when it is asked whether it answers at once.
type hasty struct {
	script
	fault func()
}

func (h *hasty) Capabilities(activities.Node) activities.Capabilities {
	h.fault()
	return activities.Capabilities{Immediate: true}
}

// TestAnExecutorThatEndsItsGoroutineFailsItsAttempt has executors that call runtime.Goexit, as t.FailNow does, or panic: first, as a
// second node, in one of two branches, after a while, at an agent. What the run goes on with is performed, and Close returns.
func TestAnExecutorThatEndsItsGoroutineFailsItsAttempt(t *testing.T) {
	branches := workflow(t, "branches", []string{startNode(), fork("f", "all", "a", "b"), tool("a"), tool("b"), endNode()}, "s f", "f e", "a e", "b e")
	agent := workflow(t, "agent", []string{startNode(), delegateNode("a"), endNode()}, "s a", "a e")
	retried := workflow(t, "retried", []string{startNode(),
		tool("a", `"retry":{"max_attempts":2,"initial_interval":"1s"}`), tool("b"), endNode()}, "s a", "a b", "b e")
	eachFault(t, func(t *testing.T, fault func()) {
		for name, tt := range map[string]struct {
			definition *definition.Document
			delegates  activities.Executor
			failing    string
			slow       time.Duration
			status     machine.Status
			calls      int
		}{
			"first":  {definition: linear(t, "x", "a", "b"), failing: "a", status: machine.Failed, calls: 1},
			"second": {definition: linear(t, "x", "a", "b"), failing: "b", status: machine.Failed, calls: 2},
			"branch": {definition: branches, failing: "b", status: machine.Failed, calls: 2},
			"slow":   {definition: linear(t, "x", "a"), failing: "a", slow: time.Second, status: machine.Failed, calls: 1},
			"retry":  {definition: retried, failing: "a", status: machine.Completed, calls: 3},
			"agent":  {definition: agent, delegates: unreturning{fault, false}, status: machine.Failed},
			"poll":   {definition: agent, delegates: unreturning{fault, true}, status: machine.Failed},
		} {
			failed := false
			exec := &script{answers: answers{tt.failing: func(context.Context, activities.Request) (any, error) {
				time.Sleep(tt.slow)
				if tt.status == machine.Failed || !failed {
					failed = true
					fault()
				}
				return nil, nil
			}}}
			store := historymem.New()
			r := newRunner(t, store, graph.Options{Activities: exec, Delegates: tt.delegates})
			if _, err := r.Start(t.Context(), graph.StartRequest{ExecutionID: "r", Definition: tt.definition, Wait: waitFor(0)}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Hour)
			run := status(t, r, "r")
			if run.Status != tt.status {
				t.Fatalf("%s: the run is %s", name, run.Status)
			}
			if tt.status == machine.Failed && run.ErrorCode != string(problem.ExecutorPanic) || exec.count() != tt.calls {
				t.Errorf("%s: code %q after %d calls", name, run.ErrorCode, exec.count())
			}
			closeRunner(t, r)
		}
	})
}

// TestAnExecutorThatDoesNotSayWhetherItAnswersAtOnce is called like one that does not.
func TestAnExecutorThatDoesNotSayWhetherItAnswersAtOnce(t *testing.T) {
	branches := workflow(t, "branches", []string{startNode(), fork("f", "all", "a", "b"), tool("a"), tool("b"), endNode()}, "s f", "f e", "a e", "b e")
	eachFault(t, func(t *testing.T, fault func()) {
		exec := &hasty{fault: fault}
		r := newRunner(t, historymem.New(), graph.Options{Activities: exec})
		wantStatus(t, start(t, r, "r", branches, nil), machine.Completed)
		if exec.count() != 2 {
			t.Errorf("%d calls", exec.count())
		}
	})
}

// unsure is an executor that does not return when it is asked what it performs.
type unsure struct {
	script
	fault func()
}

func (u *unsure) Capabilities(activities.Node) activities.Capabilities {
	u.fault()
	return activities.Capabilities{}
}

// TestAnExecutorThatDoesNotSayWhatItPerforms takes nothing over, and another process does.
func TestAnExecutorThatDoesNotSayWhatItPerforms(t *testing.T) {
	eachFault(t, func(t *testing.T, fault func()) {
		store := historymem.New()
		first := newRunner(t, store, graph.Options{Activities: &script{answers: answers{"a": hang}}})
		if _, err := first.Start(t.Context(), graph.StartRequest{ExecutionID: "r", Definition: linear(t, "lin", "a"), Wait: waitFor(0)}); err != nil {
			t.Fatal(err)
		}
		closeRunner(t, first)
		exec := &unsure{fault: fault}
		r := newRunner(t, store, graph.Options{Activities: exec, Work: graph.WorkAll})
		time.Sleep(time.Minute)
		if run := status(t, r, "r"); run.Status != machine.Running || run.Lacks == nil || exec.count() != 0 {
			t.Errorf("%s, lacks %+v, after %d calls", run.Status, run.Lacks, exec.count())
		}
		newRunner(t, store, graph.Options{Activities: &script{}, Work: graph.WorkAll})
		time.Sleep(time.Minute)
		wantStatus(t, status(t, r, "r"), machine.Completed)
	})
}

// resolve makes a Resolver of a function.
type resolve func() (*definition.Document, error)

func (f resolve) ResolveWorkflow(context.Context, string, string) (*definition.Document, error) {
	return f()
}

// TestAResolverThatDoesNotReturnAWorkflow fails the node of a run that was started here, and leaves any other to processes that know
// the workflow. The same holds for the function that verifies definitions.
func TestAResolverThatDoesNotReturnAWorkflow(t *testing.T) {
	parent := workflow(t, "w", []string{startNode(), subworkflow("sub", "urn:child"), endNode()}, "s sub", "sub e")
	child := linear(t, "child", "a")
	eachFault(t, func(t *testing.T, fault func()) {
		for name, o := range map[string]graph.Options{
			"resolver": {Workflows: resolve(func() (*definition.Document, error) { fault(); return nil, nil })},
			"verifier": {
				Workflows: resolve(func() (*definition.Document, error) { return child, nil }),
				VerifyDefinition: func(d *definition.Document) error {
					if d == child {
						fault()
					}
					return nil
				},
			},
		} {
			o.Activities, o.Work = &script{}, graph.WorkAll
			r := newRunner(t, historymem.New(), o)
			if _, err := r.Start(t.Context(), graph.StartRequest{ExecutionID: "r", Definition: parent, Wait: waitFor(0)}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Minute)
			run := status(t, r, "r")
			wantStatus(t, run, machine.Failed)
			if run.ErrorCode != string(problem.WorkflowNotFound) {
				t.Errorf("%s: code %q", name, run.ErrorCode)
			}
			closeRunner(t, r)
		}
		store := historymem.New()
		bereft(t, store, workflow(t, "w", []string{startNode(), tool("a"), subworkflow("sub", "urn:child"), endNode()}, "s a", "a sub", "sub e"))
		r := newRunner(t, store, graph.Options{Activities: &script{}, Work: graph.WorkAll, Workflows: resolve(func() (*definition.Document, error) { fault(); return nil, nil })})
		time.Sleep(time.Hour)
		if run := status(t, r, "r"); run.Status.Terminal() || run.Lacks == nil {
			t.Errorf("%s, lacks %+v", run.Status, run.Lacks)
		}
		_, err := newRunner(t, historymem.New(), graph.Options{VerifyDefinition: func(*definition.Document) error { fault(); return nil }}).
			Start(t.Context(), graph.StartRequest{Definition: child})
		if err == nil {
			t.Error("a definition that could not be verified was taken")
		}
	})
}

// TestAHookThatDoesNotReturn is called again with the next records, and the run goes on.
func TestAHookThatDoesNotReturn(t *testing.T) {
	eachFault(t, func(t *testing.T, fault func()) {
		seen := 0
		r := newRunner(t, historymem.New(), graph.Options{Activities: &script{}, OnRecord: func(e graph.RecordEvent) {
			seen += len(e.Records)
			fault()
		}})
		wantStatus(t, start(t, r, "r", linear(t, "x", "a", "b"), nil), machine.Completed)
		closeRunner(t, r)
		if seen < 10 {
			t.Errorf("%d records", seen)
		}
	})
}

// TestAClockThatDoesNotReturn is replaced by the process's.
func TestAClockThatDoesNotReturn(t *testing.T) {
	eachFault(t, func(t *testing.T, fault func()) {
		r := newRunner(t, historymem.New(), graph.Options{Activities: &script{}, Now: func() time.Time { fault(); return time.Time{} }})
		wantStatus(t, start(t, r, "r", linear(t, "x", "a"), nil), machine.Completed)
	})
}

// TestACallersOwnCallbackIsTheCallers: what is called in the goroutine of a call may panic or end it, as far as the caller lets it; the
// Runner goes on, and closes.
func TestACallersOwnCallbackIsTheCallers(t *testing.T) {
	eachFault(t, func(t *testing.T, fault func()) {
		store := historymem.New()
		other := newRunner(t, store, graph.Options{Activities: &script{answers: answers{"a": after(time.Minute, nil)}}})
		if _, err := other.Start(t.Context(), graph.StartRequest{ExecutionID: "r", Definition: linear(t, "x", "a"), Wait: waitFor(0)}); err != nil {
			t.Fatal(err)
		}
		r := newRunner(t, store, graph.Options{Activities: &script{}, NewID: func() string { fault(); return "" }})
		calls := map[string]func(){
			"OwnedElsewhere": func() {
				_, _ = r.Drive(context.Background(), graph.DriveRequest{ExecutionID: "r", OwnedElsewhere: func(graph.OwnedRun) { fault() }})
			},
			"Progress": func() {
				_, _ = other.Status(context.Background(), graph.StatusRequest{ExecutionID: "r", Wait: &graph.Wait{Limit: time.Minute, Progress: func(graph.Progress) { fault() }}})
			},
			"NewID": func() { _, _ = r.Start(context.Background(), graph.StartRequest{Definition: linear(t, "y")}) },
		}
		for name, call := range calls {
			returned, done := false, make(chan struct{})
			go func() {
				defer close(done)
				defer func() { _ = recover() }()
				call()
				returned = true
			}()
			<-done
			if returned {
				t.Errorf("%s: the call returned", name)
			}
		}
		time.Sleep(time.Hour)
		wantStatus(t, status(t, r, "r"), machine.Completed)
		if n := count(records(t, store, "r"), history.ActivityCompleted); n != 1 {
			t.Error(fmt.Sprint(n, " outcomes"))
		}
		closeRunner(t, r)
		closeRunner(t, other)
	})
}
