package graph_test

import (
	"context"
	"fmt"
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
	"github.com/workflows-engine/workflows-engine/history/historytest"
	"github.com/workflows-engine/workflows-engine/internal/soak"
)

// takeover is how long it takes at most until a run is taken over: the default of Options.LeaseTTL and a round of
// WorkAll.
const takeover = 40 * time.Second

// TestAnAttemptThatNobodyTakesUp leaves attempts with and without a limit to a process that can perform neither: the one that
// has a limit is timed out once a process that can would have taken it up, and goes the way of its retry policy.
func TestAnAttemptThatNobodyTakesUp(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		node   string
		opened time.Duration // after the attempt was requested
		fires  time.Duration // after it was requested, 0 for never
		want   machine.Status
	}{
		"alive all the time": {step("a", "two", `"timeout":"1m"`), 0, time.Minute + takeover, machine.Failed},
		"opened later":       {step("a", "two", `"timeout":"1m"`), time.Hour, time.Hour + takeover, machine.Failed},
		"to be retried":      {step("a", "two", `"timeout":"1m","retry":{"max_attempts":2,"initial_interval":"1m"}`), 0, time.Minute + takeover, machine.AwaitingTimer},
		"without a limit":    {step("a", "two"), 0, 0, machine.Running},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				store, begun := historymem.New(), time.Now()
				bereft(t, store, workflow(t, "w", []string{startNode(), tt.node, endNode()}, "s a", "a e"))
				time.Sleep(tt.opened)
				lone := newRunner(t, store, equip(t, &script{}, "one"))
				if tt.fires > 0 {
					time.Sleep(time.Until(begun.Add(tt.fires - time.Millisecond)))
					if run := status(t, lone, "r"); run.Status != machine.Running || run.Lacks == nil {
						t.Fatalf("too early: %+v", run)
					}
				}
				time.Sleep(time.Duration(soak.Size(24, 3, 24)) * time.Hour)
				run := status(t, lone, "r")
				wantStatus(t, run, tt.want)
				if tt.want == machine.Failed && run.ErrorCode != string(problem.Timeout) {
					t.Errorf("%s: %s", run.ErrorCode, run.Error)
				}
				for _, rec := range records(t, store, "r") {
					// WorkAll sees to it in its next round at the latest.
					if took := rec.CreatedAt.Sub(begun); rec.Name == history.ActivityFailed && (took < tt.fires || took > tt.fires+10*time.Second) {
						t.Errorf("timed out after %s", took)
					}
				}
				once(t, store, "r")
			})
		})
	}
}

// TestWhoCanPerformAnAttemptComesFirst opens a process that can perform an attempt beside one that cannot, in time, or both
// together long after the attempt's limit: it is performed with its full time, and not timed out.
func TestWhoCanPerformAnAttemptComesFirst(t *testing.T) {
	t.Parallel()
	for _, opened := range []time.Duration{0, 24 * time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			store := historymem.New()
			bereft(t, store, workflow(t, "w", []string{startNode(), step("a", "two", `"timeout":"10s"`), endNode()}, "s a", "a e"))
			time.Sleep(opened)
			lone := newRunner(t, store, equip(t, &script{}, "one"))
			time.Sleep(5 * time.Second)
			var full time.Duration
			newRunner(t, store, equip(t, &script{answers: answers{"a": func(ctx context.Context, req activities.Request) (any, error) {
				full = time.Until(req.Deadline)
				return after(9*time.Second, nil)(ctx, req)
			}}}, "two"))
			run := settled(t, lone, "r")
			if wantStatus(t, run, machine.Completed); full != 10*time.Second {
				t.Errorf("the attempt had %s", full)
			}
			once(t, store, "r")
		})
	}
}

// TestAnAttemptThatWasTakenUpIsNotTimedOutByItsOldDeadline takes an attempt up late, which moves its deadline without a
// record, while a process that cannot perform it knows the deadline of before. Whether the process that performs it ends it or
// dies, so that another one has to take it up: its time is not over.
func TestAnAttemptThatWasTakenUpIsNotTimedOutByItsOldDeadline(t *testing.T) {
	t.Parallel()
	for _, dies := range []bool{false, true} {
		for kind, open := range stores {
			t.Run(fmt.Sprint(kind, " dies=", dies), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					both := open(t)
					d := workflow(t, "w", []string{startNode(), step("a", "two", `"timeout":"100s"`), endNode()}, "s a", "a e")
					bereft(t, both[0], d)
					lone := newRunner(t, both[0], equip(t, &script{}, "one"))
					var last *view.Run
					waited := make(chan struct{})
					go func() { // keeps what this process knows of the run
						defer close(waited)
						last = settled(t, lone, "r")
					}()
					time.Sleep(130 * time.Second)
					work := &script{answers: answers{"a": after(99*time.Second, nil)}}
					o := equip(t, work, "two")
					mortal := historytest.NewFaultStore(both[1])
					second := newRunner(t, mortal, o)
					for i := range 90 / 5 { // past the old deadline and the time for a takeover
						time.Sleep(5 * time.Second)
						wantStatus(t, status(t, lone, "r"), machine.Running)
						if dies && i == 0 {
							kill(t, second, mortal)
						}
					}
					if work.count() != 1 {
						t.Fatalf("taken up %d times", work.count())
					}
					newRunner(t, both[1], o)
					<-waited
					wantStatus(t, last, machine.Completed)
					once(t, both[0], "r")
				})
			})
		}
	}
}

// TestAnAttemptThatWaitsForTheDriver has an attempt wait for its process while another branch is performed for longer than its
// limit: a process that can perform it takes it up when the driver is done, and if there is none it is timed out then.
func TestAnAttemptThatWaitsForTheDriver(t *testing.T) {
	t.Parallel()
	for performed, want := range map[bool]machine.Status{true: machine.Completed, false: machine.Failed} {
		synctest.Test(t, func(t *testing.T) {
			store := historymem.New()
			d := workflow(t, "w", []string{startNode(), fork("f", "all", "a", "b"), step("a", "one"), step("b", "two", `"timeout":"5s"`), endNode()},
				"s f", "f e", "a e", "b e")
			bereft(t, store, d)
			driver := newRunner(t, store, equip(t, &script{answers: answers{"a": after(10*time.Minute, nil)}}, "one"))
			time.Sleep(time.Minute) // it has taken the run over
			if performed {
				newRunner(t, store, equip(t, &script{}, "two"))
			} else {
				newRunner(t, store, graph.Options{Work: graph.WorkAll})
			}
			run := status(t, driver, "r")
			for ; run.Status == machine.Running; run = status(t, driver, "r") {
				time.Sleep(100 * time.Millisecond)
			}
			if wantStatus(t, run, want); want == machine.Failed && run.ErrorNodeID != "b" {
				t.Errorf("%+v", run)
			}
			if n := count(records(t, store, "r"), history.ActivityCompleted); n == 0 {
				t.Error("not driven to the end of the other branch")
			}
			once(t, store, "r")
		})
	}
}

// TestTheClockOfAProcessThatLeavesAnAttempt has a process take a signal and leave the attempt that follows. It times it out
// although it does not search the store, if nobody takes it up.
func TestTheClockOfAProcessThatLeavesAnAttempt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := historymem.New()
		d := workflow(t, "w", []string{startNode(), signalWait("g", "go"), step("a", "two", `"timeout":"1m"`), endNode()}, "s g", "g a", "a e")
		bereft(t, store, d)
		lone := newRunner(t, store, graph.Options{})
		time.Sleep(time.Hour)
		_, err := lone.Signal(t.Context(), graph.SignalRequest{ExecutionID: "r", Name: "go", Caller: graph.Caller{Wait: waitFor(0)}})
		if err != nil {
			t.Fatal(err)
		}
		requested := time.Now()
		time.Sleep(time.Hour)
		rs := records(t, store, "r")
		if count(rs, history.ExecutionFailed) != 1 {
			t.Fatalf("recorded %v", names(rs, ""))
		}
		if took := rs[len(rs)-1].CreatedAt.Sub(requested); took != time.Minute+takeover {
			t.Errorf("timed out after %s", took)
		}
	})
}

// TestManyAttemptsToTakeUp leaves more runs than are looked at in one round, their limits long past: the process that can
// perform them takes each up in its turn, and times none out.
func TestManyAttemptsToTakeUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := historymem.New()
		d := workflow(t, "w", []string{startNode(), step("a", "one", `"timeout":"10s"`), endNode()}, "s a", "a e")
		mortal := historytest.NewFaultStore(store)
		first := newRunner(t, mortal, equip(t, &script{answers: answers{"a": hang}}, "one"))
		const runs = 6
		for i := range runs {
			atOnce(t, first, fmt.Sprint(i), d)
		}
		kill(t, first, mortal)
		o := equip(t, &script{}, "one")
		o.Work = graph.WorkOwn
		second := newRunner(t, store, o)
		time.Sleep(time.Hour)
		for range runs {
			if _, err := second.Recover(t.Context(), graph.RecoverRequest{Limit: 1}); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		for i := range runs {
			wantStatus(t, settled(t, second, fmt.Sprint(i)), machine.Completed)
		}
	})
}
