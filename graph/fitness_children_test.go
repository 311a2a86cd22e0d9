package graph_test

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historymem"
	"github.com/workflows-engine/workflows-engine/history/historytest"
	"github.com/workflows-engine/workflows-engine/internal/soak"
)

// TestASubworkflowUnderWayBesideWhatIsMissing has a branch that nobody can perform beside a subworkflow that goes on by
// itself: the run is left alone, without a write, and is not said to be taken over. Once the subworkflow ends, its parent
// is told.
func TestASubworkflowUnderWayBesideWhatIsMissing(t *testing.T) {
	t.Parallel()
	for name, child := range map[string]*definition.Document{
		"signal":  workflow(t, "child", []string{startNode(), signalWait("c", "go"), endNode()}, "s c", "c e"),
		"timer":   workflow(t, "child", []string{startNode(), timerWait("c", "2h"), endNode()}, "s c", "c e"),
		"missing": workflow(t, "child", []string{startNode(), step("c", "two"), endNode()}, "s c", "c e"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				store := historymem.New()
				bereft(t, store, workflow(t, "w", []string{startNode(), fork("f", "all", "a", "v"), step("a", "two"), subworkflow("v", "urn:child"), endNode()},
					"s f", "f e", "a e", "v e"), child)
				watched := historytest.NewFaultStore(store)
				lone := newRunner(t, watched, equip(t, &script{}, "one"))
				register(t, lone, "urn:child", child)
				time.Sleep(2 * time.Minute)
				standsStill(t, lone, watched)
				switch name {
				case "signal":
					if _, err := lone.Signal(t.Context(), graph.SignalRequest{ExecutionID: "r", Name: "go"}); err != nil {
						t.Fatal(err)
					}
				case "timer":
					time.Sleep(2 * time.Hour)
				}
				if name != "missing" {
					if n := count(records(t, store, "r"), history.SubworkflowCompleted); n != 1 {
						t.Errorf("the parent was told %d times", n)
					}
					standsStill(t, lone, watched)
				}
				newRunner(t, store, equip(t, &script{}, "two"))
				wantStatus(t, settled(t, lone, "r"), machine.Completed)
				once(t, store, "r", "r:sub:v")
			})
		})
	}
}

// standsStill checks that nothing is written for a long time, and that nothing is taken over.
func standsStill(t *testing.T, r *graph.Runner, store *historytest.FaultStore) {
	t.Helper()
	store.Set(historytest.Fault{Reads: true})
	time.Sleep(time.Duration(soak.Size(60, 10, 60)) * time.Minute)
	if res, err := r.Recover(t.Context(), graph.RecoverRequest{}); err != nil || len(res.ExecutionIDs) > 0 {
		t.Errorf("recovered %+v, %v", res, err)
	}
	synctest.Wait()
	if ws := writes(store); len(ws) > 0 || len(store.Calls()) == 0 {
		t.Errorf("%d writes: %v", len(ws), ws[:min(10, len(ws))])
	}
}

// TestASubworkflowBesideWhatIsMissingAfterACrash kills the driver at each call of the store, between the request of a
// subworkflow and what its parent is told of its end. A process that lacks what the other branch needs sees to the
// subworkflow and its parent, and then stands still. If it does not know the workflow, which it has learnt of another run, it
// sees to what was begun.
func TestASubworkflowBesideWhatIsMissingAfterACrash(t *testing.T) {
	t.Parallel()
	child := workflow(t, "child", []string{startNode(), step("c", "one"), endNode()}, "s c", "c e")
	d := workflow(t, "w", []string{startNode(), fork("f", "all", "a", "v"), step("a", "two"), subworkflow("v", "urn:child"), endNode()},
		"s f", "f e", "a e", "v e")
	other := workflow(t, "o", []string{startNode(), step("a", "one"), subworkflow("v", "urn:child"), endNode()}, "s a", "a v", "v e")
	for _, late := range []bool{false, true} {
		for _, known := range []bool{true, false} {
			t.Run(fmt.Sprintf("late %v known %v", late, known), func(t *testing.T) {
				t.Parallel()
				seen := map[string]bool{}
				// The order of the calls differs from time to time.
				for n, passes := 1, 0; passes == 0 || len(seen) < 3 && passes < 20; n++ {
					synctest.Test(t, func(t *testing.T) {
						store := historymem.New()
						watched := historytest.NewFaultStore(store)
						bereftAs(t, store, "other", other)
						lone := newRunner(t, watched, equip(t, &script{}, "one"))
						if known {
							register(t, lone, "urn:child", child)
						}
						time.Sleep(2 * time.Minute)
						mortal := historytest.NewFaultStore(store)
						driver := newRunner(t, mortal, equip(t, &script{answers: answers{"a": hang}}, "one", "two"))
						register(t, driver, "urn:child", child)
						mortal.Set(historytest.Fault{At: n, Reads: true, Dead: true, AfterCommit: late})
						_, _ = driver.Start(t.Context(), graph.StartRequest{ExecutionID: "r", Definition: d, Wait: graph.Wait{Limit: graph.NoWait}})
						synctest.Wait()
						told := count(records(t, store, "r"), history.SubworkflowCompleted) > 0
						if !mortal.Struck() {
							n, passes = 0, passes+1
						}
						kill(t, driver, mortal)
						if _, err := store.Execution(t.Context(), "r"); err != nil {
							return
						}
						begun := true
						switch c, err := store.Execution(t.Context(), "r:sub:v"); {
						case err != nil:
							seen["requested"], begun = true, false
						case !c.Phase.Terminal():
							seen["begun"] = true
						case !told:
							seen["ended"] = true
						}
						time.Sleep(2 * time.Minute)
						if rs := records(t, store, "r"); (known || begun) && count(rs, history.SubworkflowCompleted) != 1 {
							t.Fatalf("call %d: the parent was not told: %v", n, names(rs, ""))
						}
						standsStill(t, lone, watched)
						register(t, newRunner(t, store, equip(t, &script{}, "two")), "urn:child", child)
						wantStatus(t, settled(t, lone, "r"), machine.Completed)
						once(t, store, "r", "r:sub:v")
					})
				}
				if len(seen) != 3 {
					t.Errorf("killed only where the subworkflow was %v", seen)
				}
			})
		}
	}
}

// TestAStartAgainTakesUpWhatIsBelow asks for a run whose subworkflow's subworkflow has lost its driver: nothing is to be
// done for the runs above it, and it is taken over all the same.
func TestAStartAgainTakesUpWhatIsBelow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := historymem.New()
		mortal := historytest.NewFaultStore(store)
		families := map[string]*definition.Document{
			"urn:middle": workflow(t, "middle", []string{startNode(), subworkflow("m", "urn:inner"), endNode()}, "s m", "m e"),
			"urn:inner":  workflow(t, "inner", []string{startNode(), step("c", "one"), endNode()}, "s c", "c e"),
		}
		open := func(store history.Store, work *script) *graph.Runner {
			r := newRunner(t, store, graph.Options{Activities: work})
			for ref, d := range families {
				register(t, r, ref, d)
			}
			return r
		}
		first := open(mortal, &script{answers: answers{"c": hang}})
		d := workflow(t, "w", []string{startNode(), subworkflow("v", "urn:middle"), endNode()}, "s v", "v e")
		if _, err := first.Start(t.Context(), graph.StartRequest{ExecutionID: "r", Definition: d, Wait: graph.Wait{Limit: graph.NoWait}}); err != nil {
			t.Fatal(err)
		}
		kill(t, first, mortal)
		time.Sleep(time.Minute)
		work := &script{}
		run, err := open(store, work).Start(t.Context(), graph.StartRequest{ExecutionID: "r", AllowExisting: true})
		if err != nil {
			t.Fatal(err)
		}
		if wantStatus(t, run, machine.Completed); !slices.Equal(work.keys(), []string{"r:sub:v:sub:m:c#1.1"}) {
			t.Errorf("performed %v", work.keys())
		}
	})
}
