package graph_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historymem"
	"github.com/workflows-engine/workflows-engine/history/historytest"
)

func TestShortTimersAreWaitedForInLine(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRunner(t, historymem.New(), graph.Options{})
		d := workflow(t, "w", []string{startNode(), timerWait("w", "5s"), endNode()}, "s w", "w e")
		begun := time.Now()
		wantStatus(t, start(t, r, "r", d, nil), machine.Completed)
		if time.Since(begun) != 5*time.Second {
			t.Errorf("took %s", time.Since(begun))
		}
	})
}

// TestW43_LongTimersDoNotBlockTheCall answers at once, and the run goes on in the background.
func TestW43_LongTimersDoNotBlockTheCall(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRunner(t, historymem.New(), graph.Options{Activities: &script{}})
		d := workflow(t, "w", []string{startNode(), timerWait("w", "1h"), tool("a"), endNode()}, "s w", "w a", "a e")
		begun := time.Now()
		run := start(t, r, "r", d, nil)
		wantStatus(t, run, machine.AwaitingTimer)
		if time.Since(begun) != 0 {
			t.Errorf("blocked for %s", time.Since(begun))
		}
		if p := run.Pending[0]; p.Kind != machine.WaitTimer || !p.Due.Equal(begun.Add(time.Hour)) || p.ID != "r:w#1" {
			t.Errorf("pending %+v", p)
		}
		time.Sleep(time.Hour + time.Second)
		wantStatus(t, status(t, r, "r"), machine.Completed)
	})
}

// TestW08_TimersSurviveARestart also covers W-08b: long waits do not fire early.
func TestW08_TimersSurviveARestart(t *testing.T) {
	t.Parallel()
	for name, revive := range map[string]func(*testing.T, *graph.Runner){
		"by asking": func(t *testing.T, r *graph.Runner) { status(t, r, "r") },
		"by Recover": func(t *testing.T, r *graph.Runner) {
			if _, err := r.Recover(t.Context(), graph.RecoverRequest{}); err != nil {
				t.Error(err)
			}
		},
		"in the background": func(*testing.T, *graph.Runner) { time.Sleep(20 * time.Second) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				store := historymem.New()
				o := graph.Options{Activities: &script{}, Work: workAll(name == "in the background")}
				r := newRunner(t, store, o)
				d := workflow(t, "w", []string{startNode(), timerWait("w", "1000h"), tool("a"), endNode()}, "s w", "w a", "a e")
				wantStatus(t, start(t, r, "r", d, nil), machine.AwaitingTimer)
				if err := r.Close(); err != nil {
					t.Fatal(err)
				}
				time.Sleep(500 * time.Hour)
				r = newRunner(t, store, o)
				revive(t, r)
				wantStatus(t, status(t, r, "r"), machine.AwaitingTimer)
				if err := r.Close(); err != nil {
					t.Fatal(err)
				}
				time.Sleep(500 * time.Hour)
				r = newRunner(t, store, o)
				revive(t, r)
				wantStatus(t, settled(t, r, "r"), machine.Completed)
				if n := count(records(t, store, "r"), history.TimerFired); n != 1 {
					t.Errorf("%d TimerFired", n)
				}
			})
		})
	}
}

func TestHostDeadlinesAreEnforced(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r, store := host(t, graph.Options{})
		d := workflow(t, "lin", []string{startNode(), tool("a", `"timeout":"1m"`, `"retry":{"max_attempts":2}`), endNode()}, "s a", "a e")
		start(t, r, "r", d, nil)
		start(t, r, "r2", d, nil)
		time.Sleep(61 * time.Second)
		run := status(t, r, "r")
		wantStatus(t, run, machine.AwaitingActivity)
		if p := run.Pending[0]; p.Attempt != 2 || p.LastCode != string(problem.Timeout) {
			t.Errorf("pending %+v", p)
		}
		// A process that only answers fires what is due before it decides.
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(61 * time.Second)
		late := newRunner(t, store, graph.Options{})
		_, err := late.SubmitActivity(t.Context(), graph.SubmitRequest{ExecutionID: "r", NodeID: "a", OK: true})
		wantCode(t, err, problem.SubmitNotAwaiting)
		run = status(t, late, "r")
		wantStatus(t, run, machine.Failed)
		if run.ErrorCode != string(problem.Timeout) {
			t.Errorf("run %+v", run)
		}
	})
}

// TestAProcessWithoutExecutorsFiresTimers holds that a process without executors lets the time of a run come, and leaves
// what follows to others.
func TestAProcessWithoutExecutorsFiresTimers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := historymem.New()
		o := graph.Options{Activities: &script{}}
		r := newRunner(t, store, o)
		d := workflow(t, "w", []string{startNode(), timerWait("w", "1h"), tool("a"), endNode()}, "s w", "w a", "a e")
		start(t, r, "r", d, nil)
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Hour)
		other := newRunner(t, store, graph.Options{Work: graph.WorkAll})
		time.Sleep(time.Minute)
		if _, err := other.Recover(t.Context(), graph.RecoverRequest{}); err != nil {
			t.Fatal(err)
		}
		run := status(t, other, "r")
		if wantStatus(t, run, machine.Running); run.Lacks == nil || run.Lacks.NodeID != "a" {
			t.Errorf("lacks %+v", run.Lacks)
		}
		o.Work = graph.WorkAll
		wantStatus(t, settled(t, newRunner(t, store, o), "r"), machine.Completed)
	})
}

// TestATimerIsFiredByWhoKnewTheRunBefore sets a timer, in a process that dies, of a run that another process knows as it
// stood before: it is fired there, by WorkAll and by Recover.
func TestATimerIsFiredByWhoKnewTheRunBefore(t *testing.T) {
	t.Parallel()
	for _, background := range []bool{true, false} {
		for kind, open := range stores {
			t.Run(fmt.Sprint(kind, " background=", background), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					both := open(t)
					d := workflow(t, "w", []string{startNode(), interrupt("i"), timerWait("t", "10m"), endNode()}, "s i", "i t", "t e")
					first := newRunner(t, both[0], graph.Options{Work: workAll(background)})
					wantStatus(t, start(t, first, "r", d, nil), machine.Interrupted)
					mortal := historytest.NewFaultStore(both[1])
					other := newRunner(t, mortal, graph.Options{})
					_, err := other.Resume(t.Context(), graph.ResumeRequest{ExecutionID: "r", Payload: object{"ok": true}, Caller: graph.Caller{Wait: waitFor(0)}})
					if err != nil {
						t.Fatal(err)
					}
					kill(t, other, mortal)
					time.Sleep(11 * time.Minute)
					if !background {
						if _, err := first.Recover(t.Context(), graph.RecoverRequest{}); err != nil {
							t.Fatal(err)
						}
					}
					synctest.Wait()
					if e, err := both[0].Execution(t.Context(), "r"); err != nil || e.Phase != history.PhaseCompleted {
						t.Errorf("%s, %v", e.Phase, err)
					}
				})
			})
		}
	}
}

// TestShortTimersOfADeadProcess sets timers, in a process that dies, that are due before another process searches the store
// again: it fires them within two seconds, whenever they were set. While nothing is overdue it asks for nothing but the
// overview, and it never writes.
func TestShortTimersOfADeadProcess(t *testing.T) {
	t.Parallel()
	for kind, open := range stores {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				both := open(t)
				watched, mortal := historytest.NewFaultStore(both[0]), historytest.NewFaultStore(both[1])
				newRunner(t, watched, graph.Options{Work: graph.WorkAll})
				other := newRunner(t, mortal, graph.Options{})
				atOnce(t, other, "late", workflow(t, "w", []string{startNode(), timerWait("t", "1h"), endNode()}, "s t", "t e"))
				time.Sleep(time.Minute)
				watched.Set(historytest.Fault{Reads: true})
				time.Sleep(10 * time.Minute)
				calls := map[string]int{}
				for _, call := range watched.Calls() {
					calls[call]++
				}
				if n := calls["Overview"]; n < 590 || n > 601 || calls["DueTimers"] > 0 || calls["Execution"] > 0 || len(writes(watched)) > 0 {
					t.Errorf("in ten quiet minutes: %v", calls)
				}
				d := workflow(t, "w3", []string{startNode(), timerWait("t", "3s"), endNode()}, "s t", "t e")
				const runs = 23
				for i := range runs {
					atOnce(t, other, fmt.Sprint(i), d)
					if i < runs-1 {
						time.Sleep(100 * time.Millisecond)
					}
				}
				kill(t, other, mortal)
				time.Sleep(20 * time.Second)
				for i := range runs {
					rs := records(t, both[0], fmt.Sprint(i))
					due, fired := time.Time{}, time.Time{}
					for _, rec := range rs {
						switch rec.Name {
						case history.TimerStarted:
							due = rec.Payload.DueAt
						case history.TimerFired:
							fired = rec.CreatedAt
						}
					}
					if late := fired.Sub(due); fired.IsZero() || late > 2*time.Second+10*time.Millisecond {
						t.Errorf("run %d: fired %s late (%s)", i, late, fired)
					}
				}
			})
		})
	}
}

// TestAnEarlierTimerOfAnotherProcess adds a timer that is due before the one that a process knows of a run, in another
// process that dies: it is fired in time, and then the other one.
func TestAnEarlierTimerOfAnotherProcess(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := historymem.New()
		d := workflow(t, "w", []string{
			startNode(), fork("f", "all", "far", "g"), timerWait("far", "10h"), signalWait("g", "go"), timerWait("near", "1m"), endNode(),
		}, "s f", "f e", "far e", "g near", "near e")
		begun := time.Now()
		first := newRunner(t, store, graph.Options{Work: graph.WorkAll})
		atOnce(t, first, "r", d)
		mortal := historytest.NewFaultStore(store)
		other := newRunner(t, mortal, graph.Options{})
		_, err := other.Signal(t.Context(), graph.SignalRequest{ExecutionID: "r", Name: "go", Caller: graph.Caller{Wait: waitFor(0)}})
		if err != nil {
			t.Fatal(err)
		}
		kill(t, other, mortal)
		time.Sleep(24 * time.Hour)
		var fired []time.Duration
		for _, rec := range records(t, store, "r") {
			if rec.Name == history.TimerFired {
				fired = append(fired, rec.CreatedAt.Sub(begun).Truncate(5*time.Second))
			}
		}
		if !slices.Equal(fired, []time.Duration{time.Minute, 10 * time.Hour}) {
			t.Errorf("fired after %v", fired)
		}
	})
}

// TestTimersBehindThoseThatNobodyFires has runs with many overdue timers each that are left to others, and one whose only
// timer came due after all of them: a process that looks at few runs at a time comes to it.
func TestTimersBehindThoseThatNobodyFires(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := historymem.New()
		const runs, timers, limit = 5, 20, 2
		nodes, edges, entries := []string{startNode()}, []string{"s f", "f e"}, []string{}
		for i := range timers {
			id := fmt.Sprint("b", i)
			nodes = append(nodes, step(id, "two", `"retry":{"max_attempts":2,"initial_interval":"1m"}`))
			edges, entries = append(edges, id+" e"), append(entries, id)
		}
		d := workflow(t, "w", append(nodes, fork("f", "all", entries...), endNode()), edges...)
		failing := activities.ExecutorFunc(func(context.Context, activities.Request) (activities.Result, error) {
			return activities.Result{}, errors.New("not yet")
		})
		all := newRunner(t, store, graph.Options{Activities: failing})
		for i := range runs {
			atOnce(t, all, fmt.Sprint(i), d)
		}
		atOnce(t, all, "free", workflow(t, "w2", []string{startNode(), timerWait("t", "2m"), endNode()}, "s t", "t e"))
		closeRunner(t, all)
		o := equip(t, &script{}, "one")
		o.Work = graph.WorkOwn
		lone := newRunner(t, store, o)
		time.Sleep(time.Hour)
		for range (runs + limit) / limit { // a round more than the runs that are left take
			if _, err := lone.Recover(t.Context(), graph.RecoverRequest{Limit: limit}); err != nil {
				t.Fatal(err)
			}
		}
		if e, err := store.Execution(t.Context(), "free"); err != nil || e.Phase != history.PhaseCompleted {
			t.Errorf("%s, %v", e.Phase, err)
		}
	})
}
