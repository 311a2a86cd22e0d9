package graph_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history/historymem"
)

// deficient is an executor that has the handler "one" and fails every other node for good, as a process does that was
// asked to perform what it lacks.
type deficient struct{ *script }

func (deficient) Capabilities(n activities.Node) activities.Capabilities {
	return performs(n.Config["handler"] == "one")
}

func (d deficient) Execute(ctx context.Context, req activities.Request) (activities.Result, error) {
	if d.Capabilities(req.Node()).Missing != activities.MissingNothing {
		return activities.Result{}, activities.Fail(problem.ExecutorNotConfigured, "no handler here")
	}
	return d.script.Execute(ctx, req)
}

// TestARunThatOthersDroveOnIsNotFailedWhereItBegan has a run answered in a process that has everything and that is gone
// while a back-off or a task lasts. The process in which it began lacks what comes, and leaves it, whoever asks it what.
func TestARunThatOthersDroveOnIsNotFailedWhereItBegan(t *testing.T) {
	t.Parallel()
	for name, again := range map[string]string{
		"back-off": step("b", "two", `"retry":{"max_attempts":5,"initial_interval":"10m"}`),
		"task":     delegateNode("b"),
	} {
		for _, evicted := range []bool{false, true} {
			t.Run(fmt.Sprint(name, " evicted=", evicted), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					store, remote := historymem.New(), &agent{}
					d := workflow(t, "w", []string{startNode(), step("a", "one"), timed(interrupt("i"), "3h"), again, endNode()}, "s a", "a i", "i b", "b e")
					first := newRunner(t, store, graph.Options{Activities: deficient{&script{}}, Work: graph.WorkAll})
					if evicted {
						graph.KeepIdle(first, 0)
					}
					wantStatus(t, start(t, first, "r", d, nil), machine.Interrupted)
					o := equip(t, &script{answers: answers{"b": func(context.Context, activities.Request) (any, error) { return nil, errors.New("not yet") }}}, "one", "two")
					o.Delegates = remote
					all := newRunner(t, store, o)
					_, err := all.Resume(t.Context(), graph.ResumeRequest{ExecutionID: "r", Payload: object{"ok": true}, Caller: graph.Caller{Wait: waitFor(0)}})
					if err != nil {
						t.Fatal(err)
					}
					time.Sleep(time.Minute)
					closeRunner(t, all)
					for range 20 { // the alarm of the first for the interrupt's deadline rings too
						time.Sleep(15 * time.Minute)
						if run := status(t, first, "r"); run.Status.Terminal() || run.Lacks == nil || run.Lacks.NodeID != "b" {
							t.Fatalf("%s %s lacks %+v", run.Status, run.Error, run.Lacks)
						}
						synctest.Wait()
					}
					if name == "task" {
						remote.becomes("r:b#1.1", activities.Task{State: activities.TaskCompleted})
					}
					o = equip(t, &script{}, "one", "two")
					o.Delegates = remote
					newRunner(t, store, o)
					wantStatus(t, settled(t, first, "r"), machine.Completed)
				})
			})
		}
	}
}

// TestARefusedStartClaimsNothing asks a process to begin a run under the id of one that another process began: it stays
// none of its own.
func TestARefusedStartClaimsNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := historymem.New()
		d := workflow(t, "w", []string{startNode(), interrupt("i"), step("b", "two"), endNode()}, "s i", "i b", "b e")
		all := newRunner(t, store, equip(t, &script{}, "two"))
		wantStatus(t, start(t, all, "r", d, nil), machine.Interrupted)
		other := newRunner(t, store, graph.Options{Activities: deficient{&script{}}})
		status(t, other, "r")
		_, err := other.Start(t.Context(), graph.StartRequest{ExecutionID: "r", Definition: d})
		wantCode(t, err, problem.DuplicateExecutionID)
		_, err = other.Resume(t.Context(), graph.ResumeRequest{ExecutionID: "r", Payload: object{"ok": true}, Caller: graph.Caller{Wait: waitFor(0)}})
		if err != nil {
			t.Fatal(err)
		}
		wantStatus(t, settled(t, all, "r"), machine.Completed)
	})
}

// TestTheEndOfASubworkflowClaimsNothing has another process drive a run on while a subworkflow of it is under way where both
// began, and its parent is not at hand there any more: when the subworkflow ends, what its parent comes to and what is missing
// there is left to others.
func TestTheEndOfASubworkflowClaimsNothing(t *testing.T) {
	t.Parallel()
	for _, evicted := range []bool{false, true} {
		t.Run(fmt.Sprint("evicted=", evicted), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				store := historymem.New()
				child := workflow(t, "child", []string{startNode(), step("c", "one"), endNode()}, "s c", "c e")
				d := workflow(t, "w", []string{
					startNode(), fork("f", "all", "v", "g"), subworkflow("v", "urn:child"), signalWait("g", "go"), step("a", "two"), step("b", "two"), endNode(),
				}, "s f", "f b", "v b", "g a", "a b", "b e")
				first := newRunner(t, store, graph.Options{Activities: deficient{&script{answers: answers{"c": after(time.Hour, nil)}}}, Work: graph.WorkAll})
				register(t, first, "urn:child", child)
				if evicted {
					graph.KeepIdle(first, 0)
				}
				atOnce(t, first, "r", d)
				all := newRunner(t, store, equip(t, &script{answers: answers{"a": after(10*time.Minute, nil)}}, "one", "two"))
				if _, err := all.Signal(t.Context(), graph.SignalRequest{ExecutionID: "r", Name: "go", Caller: graph.Caller{Wait: waitFor(0)}}); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Minute)
				status(t, first, "r") // a run that another process performs something for is not kept at hand
				time.Sleep(20 * time.Minute)
				closeRunner(t, all)
				time.Sleep(2 * time.Hour)
				if run := status(t, first, "r"); run.Status.Terminal() || run.Lacks == nil || run.Lacks.NodeID != "b" {
					t.Fatalf("%s %s lacks %+v", run.Status, run.Error, run.Lacks)
				}
				newRunner(t, store, equip(t, &script{}, "two"))
				wantStatus(t, settled(t, first, "r"), machine.Completed)
			})
		})
	}
}
