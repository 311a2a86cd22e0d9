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
)

// phase is where a run stands in the store. Unlike status it heals nothing.
func phase(t *testing.T, store history.Store, id string) history.Phase {
	t.Helper()
	e, err := store.Execution(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return e.Phase
}

// TestAParentIsToldAgainWhenTheStoreFailsInPassing lets the append fail that tells a parent of its subworkflow's end. Nobody
// looks for runs without a driver, and nobody asks.
func TestAParentIsToldAgainWhenTheStoreFailsInPassing(t *testing.T) {
	t.Parallel()
	for _, late := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			store := historymem.New()
			unsteady := historytest.NewFaultStore(store)
			r := newRunner(t, unsteady, graph.Options{Activities: &script{answers: answers{"c": after(time.Minute, nil)}}})
			register(t, r, "urn:child", workflow(t, "child", []string{startNode(), step("c", "one"), endNode()}, "s c", "c e"))
			d := workflow(t, "w", []string{startNode(), subworkflow("v", "urn:child"), endNode()}, "s v", "v e")
			if _, err := r.Start(t.Context(), graph.StartRequest{ExecutionID: "r", Definition: d, Wait: graph.Wait{Limit: graph.NoWait}}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(30 * time.Second)
			unsteady.Set(historytest.Fault{At: 2, AfterCommit: late})
			time.Sleep(35 * time.Second)
			if got := phase(t, store, "r"); !unsteady.Struck() || got != history.PhaseCompleted {
				t.Errorf("struck %v, and the parent is %s", unsteady.Struck(), got)
			}
			once(t, store, "r", "r:sub:v")
		})
	}
}

// TestASubworkflowIsCancelledAgainWhenTheStoreFailsInPassing lets the append fail that cancels a subworkflow whose parent does
// not wait for it any more, but goes on.
func TestASubworkflowIsCancelledAgainWhenTheStoreFailsInPassing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := historymem.New()
		unsteady := historytest.NewFaultStore(store)
		r := newRunner(t, unsteady, graph.Options{Activities: &script{answers: answers{"a": after(time.Minute, nil), "b": hang, "c": hang}}})
		register(t, r, "urn:child", workflow(t, "child", []string{startNode(), step("c", "one"), endNode()}, "s c", "c e"))
		d := workflow(t, "w", []string{startNode(), fork("f", "any", "a", "v"), step("a", "one"), subworkflow("v", "urn:child"), step("b", "one"), endNode()},
			"s f", "f b", "a b", "v b", "b e")
		if _, err := r.Start(t.Context(), graph.StartRequest{ExecutionID: "r", Definition: d, Wait: graph.Wait{Limit: graph.NoWait}}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(30 * time.Second)
		unsteady.Set(historytest.Fault{At: 2})
		time.Sleep(35 * time.Second)
		if got := phase(t, store, "r:sub:v"); !unsteady.Struck() || got != history.PhaseCancelled {
			t.Errorf("struck %v, and the subworkflow is %s", unsteady.Struck(), got)
		}
	})
}

// outage is a store that fails whatever is appended to one run until a time.
type outage struct {
	history.Store
	id    string
	until atomic.Pointer[time.Time]
}

func (o *outage) begin(d time.Duration) {
	until := time.Now().Add(d)
	o.until.Store(&until)
}

func (o *outage) Append(ctx context.Context, b history.Batch) error {
	if until := o.until.Load(); b.ExecutionID == o.id && until != nil && time.Now().Before(*until) {
		return problem.New(problem.StoreUnavailable, "away")
	}
	return o.Store.Append(ctx, b)
}

// TestADriverLearnsWhatNobodyToldIt ends a subworkflow whose parent has another branch under way, and whoever ended it dies
// before the parent is told, or cannot tell it for a while. The parent is no orphan; its driver hears of it within moments,
// also one that commits all the time.
func TestADriverLearnsWhatNobodyToldIt(t *testing.T) {
	t.Parallel()
	const oddly = 60*time.Second + 333*time.Millisecond // at no time at which a driver looks after its runs
	child := workflow(t, "child", []string{startNode(), step("c", "two"), endNode()}, "s c", "c e")
	branch := func(takes time.Duration, steps int) (nodes, edges []string, as answers) {
		as = answers{"c": after(oddly, nil)}
		for i := range steps {
			id := fmt.Sprint("a", i)
			nodes, as[id] = append(nodes, step(id, "one")), after(takes, nil)
			next := "e"
			if i+1 < steps {
				next = fmt.Sprint("a", i+1)
			}
			edges = append(edges, id+" "+next)
		}
		return nodes, edges, as
	}
	for name, tt := range map[string]struct {
		join  string
		takes time.Duration // a step of the other branch
		steps int
		own   bool // the driver performs the subworkflow too
		want  history.Phase
	}{
		"join any":         {"any", 10 * time.Hour, 1, false, history.PhaseCompleted},
		"join all":         {"all", 10 * time.Hour, 1, false, history.PhaseRunning},
		"a busy driver":    {"any", 400 * time.Millisecond, 400, false, history.PhaseCompleted},
		"the same process": {"any", 10 * time.Hour, 1, true, history.PhaseCompleted},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				store := historymem.New()
				nodes, edges, as := branch(tt.takes, tt.steps)
				d := workflow(t, "w", append([]string{startNode(), fork("f", tt.join, "a0", "v"), subworkflow("v", "urn:child"), endNode()}, nodes...),
					append(edges, "s f", "f e", "v e")...)
				bereft(t, store, d, child)
				if tt.own {
					unsteady := &outage{Store: store, id: "r"}
					as["c"] = func(context.Context, activities.Request) (any, error) {
						time.Sleep(oddly)
						unsteady.begin(1230 * time.Millisecond) // a little longer than the parent is tried to be told
						return nil, nil
					}
					newRunner(t, unsteady, equip(t, &script{answers: as}, "one", "two"))
				} else {
					newRunner(t, store, equip(t, &script{answers: as}, "one"))
					time.Sleep(time.Minute)
					mortal := historytest.NewFaultStore(store)
					newRunner(t, mortal, equip(t, &script{answers: as}, "two"))
					time.Sleep(30 * time.Second)
					mortal.Set(historytest.Fault{At: 2, Dead: true})
					defer func() {
						if !mortal.Struck() {
							t.Error("nobody died")
						}
					}()
				}
				for phase(t, store, "r:sub:v") != history.PhaseCompleted {
					time.Sleep(time.Second)
				}
				time.Sleep(5 * time.Second)
				if n, got := count(records(t, store, "r"), history.SubworkflowCompleted), phase(t, store, "r"); n != 1 || got != tt.want {
					t.Errorf("told %d times, and the parent is %s", n, got)
				}
				once(t, store, "r", "r:sub:v")
			})
		})
	}
}

// TestADriverLooksAfterItsSubworkflowsOnceARound counts what it costs to drive a run beside whose branch a subworkflow is
// under way elsewhere.
func TestADriverLooksAfterItsSubworkflowsOnceARound(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := historymem.New()
		child := workflow(t, "child", []string{startNode(), signalWait("c", "go"), endNode()}, "s c", "c e")
		watched := historytest.NewFaultStore(store)
		o := graph.Options{Activities: activities.ExecutorFunc(func(ctx context.Context, _ activities.Request) (activities.Result, error) {
			<-ctx.Done()
			return activities.Result{}, context.Cause(ctx)
		})}
		r := newRunner(t, watched, o)
		register(t, r, "urn:child", child)
		d := workflow(t, "w", []string{startNode(), fork("f", "all", "a", "v"), step("a", "one"), subworkflow("v", "urn:child"), endNode()}, "s f", "f e", "a e", "v e")
		if _, err := r.Start(t.Context(), graph.StartRequest{ExecutionID: "r", Definition: d, Wait: graph.Wait{Limit: graph.NoWait}}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		watched.Set(historytest.Fault{Reads: true})
		time.Sleep(time.Hour)
		calls := map[string]int{}
		for _, c := range watched.Calls() {
			calls[c]++
		}
		rounds := int(time.Hour / (2 * time.Second))
		if calls["Execution"] < rounds-1 || // the last round may coincide with the end of the hour
			calls["Execution"] > 2*rounds+2 || calls["Owned"] > rounds+1 || calls["Renew"] > 400 || calls["SharedLimits"] > 3601 || len(calls) != 4 {
			t.Errorf("in an hour: %v", calls)
		}
	})
}

// TestADriverBeginsASubworkflowThatItHasLearntMeanwhile leaves a subworkflow for want of its workflow to a process that
// performs another branch, says so meanwhile, and begins it once it knows the workflow, long before the branch ends.
func TestADriverBeginsASubworkflowThatItHasLearntMeanwhile(t *testing.T) {
	t.Parallel()
	child := workflow(t, "child", []string{startNode(), step("c", "one"), endNode()}, "s c", "c e")
	d := workflow(t, "w", []string{startNode(), step("z", "one"), fork("f", "all", "a", "v"), step("a", "one"), subworkflow("v", "urn:child"), endNode()},
		"s z", "z f", "f e", "a e", "v e")
	for name, learn := range map[string]func(*testing.T, *graph.Runner, *source, *definition.Document){
		"registered": func(t *testing.T, r *graph.Runner, _ *source, d *definition.Document) { register(t, r, "urn:child", d) },
		"a source's": func(_ *testing.T, _ *graph.Runner, s *source, d *definition.Document) { s.learn("urn:child", d) },
		"with another run": func(t *testing.T, r *graph.Runner, _ *source, d *definition.Document) {
			if _, err := r.Start(t.Context(), graph.StartRequest{ExecutionID: "other", Definition: d}); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				store := historymem.New()
				bereft(t, store, d)
				s, watched := newSource(0), historytest.NewFaultStore(store)
				o := equip(t, &script{answers: answers{"a": after(10*time.Hour, nil)}}, "one")
				o.Workflows = s
				driver := newRunner(t, watched, o)
				time.Sleep(time.Minute)
				s.reset()
				watched.Set(historytest.Fault{})
				time.Sleep(time.Hour)
				if l := status(t, driver, "r").Lacks; l == nil || l.ExecutionID != "r" || l.NodeID != "v" {
					t.Errorf("lacks %+v", l)
				}
				if calls, _ := s.asked("urn:child"); calls > 361 || calls < 100 {
					t.Errorf("asked %d times in an hour", calls)
				}
				if n := len(watched.Calls()); n > 0 {
					t.Errorf("%d appends", n)
				}
				ref := child
				if name == "with another run" {
					ref = workflow(t, "urn:child", []string{startNode(), step("c", "one"), endNode()}, "s c", "c e")
				}
				learn(t, driver, s, ref)
				time.Sleep(15 * time.Second)
				if got := phase(t, store, "r:sub:v"); got != history.PhaseCompleted {
					t.Errorf("the subworkflow is %s", got)
				}
				if run := status(t, driver, "r"); run.Lacks != nil || run.Status != machine.Running {
					t.Errorf("%+v, lacks %+v", run, run.Lacks)
				}
				once(t, store, "r", "r:sub:v")
			})
		})
	}
}
