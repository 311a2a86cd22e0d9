package graph_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/graph/view"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historymem"
)

// hang keeps an executor busy until its context ends.
func hang(ctx context.Context, _ activities.Request) (any, error) {
	<-ctx.Done()
	return nil, context.Cause(ctx)
}

func TestCloseAndTakeOver(t *testing.T) {
	t.Parallel()
	for name, take := range map[string]func(*testing.T, *graph.Runner){
		"Recover": func(t *testing.T, r *graph.Runner) {
			dry, err := r.Recover(t.Context(), graph.RecoverRequest{DryRun: true})
			if err != nil || !slices.Equal(dry.ExecutionIDs, []string{"r"}) {
				t.Errorf("dry run %+v, %v", dry, err)
			}
			res, err := r.Recover(t.Context(), graph.RecoverRequest{})
			if err != nil || !slices.Equal(res.ExecutionIDs, []string{"r"}) {
				t.Errorf("recovered %+v, %v", res, err)
			}
			again, err := r.Recover(t.Context(), graph.RecoverRequest{})
			if err != nil || len(again.ExecutionIDs) != 0 {
				t.Errorf("recovered again %+v, %v", again, err)
			}
		},
		"start again": func(t *testing.T, r *graph.Runner) {
			if _, err := r.Start(t.Context(), graph.StartRequest{ExecutionID: "r", AllowExisting: true}); err != nil {
				t.Error(err)
			}
		},
		"background": func(*testing.T, *graph.Runner) {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				store := historymem.New()
				var cause error
				first := &script{answers: answers{"b": func(ctx context.Context, req activities.Request) (any, error) {
					out, err := hang(ctx, req)
					cause = err
					return out, err
				}}}
				r := newRunner(t, store, graph.Options{Activities: first})
				answered := make(chan *view.Run)
				go func() { answered <- start(t, r, "r", linear(t, "lin", "a", "b", "c"), nil) }()
				time.Sleep(time.Second)
				closeRunner(t, r)
				wantStatus(t, <-answered, machine.Running)
				if !errors.Is(cause, problem.RunnerClosed) {
					t.Errorf("cause %v", cause)
				}
				_, err := r.Status(t.Context(), graph.StatusRequest{ExecutionID: "r"})
				wantCode(t, err, problem.RunnerClosed)

				// The lease was given back: nobody has to wait for it.
				second := &script{}
				r = newRunner(t, store, graph.Options{Activities: second, Work: workAll(name == "background")})
				take(t, r)
				wantStatus(t, settled(t, r, "r"), machine.Completed)
				if !slices.Equal(second.keys(), []string{"r:b#1.1", "r:c#1.1"}) {
					t.Errorf("performed again %v", second.keys())
				}
				rs := records(t, store, "r")
				if n := count(rs, history.ActivityRequested); n != 3 {
					t.Errorf("%d requests: %v", n, names(rs, ""))
				}
			})
		})
	}
}

// TestCloseRecordsWhatEndedInTime has an executor that finishes its work when it is told to stop.
func TestCloseRecordsWhatEndedInTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := historymem.New()
		exec := &script{answers: answers{"a": func(ctx context.Context, _ activities.Request) (any, error) {
			<-ctx.Done()
			time.Sleep(time.Second)
			return object{"saved": true}, nil
		}}}
		r := newRunner(t, store, graph.Options{Activities: exec})
		if _, err := r.Start(t.Context(), graph.StartRequest{ExecutionID: "r", Definition: linear(t, "lin", "a", "b"), Wait: graph.Wait{Limit: graph.NoWait}}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		closeRunner(t, r)
		if n := count(records(t, store, "r"), history.ActivityCompleted); n != 1 || exec.count() != 1 {
			t.Errorf("%d outcomes, %d calls", n, exec.count())
		}
		r = newRunner(t, store, graph.Options{Activities: &script{}})
		run, err := r.Start(t.Context(), graph.StartRequest{ExecutionID: "r", AllowExisting: true})
		if err != nil || !sameJSON(run.FinalState, object{"saved": true, "b": 1}) {
			t.Errorf("%+v, %v", run, err)
		}
	})
}

func TestCloseDoesNotHangOnADeafExecutor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		exec := &script{answers: answers{"a": func(context.Context, activities.Request) (any, error) {
			time.Sleep(time.Hour)
			return nil, nil
		}}}
		r, err := graph.New(historymem.New(), graph.Options{Activities: exec, CloseLimit: 5 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.Start(t.Context(), graph.StartRequest{Definition: linear(t, "lin", "a"), Wait: graph.Wait{Limit: graph.NoWait}}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		begun := time.Now()
		wantCode(t, r.Close(), problem.RunnerClosed)
		if d := time.Since(begun); d != 5*time.Second {
			t.Errorf("Close took %s", d)
		}
		time.Sleep(2 * time.Hour)
	})
}

// TestCloseEndsACallThatAsksForAWorkflow closes a Runner while a call of its waits for a source of workflows that would take
// an hour more. The call hears of it, and Close does not wait. A call whose own context ends does not wait either, and what
// it has not heard counts as nothing: the next one asks again.
func TestCloseEndsACallThatAsksForAWorkflow(t *testing.T) {
	t.Parallel()
	calls := map[string]func(context.Context, *graph.Runner) error{
		"recover": func(ctx context.Context, r *graph.Runner) error {
			_, err := r.Recover(ctx, graph.RecoverRequest{})
			return err
		},
		"dry run": func(ctx context.Context, r *graph.Runner) error {
			_, err := r.Recover(ctx, graph.RecoverRequest{DryRun: true})
			return err
		},
		"survey": func(ctx context.Context, r *graph.Runner) error {
			_, err := r.Survey(ctx, "r")
			return err
		},
	}
	for name, call := range calls {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				store := historymem.New()
				bereft(t, store, workflow(t, "w", []string{startNode(), step("a", "one"), subworkflow("v", "urn:child"), endNode()}, "s a", "a v", "v e"))
				first := newRunner(t, store, equip(t, &script{}, "one"))
				time.Sleep(time.Minute)
				closeRunner(t, first)
				s := newSource(time.Hour)
				o := equip(t, &script{}, "one")
				o.Work, o.Workflows = graph.WorkOwn, s
				r := newRunner(t, store, o)
				graph.NoteUnknown(r, "urn:child")
				answer := make(chan error)
				ctx, cancel := context.WithCancel(t.Context())
				go func() { answer <- call(ctx, r) }()
				synctest.Wait()
				cancel()
				if err := <-answer; !errors.Is(err, context.Canceled) {
					t.Errorf("a call that was cancelled: %v", err)
				}
				go func() { answer <- call(t.Context(), r) }()
				synctest.Wait()
				if n, _ := s.asked("urn:child"); n != 2 {
					t.Errorf("asked %d times", n)
				}
				begun := time.Now()
				closeRunner(t, r)
				wantCode(t, <-answer, problem.RunnerClosed)
				if d := time.Since(begun); d > 0 {
					t.Errorf("Close took %s", d)
				}
			})
		})
	}
}

// TestALiveDriverIsLeftAlone holds that a leased run is not taken over, by whatever means.
func TestALiveDriverIsLeftAlone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := historymem.New()
		exec := &script{answers: answers{"a": after(10*time.Minute, object{"a": 1})}}
		r := newRunner(t, store, graph.Options{Activities: exec})
		d := linear(t, "lin", "a")
		start(t, r, "r", d, nil)
		other := &script{}
		o := newRunner(t, store, graph.Options{Activities: other, Work: graph.WorkAll})
		for range 5 {
			time.Sleep(time.Minute)
			if res, err := o.Recover(t.Context(), graph.RecoverRequest{}); err != nil || len(res.ExecutionIDs) != 0 {
				t.Errorf("%+v, %v", res, err)
			}
			run, err := o.Start(t.Context(), graph.StartRequest{ExecutionID: "r", Definition: d, AllowExisting: true})
			if err != nil || run.Status != machine.Running {
				t.Errorf("%+v, %v", run, err)
			}
		}
		wantStatus(t, settled(t, o, "r"), machine.Completed)
		if exec.count() != 1 || other.count() != 0 {
			t.Errorf("%d and %d calls", exec.count(), other.count())
		}
	})
}

// TestADeposedDriverStops freezes a driver by keeping its store from renewing the lease.
func TestADeposedDriverStops(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := historymem.New()
		frozen := &noLease{Store: store}
		causes := make(chan error, 1)
		exec := &script{answers: answers{"a": func(ctx context.Context, req activities.Request) (any, error) {
			_, cause := hang(ctx, req)
			causes <- cause
			return nil, cause
		}}}
		r := newRunner(t, frozen, graph.Options{Activities: exec})
		if _, err := r.Start(t.Context(), graph.StartRequest{ExecutionID: "r", Definition: linear(t, "lin", "a", "b"), Wait: graph.Wait{Limit: graph.NoWait}}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(31 * time.Second) // the lease runs out
		second := &script{answers: answers{"a": after(time.Minute, object{"a": 2})}}
		o := newRunner(t, store, graph.Options{Activities: second})
		if res, err := o.Recover(t.Context(), graph.RecoverRequest{}); err != nil || len(res.ExecutionIDs) != 1 {
			t.Fatalf("%+v, %v", res, err)
		}
		frozen.thaw()
		time.Sleep(5 * time.Second)
		select {
		case cause := <-causes:
			if !errors.Is(cause, problem.ActivityCancelled) {
				t.Errorf("cause %v", cause)
			}
		default:
			t.Error("the deposed driver goes on")
		}
		run := settled(t, o, "r")
		if !sameJSON(run.FinalState, object{"a": 2, "b": 1}) || count(records(t, store, "r"), history.ActivityCompleted) != 2 {
			t.Errorf("run %+v", run)
		}
		wantStatus(t, status(t, r, "r"), machine.Completed)
	})
}

// noLease fails to renew leases, but for the first time, until it thaws.
type noLease struct {
	history.Store
	mu     sync.Mutex
	begun  bool
	thawed bool
}

func (s *noLease) thaw() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.thawed = true
}

func (s *noLease) Renew(ctx context.Context, process string, ttl time.Duration) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.begun && !s.thawed {
		return errDisk
	}
	s.begun = true
	return s.Store.Renew(ctx, process, ttl)
}

// TestW61_OutcomesSurviveAStoreThatFailsForAWhile records the outcome once the store works again.
func TestW61_OutcomesSurviveAStoreThatFailsForAWhile(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for _, late := range []bool{false, true} {
			store := &flaky{Store: historymem.New(), fails: 3, late: late}
			exec := &script{}
			r := newRunner(t, store, graph.Options{Activities: exec})
			wantStatus(t, start(t, r, "r", linear(t, "lin", "a", "b", "c", "d"), nil), machine.Completed)
			if exec.count() != 4 {
				t.Errorf("late %v: %d calls", late, exec.count())
			}
		}
	})
}

// TestAnUnequippedProcessDoesNotTakeOver holds that nothing is failed for want of an executor that another has.
func TestAnUnequippedProcessDoesNotTakeOver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := historymem.New()
		r := newRunner(t, store, graph.Options{Activities: &script{answers: answers{"a": hang}}})
		d := linear(t, "lin", "a")
		start(t, r, "r", d, nil)
		closeRunner(t, r)
		o := newRunner(t, store, graph.Options{Work: graph.WorkAll})
		time.Sleep(time.Minute)
		unchanged(t, store, func() {
			res, err := o.Recover(t.Context(), graph.RecoverRequest{})
			if err != nil || len(res.ExecutionIDs) != 0 {
				t.Errorf("%+v, %v", res, err)
			}
			run, err := o.Start(t.Context(), graph.StartRequest{ExecutionID: "r", Definition: d, AllowExisting: true, Wait: graph.Wait{Limit: graph.NoWait}})
			if err != nil || run.Status != machine.Running {
				t.Errorf("%+v, %v", run, err)
			}
		})
		closeRunner(t, o)
		time.Sleep(time.Minute)
		wantStatus(t, settled(t, newRunner(t, store, graph.Options{Activities: &script{}, Work: graph.WorkAll}), "r"), machine.Completed)
	})
}

// some performs the nodes of a type that it has.
type some struct {
	*script
	has bool
}

func (s some) Capabilities(activities.Node) activities.Capabilities { return performs(s.has) }

// performs returns the capabilities of an executor that performs a node, or lacks its handler.
func performs(has bool) (can activities.Capabilities) {
	if !has {
		can.Missing = activities.MissingTarget
	}
	return can
}

// TestAProcessWithoutTheHandlerDoesNotTakeOver has two processes that both perform tool calls, of different servers. In
// that which lacks the server the run would fail for good.
func TestAProcessWithoutTheHandlerDoesNotTakeOver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := historymem.New()
		r := newRunner(t, store, graph.Options{Activities: &script{answers: answers{"a": hang}}})
		start(t, r, "r", linear(t, "lin", "a"), nil)
		closeRunner(t, r)
		for _, has := range []bool{false, true} {
			exec := &script{}
			r = newRunner(t, store, graph.Options{Activities: activities.Composite{ToolCall: some{exec, has}}, Work: graph.WorkAll})
			time.Sleep(5 * time.Minute)
			want := machine.Running
			if has {
				want = machine.Completed
			}
			if wantStatus(t, status(t, r, "r"), want); exec.count() > 0 != has {
				t.Errorf("%v: %d calls", has, exec.count())
			}
			closeRunner(t, r)
		}
		// Who begins such a run is told what is wrong.
		r = newRunner(t, historymem.New(), graph.Options{Activities: activities.Composite{Step: activities.NewStepRegistry()}})
		d := workflow(t, "steps", []string{startNode(), timerWait("w", "1m"), `{"id":"x","type":"step","config":{"handler":"urn:x"}}`, endNode()}, "s w", "w x", "x e")
		if run := settled(t, r, start(t, r, "own", d, nil).ExecutionID); run.ErrorCode != string(problem.HandlerNotFound) {
			t.Errorf("%+v", run)
		}
	})
}

// TestAProcessTakesOverWhatItsExecutorsPerform has executors that perform some node types, here and in a subworkflow.
func TestAProcessTakesOverWhatItsExecutorsPerform(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := historymem.New()
		child := linear(t, "child", "c") // a tool_call
		r := newRunner(t, store, graph.Options{Activities: &script{answers: answers{"a": hang}}})
		start(t, r, "tool", linear(t, "lin", "a"), nil)
		start(t, r, "parent", workflow(t, "parent", []string{startNode(), timerWait("w", "1m"), subworkflow("v", "child"), endNode()}, "s w", "w v", "v e"), nil)
		closeRunner(t, r)
		steps := graph.Options{Activities: activities.Composite{Step: &script{}}, Work: graph.WorkAll}
		o := newRunner(t, store, steps)
		register(t, o, "child", child)
		time.Sleep(5 * time.Minute)
		for _, id := range []string{"tool", "parent"} {
			wantStatus(t, status(t, o, id), machine.Running)
		}
		if rs := records(t, store, "parent"); count(rs, history.TimerFired) != 1 {
			t.Errorf("the timer is everybody's: %v", names(rs, ""))
		}
		closeRunner(t, o)
		tools := graph.Options{Activities: activities.Composite{ToolCall: &script{}}, Work: graph.WorkAll}
		o = newRunner(t, store, tools)
		register(t, o, "child", child)
		time.Sleep(5 * time.Minute)
		for _, id := range []string{"tool", "parent"} {
			wantStatus(t, status(t, o, id), machine.Completed)
		}
	})
}

// TestASubworkflowOfAnEndedParentEnds cuts a cancel off between parent and child.
func TestASubworkflowOfAnEndedParentEnds(t *testing.T) {
	t.Parallel()
	store := historymem.New()
	dying := &faulty{Store: store, left: 3}
	r, err := graph.New(dying, graph.Options{DefaultMode: machine.HostMediated})
	if err != nil {
		t.Fatal(err)
	}
	start(t, r, "p", family(t, r, []string{startNode(), tool("a"), endNode()}, "s a", "a e"), nil)
	if _, err := r.Cancel(t.Context(), graph.CancelRequest{ExecutionID: "p"}); err != nil {
		t.Fatal(err)
	}
	closeRunner(t, r)
	r = newRunner(t, store, graph.Options{})
	if e, err := store.Execution(t.Context(), "p:sub:v"); err != nil || e.Phase != history.PhaseAwaitingActivity {
		t.Fatalf("the child was to be left over: %+v, %v", e, err)
	}
	_, err = r.SubmitActivity(t.Context(), graph.SubmitRequest{ExecutionID: "p:sub:v", NodeID: "a", OK: true})
	wantCode(t, err, problem.SubmitNotAwaiting)
	wantStatus(t, status(t, r, "p:sub:v"), machine.Cancelled)
}
