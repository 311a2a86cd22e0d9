package graph_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historymem"
)

// within gives a node a timeout.
func within(node, timeout string) string {
	return strings.TrimSuffix(node, "}") + fmt.Sprintf(`,"timeout":%q}`, timeout)
}

// TestTheTimeOfAnAttemptIsItsExecutors kills the driver of an attempt, and hands another one to a process that has its
// handler. The time in which nobody performs an attempt does not count; that in which somebody does counts in full, also
// where another process writes to the run meanwhile.
func TestTheTimeOfAnAttemptIsItsExecutors(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		takes time.Duration
		want  machine.Status
	}{
		"in time":  {4 * time.Second, machine.Completed},
		"too late": {6 * time.Second, machine.Failed},
	} {
		for kind, open := range stores {
			t.Run(name+" "+kind, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					both := open(t)
					d := workflow(t, "w", []string{
						startNode(), step("a", "one"), fork("f", "all", "b", "g"), within(step("b", "two"), "5s"), signalWait("g", "go"),
						within(step("c", "one"), "5s"), endNode(),
					}, "s a", "a f", "f c", "b c", "g c", "c e")
					bereft(t, both[0], d)
					one := &script{answers: answers{"a": after(time.Second, nil), "c": after(tt.takes, nil)}}
					var begun, deadline time.Time
					two := &script{answers: answers{"b": func(ctx context.Context, req activities.Request) (any, error) {
						begun, deadline = time.Now(), req.Deadline
						return after(4*time.Second, nil)(ctx, req)
					}}}
					first := newRunner(t, both[0], equip(t, one, "one"))
					time.Sleep(time.Minute) // the attempt at b waits for its process, which only comes now
					if run := status(t, first, "r"); run.Lacks == nil || run.Lacks.NodeID != "b" || run.Status.Terminal() {
						t.Fatalf("%+v", run)
					}
					newRunner(t, both[1], equip(t, two, "two"))
					time.Sleep(3 * time.Second)
					if _, err := first.Signal(t.Context(), graph.SignalRequest{ExecutionID: "r", Name: "go", Caller: graph.Caller{Wait: waitFor(0)}}); err != nil {
						t.Fatal(err)
					}
					run := settled(t, first, "r")
					if wantStatus(t, run, tt.want); tt.want == machine.Failed && (run.ErrorNodeID != "c" || run.ErrorCode != string(problem.Timeout)) {
						t.Errorf("%+v", run)
					}
					if begun.IsZero() || deadline.Sub(begun) != 5*time.Second {
						t.Errorf("begun at %v with a deadline at %v", begun, deadline)
					}
					once(t, both[0], "r")
				})
			})
		}
	}
}

// TestAKilledDriversAttemptHasItsTimeAgain takes over an attempt whose time would have passed while nobody performed it, and
// one that takes too long again: its time counts from the takeover, although another process writes to the run meanwhile.
func TestAKilledDriversAttemptHasItsTimeAgain(t *testing.T) {
	t.Parallel()
	for takes, want := range map[time.Duration]machine.Status{9 * time.Second: machine.Completed, 11 * time.Second: machine.Failed} {
		synctest.Test(t, func(t *testing.T) {
			store := historymem.New()
			d := workflow(t, "w", []string{
				startNode(), fork("f", "all", "a", "g", "h"), within(step("a", "one"), "10s"), signalWait("g", "go"), signalWait("h", "stop"), endNode(),
			}, "s f", "f e", "a e", "g e", "h e")
			bereft(t, store, d)
			time.Sleep(time.Minute)
			o := equip(t, &script{answers: answers{"a": after(takes, nil)}}, "one")
			o.Work = graph.WorkOwn
			r, other := newRunner(t, store, o), newRunner(t, store, graph.Options{})
			begun := time.Now()
			if run := status(t, r, "r"); run.Status != machine.Running { // asking takes nothing over, and times nothing out
				t.Errorf("%+v", run)
			}
			if res, err := r.Recover(t.Context(), graph.RecoverRequest{}); err != nil || len(res.ExecutionIDs) != 1 {
				t.Fatalf("%+v, %v", res, err)
			}
			if run := status(t, other, "r"); !run.Pending[0].Deadline.Equal(begun.Add(10 * time.Second)) {
				t.Errorf("others see the deadline %v", run.Pending[0].Deadline)
			}
			if due, err := store.DueTimers(t.Context(), time.Now(), 0); err != nil || len(due) > 0 {
				t.Errorf("timers due: %v, %v", due, err)
			}
			for _, signal := range []string{"go", "stop"} {
				time.Sleep(3 * time.Second)
				if _, err := other.Signal(t.Context(), graph.SignalRequest{ExecutionID: "r", Name: signal, Caller: graph.Caller{Wait: waitFor(0)}}); err != nil {
					t.Fatal(err)
				}
			}
			run := settled(t, r, "r")
			wantStatus(t, run, want)
			if took := time.Since(begun); took != min(takes, 10*time.Second) || want == machine.Failed && run.ErrorCode != string(problem.Timeout) {
				t.Errorf("after %s: %+v", took, run)
			}
			once(t, store, "r")
		})
	}
}

// TestAnAttemptThatAnotherProcessRequests has another process write to a run that is driven here, first what requests an
// attempt and then something else: the attempt is begun when the driver sees it, and has its full time from then on.
func TestAnAttemptThatAnotherProcessRequests(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := historymem.New()
		d := workflow(t, "w", []string{
			startNode(), fork("f", "all", "a", "g", "h"), step("a", "one"), signalWait("g", "go"), within(step("b", "one"), "10s"), signalWait("h", "stop"), endNode(),
		}, "s f", "f e", "a e", "g b", "b e", "h e")
		var deadline time.Time
		r := newRunner(t, store, equip(t, &script{answers: answers{"a": after(time.Minute, nil), "b": func(ctx context.Context, req activities.Request) (any, error) {
			deadline = req.Deadline
			return after(time.Until(deadline)-time.Millisecond, nil)(ctx, req)
		}}}, "one"))
		other := newRunner(t, store, graph.Options{})
		if _, err := r.Start(t.Context(), graph.StartRequest{ExecutionID: "r", Definition: d, Wait: graph.Wait{Limit: graph.NoWait}}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(3 * time.Second)
		requested := time.Now()
		for _, signal := range []string{"go", "stop"} {
			if _, err := other.Signal(t.Context(), graph.SignalRequest{ExecutionID: "r", Name: signal, Caller: graph.Caller{Wait: waitFor(0)}}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(3 * time.Second)
		}
		wantStatus(t, settled(t, r, "r"), machine.Completed)
		if late := deadline.Sub(requested); late <= 10*time.Second {
			t.Errorf("the deadline was %s after the request, as if it had been begun at once", late)
		}
		once(t, store, "r")
	})
}

// TestADeafExecutorOfAnAdoptedAttempt times an attempt out that another process requested and whose executor does not
// listen.
func TestADeafExecutorOfAnAdoptedAttempt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := historymem.New()
		d := workflow(t, "w", []string{startNode(), fork("f", "all", "g", "a"), step("a", "one"), signalWait("g", "go"), within(step("b", "one"), "10s"), endNode()},
			"s f", "f e", "a e", "g b", "b e")
		o := equip(t, &script{answers: answers{"a": after(time.Hour, nil), "b": func(context.Context, activities.Request) (any, error) {
			time.Sleep(time.Hour)
			return nil, nil
		}}}, "one")
		o.Work = graph.WorkOwn
		r := newRunner(t, store, o)
		atOnce(t, r, "r", d)
		time.Sleep(3 * time.Second)
		_, err := newRunner(t, store, graph.Options{}).Signal(t.Context(), graph.SignalRequest{ExecutionID: "r", Name: "go", Caller: graph.Caller{Wait: waitFor(0)}})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(15 * time.Second) // nobody asks
		if e, err := store.Execution(t.Context(), "r"); err != nil || e.Phase != history.PhaseFailed {
			t.Errorf("%+v, %v", e, err)
		}
		time.Sleep(2 * time.Hour)
	})
}
