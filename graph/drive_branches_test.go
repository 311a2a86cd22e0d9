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
	"github.com/workflows-engine/workflows-engine/graph/view"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historymem"
)

// askingItems maps three items, two at a time, to subworkflows that perform tool a and then ask.
func askingItems(t *testing.T, r *graph.Runner) *definition.Document {
	t.Helper()
	register(t, r, "urn:leaf", workflow(t, "leaf", []string{startNode(), tool("a"), interrupt("i"), endNode()}, "s a", "a i", "i e"))
	return workflowWith(t, "items", `"x-workflows-engine":{"uses":["map"]}`,
		[]string{startNode(), `{"id":"m","type":"subworkflow","config":{"workflow_ref":"urn:leaf","input_mapping":{}},"map":{"items":"[1,2,3]","concurrency":2,"collect":"out"}}`, endNode()}, "s m", "m e")
}

// askingAndHanging returns a process whose run r asks in the subworkflow of one item while that of another performs its tool without an end.
func askingAndHanging(t *testing.T, store history.Store) *graph.Runner {
	t.Helper()
	var calls atomic.Int32
	r := newRunner(t, store, graph.Options{LeaseTTL: time.Minute, Owner: "other", Activities: activities.ExecutorFunc(
		func(ctx context.Context, req activities.Request) (activities.Result, error) {
			if calls.Add(1) > 1 {
				return hangs(ctx, req)
			}
			return activities.Result{Output: map[string]any{}}, nil
		})})
	d := askingItems(t, r)
	if _, err := r.Start(t.Context(), graph.StartRequest{ExecutionID: "r", Definition: d, Wait: graph.Wait{Limit: graph.NoWait}}); err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
	wantKinds(t, status(t, r, "r"), machine.WaitInterrupt, machine.WaitActivity)
	return r
}

// wantKinds compares the kinds of the waits of a run, in any order.
func wantKinds(t *testing.T, run *view.Run, want ...machine.WaitKind) {
	t.Helper()
	left := map[machine.WaitKind]int{}
	for _, k := range want {
		left[k]++
	}
	var got []machine.WaitKind
	for _, p := range run.Pending {
		got = append(got, p.Kind)
		left[p.Kind]--
	}
	for _, n := range left {
		if n != 0 {
			t.Fatalf("waits %v, want %v", got, want)
		}
	}
}

// TestDriveClaimsSubworkflowsBesideAQuestion: the subworkflow that an ended process has left is claimed and driven to its question, although
// another one already asks. A call that does not finish branches returns at once.
func TestDriveClaimsSubworkflowsBesideAQuestion(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := historymem.New()
		askingAndHanging(t, store).Close()
		r := newRunner(t, store, graph.Options{Activities: &script{}})
		run, took, owners := drive(t, r, graph.DriveRequest{Caller: limited(time.Hour), FinishBranches: true})
		wantStatus(t, run, machine.Interrupted)
		wantKinds(t, run, machine.WaitInterrupt, machine.WaitInterrupt)
		if took > time.Second || len(owners) > 0 {
			t.Errorf("took %v, owners %v", took, owners)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		store := historymem.New()
		askingAndHanging(t, store)
		r := newRunner(t, store, graph.Options{Activities: &script{}})
		if _, took, owners := drive(t, r, graph.DriveRequest{Caller: limited(time.Hour)}); took != 0 || len(owners) > 0 {
			t.Errorf("without FinishBranches: took %v, owners %v", took, owners)
		}
	})
}

// TestDriveWaitsForTheOwnerBesideAQuestion: while a live process performs the subworkflow, the call waits; it claims the subworkflow within a
// second after that process has closed, and ends within a second if it lacks the executor.
func TestDriveWaitsForTheOwnerBesideAQuestion(t *testing.T) {
	t.Parallel()
	for _, lacks := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			store := historymem.New()
			other := askingAndHanging(t, store)
			go func() { time.Sleep(40 * time.Second); other.Close() }()
			o := graph.Options{Activities: &script{}}
			if lacks {
				o.Activities = nil
			}
			run, took, owners := drive(t, newRunner(t, store, o), graph.DriveRequest{Caller: limited(time.Hour), FinishBranches: true, StopAtTimer: true})
			wantStatus(t, run, machine.Interrupted)
			if took < 40*time.Second || took > 42*time.Second || len(owners) != 1 {
				t.Errorf("lacks %v: took %v, owners %v", lacks, took, owners)
			}
			if lacks != (run.Lacks != nil && !run.Lacks.Host) {
				t.Errorf("lacks %v, want %v", run.Lacks, lacks)
			}
			if !lacks {
				wantKinds(t, run, machine.WaitInterrupt, machine.WaitInterrupt)
			}
		})
	}
}

// TestDriveLeavesSubworkflowsBesideAQuestion: an orphaned subworkflow whose executor is missing here ends the call, without a write.
func TestDriveLeavesSubworkflowsBesideAQuestion(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := historymem.New()
		askingAndHanging(t, store).Close()
		r := newRunner(t, store, graph.Options{})
		unchanged(t, store, func() {
			run, took, _ := drive(t, r, graph.DriveRequest{Caller: limited(time.Hour), FinishBranches: true})
			if run.Lacks == nil || run.Lacks.Host || took > 0 {
				t.Errorf("took %v, lacks %v", took, run.Lacks)
			}
		})
	})
}

// TestDriveFinishesTheNextItem: after the last answer of an item, the subworkflow of the next item is driven to its question, however long its
// first step takes, so that a process that ends then leaves nothing to others.
func TestDriveFinishesTheNextItem(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := historymem.New()
		begin := newRunner(t, store, graph.Options{Activities: &script{}})
		start(t, begin, "r", askingItems(t, begin), nil)
		run, _, _ := drive(t, begin, graph.DriveRequest{Caller: limited(time.Hour), FinishBranches: true})
		wantKinds(t, run, machine.WaitInterrupt, machine.WaitInterrupt)
		begin.Close()

		r := newRunner(t, store, graph.Options{Activities: &script{answers: answers{"a": after(time.Minute, object{})}}})
		register(t, r, "urn:leaf", workflow(t, "leaf", []string{startNode(), tool("a"), interrupt("i"), endNode()}, "s a", "a i", "i e"))
		if _, err := r.Resume(t.Context(), graph.ResumeRequest{ExecutionID: "r", InterruptID: run.Pending[0].ID, Payload: object{"ok": true}}); err != nil {
			t.Fatal(err)
		}
		run, took, _ := drive(t, r, graph.DriveRequest{Caller: limited(time.Hour), FinishBranches: true})
		wantKinds(t, run, machine.WaitInterrupt, machine.WaitInterrupt)
		if took < time.Minute || took > time.Minute+time.Second {
			t.Errorf("took %v", took)
		}
		if ids, err := store.Unowned(t.Context(), 10); err != nil || len(ids) > 0 {
			t.Errorf("runs without an owner that need one: %v, %v", ids, err)
		}
	})
}

// TestDriveAndTimersOfBranches: a timer beside a question is waited for within the limit, unless StopAtTimer is set.
func TestDriveAndTimersOfBranches(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		stop        bool
		limit, want time.Duration
	}{{false, 2 * time.Hour, time.Hour}, {false, time.Minute, 0}, {true, 2 * time.Hour, 0}} {
		synctest.Test(t, func(t *testing.T) {
			r := newRunner(t, historymem.New(), graph.Options{})
			start(t, r, "r", workflow(t, "both", []string{startNode(), fork("f", "all", "w", "n"), signalWait("w", "go"), timerWait("n", "1h"), endNode()},
				"s f", "f e", "w e", "n e"), nil)
			_, took, _ := drive(t, r, graph.DriveRequest{Caller: limited(tt.limit), StopAtTimer: tt.stop, FinishBranches: true})
			if took < tt.want || took > tt.want+time.Second {
				t.Errorf("%s: took %v, want %v", fmt.Sprint(tt), took, tt.want)
			}
		})
	}
}

// TestDriveEndsWithoutWorkers: a run that waits in a queue without a live worker ends the call, also as a subworkflow.
func TestDriveEndsWithoutWorkers(t *testing.T) {
	t.Parallel()
	for _, child := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			store := historymem.New()
			r := newRunner(t, store, graph.Options{Activities: &script{}, Queues: []string{"cpu"}})
			d := workflowWith(t, "one", `"x-workflows-engine":{"uses":["queue"]}`, []string{startNode(), tool("a", `"queue":"gpu"`), endNode()}, "s a", "a e")
			if child {
				register(t, r, "urn:child", d)
				d = workflow(t, "parent", []string{startNode(), subworkflow("v", "urn:child"), endNode()}, "s v", "v e")
			}
			if _, err := r.Start(t.Context(), graph.StartRequest{ExecutionID: "r", Definition: d, Wait: graph.Wait{Limit: graph.NoWait}}); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			run, took, _ := drive(t, r, graph.DriveRequest{Caller: limited(time.Hour)})
			wantStatus(t, run, machine.Running)
			if took > 2*time.Second {
				t.Errorf("child %v: took %v; ready %+v, lacks %+v", child, took, run.Ready, run.Lacks)
			}
		})
	}
}
