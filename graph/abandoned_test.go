package graph_test

import (
	"context"
	"fmt"
	"sync/atomic"
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
	"github.com/workflows-engine/workflows-engine/history/historytest"
	"github.com/workflows-engine/workflows-engine/internal/soak"
)

// besides is a workflow with an attempt of 5 s that needs the handler "two", beside one that needs "one" and takes as long as
// it likes.
func besides(t *testing.T) *definition.Document {
	return workflow(t, "w", []string{startNode(), fork("f", "all", "a", "b"), step("a", "one"), step("b", "two", `"timeout":"5s"`), endNode()},
		"s f", "f e", "a e", "b e")
}

// waits asks for a run until it has ended.
func waits(t *testing.T, r *graph.Runner) (done chan struct{}) {
	done = make(chan struct{})
	go func() {
		defer close(done)
		settled(t, r, "r")
	}()
	return done
}

// TestWhatADriverLeavesHasItsTime has a driver leave a run, or die, while an attempt that it cannot perform is long overdue. A
// process that can takes it up within a round, whoever asks where the run stands meanwhile, and whenever the rounds are.
func TestWhatADriverLeavesHasItsTime(t *testing.T) {
	t.Parallel()
	for _, dies := range []bool{false, true} {
		for _, asks := range []string{"nobody", "lone", "fit"} {
			t.Run(fmt.Sprintf("dies=%v %s asks", dies, asks), func(t *testing.T) {
				t.Parallel()
				for offset := range 4 {
					synctest.Test(t, func(t *testing.T) {
						store := historymem.New()
						bereft(t, store, besides(t))
						mortal := historytest.NewFaultStore(store)
						driver := newRunner(t, mortal, equip(t, &script{answers: answers{"a": hang}}, "one"))
						time.Sleep(time.Minute) // it has taken the run over
						lone := newRunner(t, store, equip(t, &script{}, "three"))
						time.Sleep(time.Duration(offset) * time.Second)
						var begun time.Time
						fit := newRunner(t, store, equip(t, &script{answers: answers{"b": func(context.Context, activities.Request) (any, error) {
							begun = time.Now()
							return nil, nil
						}}}, "two"))
						time.Sleep(time.Minute + 500*time.Millisecond)
						done := make(chan struct{})
						switch asks {
						case "lone":
							done = waits(t, lone)
						case "fit":
							done = waits(t, fit)
						default:
							close(done)
						}
						left := time.Now()
						if dies {
							kill(t, driver, mortal)
							left = left.Add(30 * time.Second) // at the latest: its lease
						} else {
							closeRunner(t, driver)
						}
						time.Sleep(3 * time.Minute)
						synctest.Wait()
						if begun.IsZero() || begun.Sub(left) > 10*time.Second {
							t.Errorf("offset %d: begun %s after the driver was gone: %v", offset, begun.Sub(left), names(records(t, store, "r"), history.Event))
						}
						cancel(t, lone, "r", "")
						<-done
						once(t, store, "r")
					})
				}
			})
		}
	}
}

// TestWhatADriverLeavesIsTimedOutIfNobodyTakesItUp leaves the same to processes that cannot perform it: it is timed out when
// the time for a takeover has passed since the driver left, or since the lease of one that died ran out.
func TestWhatADriverLeavesIsTimedOutIfNobodyTakesItUp(t *testing.T) {
	t.Parallel()
	for name, leave := range map[string]func(t *testing.T, driver *graph.Runner, store *historytest.FaultStore) (since time.Time){
		"closes": func(t *testing.T, driver *graph.Runner, _ *historytest.FaultStore) time.Time {
			closeRunner(t, driver)
			return time.Now()
		},
		"dies": func(t *testing.T, driver *graph.Runner, store *historytest.FaultStore) time.Time {
			owner, err := store.Owner(t.Context(), "r")
			if err != nil {
				t.Fatal(err)
			}
			kill(t, driver, store)
			return time.Now().Add(owner.Left)
		},
	} {
		for kind, open := range stores {
			t.Run(name+" "+kind, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					both := open(t)
					// What would be performed beside it is dropped with the run.
					bereft(t, both[0], workflow(t, "w", []string{startNode(), fork("f", "all", "b", "a"), step("a", "one"), step("b", "two", `"timeout":"5s"`), endNode()},
						"s f", "f e", "a e", "b e"))
					mortal := historytest.NewFaultStore(both[0])
					driver := newRunner(t, mortal, equip(t, &script{answers: answers{"a": hang}}, "one"))
					time.Sleep(10 * time.Minute)
					watched := historytest.NewFaultStore(both[1])
					lone := newRunner(t, watched, equip(t, &script{}, "three"))
					time.Sleep(time.Minute)
					watched.Set(historytest.Fault{Reads: true})
					since := leave(t, driver, mortal)
					time.Sleep(time.Until(since.Add(takeover - time.Millisecond)))
					if wantStatus(t, status(t, lone, "r"), machine.Running); len(writes(watched)) > 0 {
						t.Errorf("before its time: %v", writes(watched))
					}
					run := settled(t, lone, "r")
					if wantStatus(t, run, machine.Failed); run.ErrorNodeID != "b" || run.ErrorCode != string(problem.Timeout) {
						t.Errorf("%+v", run)
					}
					if took := time.Since(since); took < takeover || took > takeover+time.Second {
						t.Errorf("timed out after %s", took)
					}
					once(t, both[0], "r")
				})
			})
		}
	}
}

// ignorant knows no workflow, which takes its time.
type ignorant struct{ takes time.Duration }

func (i ignorant) ResolveWorkflow(ctx context.Context, ref, _ string) (*definition.Document, error) {
	select {
	case <-time.After(i.takes):
		return nil, problem.New(problem.WorkflowNotFound, "there is no %q", ref)
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// TestADriverThatGivesUpLeavesTime has a process drive a run for the sake of a subworkflow, whose workflow turns out after a
// while not to be known. It leaves no record, and what was overdue meanwhile has its time all the same.
func TestADriverThatGivesUpLeavesTime(t *testing.T) {
	t.Parallel()
	for offset := range 4 {
		synctest.Test(t, func(t *testing.T) {
			store := historymem.New()
			mortal := historytest.NewFaultStore(store)
			d := workflow(t, "w", []string{startNode(), step("s1", "one"), fork("f", "all", "v", "b"), subworkflow("v", "urn:child"), step("b", "two", `"timeout":"5s"`), endNode()},
				"s s1", "s1 f", "f e", "v e", "b e")
			bereft(t, store, d)
			o := equip(t, &script{}, "one")
			o.Workflows = ignorant{5 * time.Minute}
			newRunner(t, mortal, o)
			time.Sleep(2 * time.Minute)
			newRunner(t, store, equip(t, &script{}, "three"))
			time.Sleep(time.Duration(offset) * time.Second)
			work := &script{}
			newRunner(t, store, equip(t, work, "two"))
			time.Sleep(20 * time.Minute)
			if rs := records(t, store, "r"); work.count() != 1 || count(rs, history.ActivityFailed) > 0 {
				t.Errorf("offset %d: %v", offset, names(rs, history.Event))
			}
		})
	}
}

// TestAnAttemptThatNobodyPerformsIsTakenUpByWhoeverIsAsked has a process that does not search the store, and that can perform
// an attempt which is long overdue: it takes it up when it is asked anything about the run, and does not time it out.
func TestAnAttemptThatNobodyPerformsIsTakenUpByWhoeverIsAsked(t *testing.T) {
	t.Parallel()
	for name, ask := range map[string]func(*testing.T, *graph.Runner){
		"status": func(t *testing.T, r *graph.Runner) { status(t, r, "r") },
		"signal": func(t *testing.T, r *graph.Runner) {
			if _, err := r.Signal(t.Context(), graph.SignalRequest{ExecutionID: "r", Name: "go"}); err != nil {
				t.Error(err)
			}
		},
		"start": func(t *testing.T, r *graph.Runner) {
			if _, err := r.Start(t.Context(), graph.StartRequest{ExecutionID: "r", AllowExisting: true}); err != nil {
				t.Error(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				store := historymem.New()
				bereft(t, store, workflow(t, "w", []string{startNode(), fork("f", "all", "a", "g"), step("a", "one", `"timeout":"1m"`), signalWait("g", "go"), endNode()},
					"s f", "f e", "a e", "g e"))
				o := equip(t, &script{answers: answers{"a": after(50*time.Second, nil)}}, "one")
				o.Work = graph.WorkOwn
				r := newRunner(t, store, o)
				time.Sleep(time.Hour)
				ask(t, r)
				time.Sleep(time.Minute)
				rs := records(t, store, "r")
				if count(rs, history.ActivityCompleted) != 1 {
					t.Errorf("not performed: %v", names(rs, history.Event))
				}
				once(t, store, "r")
			})
		})
	}
}

// TestProcessesWithLeasesOfDifferentLengths has a process whose leases are short leave an attempt to one that looks for work
// at its own pace.
func TestProcessesWithLeasesOfDifferentLengths(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := historymem.New()
		fit := newRunner(t, store, equip(t, &script{}, "two"))
		time.Sleep(time.Second)
		bereft(t, store, workflow(t, "w", []string{startNode(), step("a", "one"), step("b", "two", `"timeout":"1s"`), endNode()}, "s a", "a b", "b e"))
		o := equip(t, &script{}, "one")
		o.LeaseTTL = 2 * time.Second
		newRunner(t, store, o)
		wantStatus(t, settled(t, fit, "r"), machine.Completed)
		once(t, store, "r")
	})
}

// TestARunThatAnotherProcessDrivesIsOnlyRead has an attempt wait, long overdue, for the driver of its run to be done with
// another branch. A process that cannot perform it leaves the owner alone and does not load the run in each round, whether
// somebody waits there for the run or not, and if an input is refused there.
func TestARunThatAnotherProcessDrivesIsOnlyRead(t *testing.T) {
	t.Parallel()
	for _, waiting := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			store := historymem.New()
			bereft(t, store, besides(t))
			newRunner(t, store, equip(t, &script{answers: answers{"a": after(3*time.Hour, nil)}}, "one"))
			time.Sleep(time.Minute) // it has taken the run over
			watched := historytest.NewFaultStore(store)
			lone := newRunner(t, watched, equip(t, &script{}, "three"))
			time.Sleep(2 * time.Minute)
			watched.Set(historytest.Fault{Reads: true})
			if waiting {
				if _, err := lone.Status(t.Context(), graph.StatusRequest{ExecutionID: "r", Wait: lookFor(time.Hour)}); err != nil {
					t.Fatal(err)
				}
			} else {
				time.Sleep(time.Hour)
			}
			_, err := lone.Signal(t.Context(), graph.SignalRequest{ExecutionID: "r", Name: "go", Caller: graph.Caller{Wait: waitFor(0)}})
			wantCode(t, err, problem.SignalNotAwaiting)
			calls := map[string]int{}
			for _, call := range watched.Calls() {
				calls[call]++
			}
			if len(writes(watched)) > 0 || calls["Read"] > 2 || calls["Owner"] == 0 {
				t.Errorf("waiting %v: %v", waiting, calls)
			}
		})
	}
}

// TestARefusedCallDoesNotPutATimeoutOff sends a signal that nobody waits for, again and again, to a process that takes the
// lease of a driver that has died for it: since when the run has had no driver is not forgotten.
func TestARefusedCallDoesNotPutATimeoutOff(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := historymem.New()
		bereft(t, store, workflow(t, "w", []string{startNode(), step("b", "two", `"timeout":"5s"`), endNode()}, "s b", "b e"))
		lone := newRunner(t, store, graph.Options{})
		refused := 0
		for e, err := store.Execution(t.Context(), "r"); !e.Phase.Terminal(); e, err = store.Execution(t.Context(), "r") {
			if err != nil {
				t.Fatal(err)
			}
			_, err := lone.Signal(t.Context(), graph.SignalRequest{ExecutionID: "r", Name: "go", Caller: graph.Caller{Wait: waitFor(0)}})
			wantCode(t, err, problem.SignalNotAwaiting)
			if refused++; refused > 100 {
				t.Fatal("not timed out")
			}
			time.Sleep(7 * time.Second)
		}
		// The lease of 30 s that the dead driver had, the time for a takeover, and the time to the next call.
		if refused < 10 || refused > 12 {
			t.Errorf("timed out with call %d", refused)
		}
	})
}

// TestAfterTheHostHasSleptOthersHaveTheirTurn puts the host of all processes to sleep: the clock goes on, timers do not. When it
// wakes up, the lease of the driver has long run out, and so has the time of the attempt that waits for it to be done. The
// process that cannot perform it is the first to look, and leaves it to those who can.
func TestAfterTheHostHasSleptOthersHaveTheirTurn(t *testing.T) {
	t.Parallel()
	for _, asks := range []bool{false, true} {
		for offset := range soak.Size(5, 1, 5) {
			synctest.Test(t, func(t *testing.T) {
				var slept atomic.Int64
				process := func(store history.Store, work *script, handlers ...string) *graph.Runner {
					o := equip(t, work, handlers...)
					o.Now = func() time.Time { return time.Now().Add(time.Duration(slept.Load())) }
					return newRunner(t, store, o)
				}
				store := historymem.New()
				bereft(t, store, besides(t))
				process(store, &script{answers: answers{"a": after(30*time.Minute, nil)}}, "one")
				time.Sleep(time.Minute)
				lone := process(store, &script{}, "three")
				time.Sleep(time.Duration(offset) * 2 * time.Second)
				process(store, &script{}, "two")
				time.Sleep(5*time.Minute + 500*time.Millisecond)
				slept.Store(int64(8 * time.Hour))
				if asks {
					status(t, lone, "r")
				}
				time.Sleep(2 * time.Hour)
				rs := records(t, store, "r")
				if count(rs, history.ActivityFailed) > 0 || count(rs, history.ExecutionCompleted) != 1 {
					t.Errorf("asked %v, offset %d: %v", asks, offset, names(rs, history.Event))
				}
			})
		}
	}
}
