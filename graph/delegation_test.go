package graph_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/graph/view"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historymem"
)

// agent plays remote agents. Its tasks are worked on until the test says how they go on.
type agent struct {
	mu    sync.Mutex
	tasks map[string]*agentTask // by id
	// calls are "send KEY", "poll ID", "answer KEY …" and "cancel ID", in order; polls are only counted.
	calls []string
	polls int
	// down is the error of every call while it is set.
	down error
	// pause is what Task.PollAfter says.
	pause time.Duration
	// onSend, if set, is called while a task is handed over, with the lock.
	onSend func(req activities.Request)
}

type agentTask struct {
	task    activities.Task
	err     error
	answers []map[string]any
}

func (a *agent) Capabilities(activities.Node) activities.Capabilities {
	return activities.Capabilities{Tasks: a}
}

func (a *agent) Execute(context.Context, activities.Request) (activities.Result, error) {
	return activities.Result{}, errors.New("Execute called on an executor with tasks")
}

// Send gives a repeated task its first id, as agents do that know idempotency keys.
func (a *agent) Send(_ context.Context, req activities.Request) (activities.Task, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.calls = append(a.calls, "send "+req.IdempotencyKey)
	if a.onSend != nil {
		a.onSend(req)
	}
	if a.down != nil {
		return activities.Task{}, a.down
	}
	id := "t-" + req.IdempotencyKey
	if a.tasks == nil {
		a.tasks = map[string]*agentTask{}
	}
	if a.tasks[id] == nil {
		a.tasks[id] = &agentTask{task: activities.Task{ID: id, ContextID: "c"}}
	}
	return a.stands(id)
}

func (a *agent) Poll(_ context.Context, _ activities.Request, ref activities.TaskRef) (activities.Task, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.polls++
	if a.down != nil {
		return activities.Task{}, a.down
	}
	return a.stands(ref.ID)
}

func (a *agent) Answer(_ context.Context, req activities.Request, ref activities.TaskRef, answer map[string]any) (activities.Task, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.calls = append(a.calls, "answer "+req.IdempotencyKey)
	if a.down != nil {
		return activities.Task{}, a.down
	}
	k := a.tasks[ref.ID]
	k.answers = append(k.answers, answer)
	k.task.State = activities.TaskWorking
	return a.stands(ref.ID)
}

func (a *agent) Cancel(_ context.Context, _ activities.Request, ref activities.TaskRef) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.calls = append(a.calls, "cancel "+ref.ID)
	return a.down
}

func (a *agent) stands(id string) (activities.Task, error) {
	k := a.tasks[id]
	if k.err != nil {
		return activities.Task{}, k.err
	}
	task := k.task
	task.PollAfter = a.pause
	return task, nil
}

// becomes says how a task stands from now on.
func (a *agent) becomes(key string, task activities.Task) {
	a.mu.Lock()
	defer a.mu.Unlock()
	task.ID = "t-" + key
	a.tasks[task.ID].task = task
}

func (a *agent) fails(key string, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.tasks["t-"+key].err = err
}

func (a *agent) setDown(err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.down = err
}

func (a *agent) said() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return strings.Join(a.calls, ", ")
}

func (a *agent) polled() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.polls
}

func delegation(t testing.TB, members ...string) *definition.Document {
	return workflow(t, "del", []string{startNode(), delegateNode("d", members...), endNode()}, "s d", "d e")
}

// atOnce starts a run without waiting for it, and lets everything happen that happens at once.
func atOnce(t *testing.T, r *graph.Runner, id string, d *definition.Document) {
	t.Helper()
	if _, err := r.Start(t.Context(), graph.StartRequest{ExecutionID: id, Definition: d, Wait: graph.Wait{Limit: graph.NoWait}}); err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
}

func answer(t *testing.T, r *graph.Runner, id, question string, payload object) (*view.Run, error) {
	t.Helper()
	return r.Resume(t.Context(), graph.ResumeRequest{
		ExecutionID: id, InterruptID: question, Payload: payload, Caller: graph.Caller{Wait: graph.Wait{Limit: graph.NoWait}},
	})
}

func TestADelegateTaskIsPolledByTimer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a, store := &agent{}, historymem.New()
		r := newRunner(t, store, graph.Options{Delegates: a})
		atOnce(t, r, "r", delegation(t))
		run := status(t, r, "r")
		wantStatus(t, run, machine.Running)
		if p := run.Pending[0]; p.Kind != machine.WaitDelegate || p.ExternalTaskID != "t-r:d#1.1" || p.Host {
			t.Errorf("pending %+v", p)
		}
		if owner, err := store.Owner(t.Context(), "r"); err != nil || owner.Live() {
			t.Errorf("the run is owned while the agent works: %+v, %v", owner, err)
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		if n, seq := a.polled(), run.Seq; n < 240 || n > 250 || status(t, r, "r").Seq != seq {
			t.Errorf("%d polls in an hour, seq %d then %d", n, seq, status(t, r, "r").Seq)
		}
		a.becomes("r:d#1.1", activities.Task{State: activities.TaskCompleted, Output: object{"patch": "p"}})
		run = settled(t, r, "r")
		wantStatus(t, run, machine.Completed)
		rs := records(t, store, "r")
		done := rs[slices.IndexFunc(rs, func(r history.Record) bool { return r.Name == history.ActivityCompleted })]
		if !sameJSON(run.FinalState, object{"patch": "p"}) || done.Payload.ExternalTask != "t-r:d#1.1" || a.said() != "send r:d#1.1" {
			t.Errorf("%v, %+v, %s", run.FinalState, done.Payload, a.said())
		}
	})
}

// TestADelegateTaskIsAttachedAfterACrash drops the process at each point of a task's life.
func TestADelegateTaskIsAttachedAfterACrash(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a, store := &agent{}, historymem.New()
		var r *graph.Runner
		restart := func() {
			if r != nil {
				if err := r.Close(); err != nil {
					t.Fatal(err)
				}
			}
			var err error
			if r, err = graph.New(store, graph.Options{Delegates: a, Work: graph.WorkAll}); err != nil {
				t.Fatal(err)
			}
		}
		defer func() { _ = r.Close() }()
		restart()
		atOnce(t, r, "r", delegation(t))
		restart()
		time.Sleep(time.Minute)
		synctest.Wait()
		if a.polled() == 0 || a.said() != "send r:d#1.1" {
			t.Fatalf("%d polls, %s", a.polled(), a.said())
		}
		a.becomes("r:d#1.1", activities.Task{State: activities.TaskAsks, Prompt: "Which?"})
		restart()
		time.Sleep(time.Minute)
		synctest.Wait()
		run := status(t, r, "r")
		wantStatus(t, run, machine.Interrupted)
		p := run.Pending[0]
		if p.Prompt != "Which?" || p.ID != "r:d#1.1/1" || p.ExternalTaskID != "t-r:d#1.1" {
			t.Errorf("pending %+v", p)
		}
		restart()
		if _, err := answer(t, r, "r", p.ID, object{"text": "that"}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		restart()
		a.becomes("r:d#1.1", activities.Task{State: activities.TaskCompleted, Output: object{"x": 1}})
		time.Sleep(time.Minute)
		synctest.Wait()
		wantStatus(t, status(t, r, "r"), machine.Completed)
		if got := a.said(); got != "send r:d#1.1, answer r:d#1.1/1" {
			t.Error(got)
		}
	})
}

// TestADelegateTaskIsSentAgainUnderItsKey ends the process between the sending and its record.
func TestADelegateTaskIsSentAgainUnderItsKey(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a, store := &agent{}, historymem.New()
		first := newRunner(t, &faulty{Store: store, left: 1}, graph.Options{Delegates: a})
		atOnce(t, first, "r", delegation(t))
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if n := count(records(t, store, "r"), history.ActivityRequested); n != 1 {
			t.Fatalf("the task was recorded: %d requests", n)
		}
		r := newRunner(t, store, graph.Options{Delegates: a, Work: graph.WorkAll})
		time.Sleep(time.Minute)
		synctest.Wait()
		if got := a.said(); got != "send r:d#1.1, send r:d#1.1" || len(a.tasks) != 1 {
			t.Errorf("%s, %d tasks", got, len(a.tasks))
		}
		a.becomes("r:d#1.1", activities.Task{State: activities.TaskCompleted})
		wantStatus(t, settled(t, r, "r"), machine.Completed)
	})
}

func TestAnAgentThatAsksPausesTheRun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a, store := &agent{}, historymem.New()
		r := newRunner(t, store, graph.Options{Delegates: a})
		atOnce(t, r, "r", delegation(t))
		a.becomes("r:d#1.1", activities.Task{State: activities.TaskAsks, Prompt: "Which file?"})
		run := settled(t, r, "r")
		wantStatus(t, run, machine.Interrupted)
		for what, try := range map[string]func() error{
			"nothing":          func() error { _, err := answer(t, r, "r", "", object{}); return err },
			"another question": func() error { _, err := answer(t, r, "r", "r:d#1.1/2", object{"text": "x"}); return err },
			"no object": func() error {
				_, err := r.Signal(t.Context(), graph.SignalRequest{ExecutionID: "r", Name: "go"})
				if errors.Is(err, problem.SignalNotAwaiting) {
					return problem.New(problem.InvalidResumePayload, "as expected")
				}
				return err
			},
		} {
			unchanged(t, store, func() {
				if err := try(); !errors.Is(err, problem.InvalidResumePayload) {
					t.Errorf("%s: %v", what, err)
				}
			})
		}
		if _, err := answer(t, r, "r", run.Pending[0].ID, object{"text": "go.mod"}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		wantStatus(t, status(t, r, "r"), machine.Running)
		a.becomes("r:d#1.1", activities.Task{State: activities.TaskAsks, Prompt: "Which line?"})
		run = settled(t, r, "r")
		unchanged(t, store, func() {
			if _, err := answer(t, r, "r", "r:d#1.1/1", object{"text": "late"}); !errors.Is(err, problem.InvalidResumePayload) {
				t.Errorf("another answer to a question before: %v", err)
			}
			if run, err := answer(t, r, "r", "r:d#1.1/1", object{"text": "go.mod"}); err != nil || !run.Repeated {
				t.Errorf("the same answer again: %+v, %v", run, err)
			}
		})
		if _, err := answer(t, r, "r", run.Pending[0].ID, object{"line": 3}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		a.becomes("r:d#1.1", activities.Task{State: activities.TaskCompleted, Output: object{"done": true}})
		wantStatus(t, settled(t, r, "r"), machine.Completed)
		if k := a.tasks["t-r:d#1.1"]; !sameJSON(k.answers, []any{object{"text": "go.mod"}, object{"line": 3}}) {
			t.Errorf("answers %v", k.answers)
		}
	})
}

// TestAnAgentMayGoOnWithoutAnAnswer is what an agent does that waited for somebody to log in elsewhere.
func TestAnAgentMayGoOnWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := &agent{}
		r := newRunner(t, historymem.New(), graph.Options{Delegates: a})
		atOnce(t, r, "r", delegation(t))
		a.becomes("r:d#1.1", activities.Task{State: activities.TaskAsks, Prompt: "Log in."})
		wantStatus(t, settled(t, r, "r"), machine.Interrupted)
		time.Sleep(time.Hour)
		a.becomes("r:d#1.1", activities.Task{State: activities.TaskCompleted})
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		wantStatus(t, status(t, r, "r"), machine.Completed)
	})
}

func TestAgentsAskInBranchesAndBelow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := &agent{}
		r := newRunner(t, historymem.New(), graph.Options{Delegates: a})
		child := workflow(t, "child", []string{startNode(), delegateNode("d"), endNode()}, "s d", "d e")
		if err := r.RegisterWorkflow("urn:child", child); err != nil {
			t.Fatal(err)
		}
		d := workflow(t, "par", []string{startNode(), fork("p", "all", "a", "v"), delegateNode("a"), subworkflow("v", "urn:child"), endNode()},
			"s p", "p e", "a e", "v e")
		atOnce(t, r, "r", d)
		for _, key := range []string{"r:a#1.1", "r:sub:v:d#1.1"} {
			a.becomes(key, activities.Task{State: activities.TaskAsks, Prompt: key})
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		run := status(t, r, "r")
		wantStatus(t, run, machine.Interrupted)
		if len(run.Pending) != 2 || run.Pending[1].ExecutionID != "r:sub:v" || run.Pending[1].Prompt != "r:sub:v:d#1.1" {
			t.Fatalf("pending %+v", run.Pending)
		}
		for _, p := range run.Pending {
			if _, err := answer(t, r, "r", p.ID, object{"to": p.ID}); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		a.becomes("r:a#1.1", activities.Task{State: activities.TaskCompleted, Output: object{"a": 1}})
		a.becomes("r:sub:v:d#1.1", activities.Task{State: activities.TaskCompleted, Output: object{"v": 1}})
		run = settled(t, r, "r")
		wantStatus(t, run, machine.Completed)
		if run.FinalState["a"] != 1.0 || run.FinalState["v"] != 1.0 {
			t.Errorf("state %v", run.FinalState)
		}
	})
}

// TestWhoeverIsNotWantedIsTold covers all ways in which a run loses its interest in a task.
func TestWhoeverIsNotWantedIsTold(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		ask  bool
		stop func(t *testing.T, r *graph.Runner, a *agent)
		def  func(testing.TB) *definition.Document
		said string
	}{
		"cancelled":               {stop: cancelRun, said: "send r:d#1.1, cancel t-r:d#1.1"},
		"cancelled while it asks": {ask: true, stop: cancelRun, said: "send r:d#1.1, cancel t-r:d#1.1"},
		"timeout": {
			stop: func(*testing.T, *graph.Runner, *agent) { time.Sleep(time.Minute) },
			def:  func(t testing.TB) *definition.Document { return delegation(t, `"timeout":"30s"`) },
			said: "send r:d#1.1, cancel t-r:d#1.1",
		},
		"timeout while it asks": {
			ask:  true,
			stop: func(*testing.T, *graph.Runner, *agent) { time.Sleep(time.Minute) },
			def:  func(t testing.TB) *definition.Document { return delegation(t, `"timeout":"30s"`) },
			said: "send r:d#1.1, cancel t-r:d#1.1",
		},
		"out of reach": {
			stop: func(_ *testing.T, _ *graph.Runner, a *agent) {
				a.setDown(errors.New("connection refused"))
				time.Sleep(10 * time.Minute)
			},
			// three tries, sorted but for the last
			said: "cancel t-r:d#1.1, cancel t-r:d#1.1, send r:d#1.1, cancel t-r:d#1.1",
		},
		"branch not needed": {
			stop: func(t *testing.T, r *graph.Runner, a *agent) {
				a.becomes("r:b#1.1", activities.Task{State: activities.TaskCompleted})
				time.Sleep(time.Minute)
			},
			def: func(t testing.TB) *definition.Document {
				return workflow(t, "par", []string{startNode(), fork("p", "any", "d", "b"), delegateNode("d"), delegateNode("b"), endNode()}, "s p", "p e", "d e", "b e")
			},
			said: "send r:b#1.1, send r:d#1.1, cancel t-r:d#1.1",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				a := &agent{}
				r := newRunner(t, historymem.New(), graph.Options{Delegates: a})
				def := delegation(t)
				if c.def != nil {
					def = c.def(t)
				}
				atOnce(t, r, "r", def)
				if c.ask {
					a.becomes("r:d#1.1", activities.Task{State: activities.TaskAsks, Prompt: "?"})
					wantStatus(t, settled(t, r, "r"), machine.Interrupted)
				}
				c.stop(t, r, a)
				synctest.Wait()
				if run := status(t, r, "r"); !run.Status.Terminal() {
					t.Errorf("the run is %s", run.Status)
				}
				calls := strings.Split(a.said(), ", ")
				slices.Sort(calls[:len(calls)-1])
				if got := strings.Join(calls, ", "); got != c.said {
					t.Errorf("said %s, want %s", got, c.said)
				}
				if n := a.polled(); n > 20 {
					t.Errorf("%d polls", n)
				}
			})
		})
	}
}

func cancelRun(t *testing.T, r *graph.Runner, _ *agent) {
	if _, err := r.Cancel(t.Context(), graph.CancelRequest{ExecutionID: "r"}); err != nil {
		t.Error(err)
	}
}

// TestATaskIsToldByWhoeverPollsIt cancels by a process that has no executor.
func TestATaskIsToldByWhoeverPollsIt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a, store := &agent{}, historymem.New()
		r := newRunner(t, store, graph.Options{Delegates: a})
		atOnce(t, r, "r", delegation(t))
		cancelRun(t, newRunner(t, store, graph.Options{}), nil)
		time.Sleep(time.Minute)
		synctest.Wait()
		if got := a.said(); got != "send r:d#1.1, cancel t-r:d#1.1" {
			t.Error(got)
		}
	})
}

// TestATaskThatIsSentWhileTheRunIsCancelled is not left alone at the agent.
func TestATaskThatIsSentWhileTheRunIsCancelled(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		begun, goOn := make(chan struct{}), make(chan struct{})
		a := &agent{onSend: func(activities.Request) { close(begun); <-goOn }}
		r := newRunner(t, historymem.New(), graph.Options{Delegates: a})
		if _, err := r.Start(t.Context(), graph.StartRequest{ExecutionID: "r", Definition: delegation(t), Wait: graph.Wait{Limit: graph.NoWait}}); err != nil {
			t.Fatal(err)
		}
		<-begun
		cancelRun(t, r, a)
		close(goOn)
		synctest.Wait()
		if got := a.said(); got != "send r:d#1.1, cancel t-r:d#1.1" {
			t.Error(got)
		}
	})
}

func TestDelegateTasksAreRetriedLikeActivities(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		fail  error
		sends int
		code  string
	}{
		"failed":     {&activities.Failure{Code: "A2A_TASK_FAILED", Message: "no"}, 3, "A2A_TASK_FAILED"},
		"pointless":  {&activities.Failure{Code: "A2A_PROVIDER_ERROR", Message: "key refused", Retryable: activities.RetryPointless}, 1, "A2A_PROVIDER_ERROR"},
		"never":      {&activities.Failure{Code: "NEVER", Message: "no"}, 1, "NEVER"},
		"restarting": {nil, 1, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				a := &agent{}
				store := historymem.New()
				r := newRunner(t, store, graph.Options{Delegates: a})
				d := workflow(t, "par", []string{startNode(), fork("p", "all", "d", "x"),
					delegateNode("d", `"retry":{"max_attempts":3,"initial_interval":"1m","non_retryable_errors":["NEVER"]}`),
					timerWait("x", "1s"), endNode()}, "s p", "p e", "d e", "x e")
				begun := time.Now()
				atOnce(t, r, "r", d)
				if c.fail == nil {
					a.setDown(errors.New("connection refused"))
					time.Sleep(time.Minute)
					a.setDown(nil)
					a.becomes("r:d#1.1", activities.Task{State: activities.TaskCompleted})
					wantStatus(t, settled(t, r, "r"), machine.Completed)
					return
				}
				for n := 1; n <= c.sends; n++ {
					a.fails(fmt.Sprintf("r:d#1.%d", n), c.fail)
					time.Sleep(65 * time.Second)
					synctest.Wait()
				}
				run := status(t, r, "r")
				wantStatus(t, run, machine.Failed)
				if run.ErrorCode != c.code || strings.Count(a.said(), "send") != c.sends || c.sends == 3 && run.UpdatedAt.Sub(begun) < 2*time.Minute {
					t.Errorf("%s after %s: %s", run.ErrorCode, run.UpdatedAt.Sub(begun), a.said())
				}
			})
		})
	}
}

// TestTwoProcessesMayPollOneTask lets two of them see a question at the same time.
func TestTwoProcessesMayPollOneTask(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a, store := &agent{}, historymem.New()
		one := newRunner(t, store, graph.Options{Delegates: a, Work: graph.WorkAll})
		two := newRunner(t, store, graph.Options{Delegates: a, Work: graph.WorkAll})
		atOnce(t, one, "r", delegation(t))
		time.Sleep(10 * time.Minute)
		a.becomes("r:d#1.1", activities.Task{State: activities.TaskAsks, Prompt: "?"})
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		run := status(t, two, "r")
		wantStatus(t, run, machine.Interrupted)
		if _, err := answer(t, two, "r", "", object{"text": "x"}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		a.becomes("r:d#1.1", activities.Task{State: activities.TaskCompleted})
		wantStatus(t, settled(t, one, "r"), machine.Completed)
		if n := count(records(t, store, "r"), history.InterruptRaised); n != 1 || a.said() != "send r:d#1.1, answer r:d#1.1/1" {
			t.Errorf("%d questions, %s", n, a.said())
		}
	})
}

// TestHostsPerformDelegatesThemselves whatever the executor could do.
func TestHostsPerformDelegatesThemselves(t *testing.T) {
	t.Parallel()
	a := &agent{}
	r := newRunner(t, historymem.New(), graph.Options{Delegates: a, DefaultMode: machine.HostMediated})
	run := start(t, r, "r", delegation(t), nil)
	wantStatus(t, run, machine.AwaitingActivity)
	if a.said() != "" {
		t.Error(a.said())
	}
}
