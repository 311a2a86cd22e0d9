package graph_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historymem"
	"github.com/workflows-engine/workflows-engine/history/historytest"
)

// TestOneProcessPerformsWhatFollowsWhileAnotherBringsUpAChild gives a signal to a process that does not hold the lease,
// while nothing but a subworkflow is in flight.
func TestOneProcessPerformsWhatFollowsWhileAnotherBringsUpAChild(t *testing.T) {
	t.Parallel()
	for name, background := range map[string]bool{"with patrols": true, "without": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				store := historymem.New()
				child := workflow(t, "child", []string{startNode(), signalWait("cw", "never"), endNode()}, "s cw", "cw e")
				slow := resolver(func(string, string) (*definition.Document, error) {
					time.Sleep(5 * time.Second)
					return child, nil
				})
				d := workflow(t, "w", []string{startNode(), fork("p", "all", "v", "g"), subworkflow("v", "urn:x"), signalWait("g", "go"), tool("x"), tool("z"), endNode()},
					"s p", "p z", "v z", "g x", "x z", "z e")
				long := answers{"x": after(100*time.Second, object{"x": 1})}
				ea, eb := &script{answers: long}, &script{answers: long}
				a := newRunner(t, store, graph.Options{Activities: ea, Workflows: slow, Work: workAll(background)})
				b := newRunner(t, store, graph.Options{Activities: eb, Workflows: slow, Work: workAll(background)})
				if _, err := a.Start(t.Context(), graph.StartRequest{ExecutionID: "r", Definition: d, Wait: graph.Wait{Limit: graph.NoWait}}); err != nil {
					t.Fatal(err)
				}
				time.Sleep(4500 * time.Millisecond) // the child is about to begin
				if _, err := b.Signal(t.Context(), graph.SignalRequest{ExecutionID: "r", Name: "go", Caller: graph.Caller{Wait: graph.Wait{Limit: graph.NoWait}}}); err != nil {
					t.Fatal(err)
				}
				time.Sleep(90 * time.Second)
				if !slices.Equal(ea.keys(), []string{"r:x#1.1"}) || eb.count() != 0 {
					t.Errorf("the lease's holder performed %v, the other one %v", ea.keys(), eb.keys())
				}
				time.Sleep(time.Minute)
				if n := count(records(t, store, "r"), history.ActivityCompleted); n != 1 {
					t.Errorf("%d outcomes", n)
				}
			})
		})
	}
}

// own makes a process the owner of a run for a time.
func own(t *testing.T, store history.Store, id, process string, ttl time.Duration) {
	t.Helper()
	err := store.Renew(t.Context(), process, ttl)
	if err != nil {
		t.Fatal(err)
	}
	if claimed, err := store.Claim(t.Context(), process, id); err != nil || len(claimed) != 1 {
		t.Fatal(claimed, err)
	}
}

// TestAChildsEndFindsTheParentOwnedElsewhere ends a subworkflow in one process while another one owns the parent: what follows in the parent is that one's.
func TestAChildsEndFindsTheParentOwnedElsewhere(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := historymem.New()
		exec := &script{}
		r := newRunner(t, store, graph.Options{Activities: exec})
		register(t, r, "urn:child", workflow(t, "child", []string{startNode(), signalWait("cw", "go"), endNode()}, "s cw", "cw e"))
		start(t, r, "p", workflow(t, "parent", []string{startNode(), subworkflow("v", "urn:child"), tool("x"), endNode()}, "s v", "v x", "x e"), nil)
		own(t, store, "p", "patrol", 30*time.Second)
		if _, err := r.Signal(t.Context(), graph.SignalRequest{ExecutionID: "p:sub:v", Name: "go"}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(20 * time.Second)
		rs := records(t, store, "p")
		if exec.count() != 0 || count(rs, history.ActivityRequested) != 1 {
			t.Errorf("performed %v beside the lease's holder: %v", exec.keys(), names(rs, ""))
		}
		// The holder never comes back.
		time.Sleep(11 * time.Second)
		if _, err := r.Recover(t.Context(), graph.RecoverRequest{}); err != nil {
			t.Fatal(err)
		}
		wantStatus(t, settled(t, r, "p"), machine.Completed)
		if !slices.Equal(exec.keys(), []string{"p:x#1.1"}) {
			t.Errorf("performed %v", exec.keys())
		}
	})
}

// TestADeposedDriversOutcomeIsRefused lets a frozen process finish its work after another one has the lease and performs the
// attempt, also where the run would end with the outcome and the lease be given back in the same append.
func TestADeposedDriversOutcomeIsRefused(t *testing.T) {
	t.Parallel()
	for name, nodes := range map[string][]string{"in the middle": {"a", "b"}, "at the end": {"a"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				store := historymem.New()
				first := &script{answers: answers{"a": after(45*time.Second, object{"a": "deposed"})}}
				r := newRunner(t, &noLease{Store: store}, graph.Options{Activities: first})
				if _, err := r.Start(t.Context(), graph.StartRequest{ExecutionID: "r", Definition: linear(t, "lin", nodes...), Wait: graph.Wait{Limit: graph.NoWait}}); err != nil {
					t.Fatal(err)
				}
				time.Sleep(31 * time.Second)
				second := &script{answers: answers{"a": after(time.Minute, object{"a": "driver"})}}
				o := newRunner(t, store, graph.Options{Activities: second})
				if res, err := o.Recover(t.Context(), graph.RecoverRequest{}); err != nil || len(res.ExecutionIDs) != 1 {
					t.Fatalf("%+v, %v", res, err)
				}
				run := settled(t, o, "r")
				wantStatus(t, run, machine.Completed)
				if run.FinalState["a"] != "driver" || count(records(t, store, "r"), history.ActivityCompleted) != len(nodes) {
					t.Errorf("%+v", run.FinalState)
				}
				if !slices.Equal(first.keys(), []string{"r:a#1.1"}) {
					t.Errorf("the deposed one performed %v", first.keys())
				}
			})
		})
	}
}

// TestATakenOverRunIsNotFailedForWantOfAWorkflow takes runs over with and without the workflow that they come to.
func TestATakenOverRunIsNotFailedForWantOfAWorkflow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := historymem.New()
		child := linear(t, "child", "c")
		knows := graph.Options{Activities: &script{answers: answers{"a": hang}}, Workflows: resolver(func(string, string) (*definition.Document, error) { return child, nil })}
		r := newRunner(t, store, knows)
		activity := workflow(t, "activity", []string{startNode(), tool("a"), subworkflow("v", "urn:x"), endNode()}, "s a", "a v", "v e")
		timer := workflow(t, "timer", []string{startNode(), timerWait("w", "10s"), subworkflow("v", "urn:x"), endNode()}, "s w", "w v", "v e")
		ids := []string{"activity", "timer"}
		for i, d := range []*definition.Document{activity, timer} {
			if _, err := r.Start(t.Context(), graph.StartRequest{ExecutionID: ids[i], Definition: d, Wait: graph.Wait{Limit: graph.NoWait}}); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		closeRunner(t, r)

		lacks := newRunner(t, store, graph.Options{Activities: &script{}, Work: graph.WorkAll})
		time.Sleep(time.Minute)
		if _, err := lacks.Recover(t.Context(), graph.RecoverRequest{}); err != nil {
			t.Fatal(err)
		}
		for _, id := range ids {
			wantStatus(t, status(t, lacks, id), machine.Running)
		}
		// A live call fails as ever.
		run := start(t, lacks, "live", workflow(t, "live", []string{startNode(), subworkflow("v", "urn:x"), endNode()}, "s v", "v e"), nil)
		wantStatus(t, run, machine.Failed)

		knows.Activities, knows.Work = &script{}, graph.WorkAll
		other := newRunner(t, store, knows)
		time.Sleep(watchRounds)
		for _, id := range ids {
			wantStatus(t, status(t, other, id), machine.Completed)
		}
	})
}

// watchRounds is time enough for many patrols: whose turn it is when two processes look after one store is chance.
const watchRounds = 10 * time.Minute

// TestWorkflowsRegisteredAfterNewAreKnownToTheFirstPatrol registers right after New.
func TestWorkflowsRegisteredAfterNewAreKnownToTheFirstPatrol(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := historymem.New()
		r := newRunner(t, store, graph.Options{Activities: &script{}, Workflows: slowResolver{linear(t, "child", "c")}})
		d := workflow(t, "w", []string{startNode(), subworkflow("v", "urn:x"), endNode()}, "s v", "v e")
		if _, err := r.Start(t.Context(), graph.StartRequest{ExecutionID: "r", Definition: d, Wait: graph.Wait{Limit: graph.NoWait}}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		closeRunner(t, r)
		r = newRunner(t, store, graph.Options{Activities: &script{}, Work: graph.WorkAll})
		synctest.Wait()
		register(t, r, "urn:x", linear(t, "child", "c"))
		time.Sleep(time.Second)
		wantStatus(t, status(t, r, "r"), machine.Completed)
	})
}

// ending is a store in which a run ends as soon as somebody has looked at its parent.
type ending struct {
	history.Store
	parent string
	end    func()
}

func (s *ending) Execution(ctx context.Context, id string) (history.Execution, error) {
	e, err := s.Store.Execution(ctx, id)
	if end := s.end; id == s.parent && end != nil && e.Phase.Terminal() {
		s.end = nil
		end()
	}
	return e, err
}

// beforeEnd is a store as it was read before a run ended.
type beforeEnd struct {
	history.Store
	open history.Execution
}

func (s beforeEnd) Execution(ctx context.Context, id string) (history.Execution, error) {
	if id == s.open.ID {
		return s.open, nil
	}
	return s.Store.Execution(ctx, id)
}

// TestAChildThatEndsBesideItsParentsEndIsNoError asks after a child that ends at the very moment in which it would be
// cancelled with its parent.
func TestAChildThatEndsBesideItsParentsEndIsNoError(t *testing.T) {
	t.Parallel()
	r, store := host(t, graph.Options{})
	register(t, r, "urn:child", linear(t, "child", "a"))
	start(t, r, "p", workflow(t, "parent", []string{startNode(), subworkflow("v", "urn:child"), endNode()}, "s v", "v e"), nil)
	// Another process has ended the parent, and died before it cancelled the child.
	rs := []history.Record{{Kind: history.Event, Name: history.ExecutionCancelled, CreatedAt: time.Now()}}
	e, err := store.Execution(t.Context(), "p")
	if err != nil {
		t.Fatal(err)
	}
	open, seq := e, e.Seq
	rs[0].Seq = seq + 1
	e.Apply(rs[0])
	if err := store.Append(t.Context(), history.Batch{ExecutionID: "p", ExpectedSeq: seq, Records: rs, Execution: e}); err != nil {
		t.Fatal(err)
	}
	between := &ending{Store: store, parent: "p"}
	beside := newRunner(t, beforeEnd{store, open}, graph.Options{DefaultMode: machine.HostMediated})
	between.end = func() { submit(t, beside, "p:sub:v", "a", nil) }
	wantStatus(t, status(t, newRunner(t, between, graph.Options{}), "p:sub:v"), machine.Completed)
}

// TestASubmitGoesToTheChildThatItsKeyNames has two children wait at nodes of one name, and the parent at another.
func TestASubmitGoesToTheChildThatItsKeyNames(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ id, key, want string }{
		"first without a key": {"p", "", "p:sub:v1"},
		"first by key":        {"p", "p:sub:v1:c#1.1", "p:sub:v1"},
		"second by key":       {"p", "p:sub:v2:c#1.1", "p:sub:v2"},
		"second by id":        {"p:sub:v2", "", "p:sub:v2"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, store := host(t, graph.Options{})
			register(t, r, "urn:c", linear(t, "child", "c"))
			d := workflow(t, "w", []string{startNode(), fork("p", "all", "v1", "v2", "c"), subworkflow("v1", "urn:c"), subworkflow("v2", "urn:c"), tool("c"), endNode()},
				"s p", "p e", "v1 e", "v2 e", "c e")
			start(t, r, "p", d, nil)
			if _, err := r.SubmitActivity(t.Context(), graph.SubmitRequest{ExecutionID: c.id, NodeID: "c", OK: true, IdempotencyKey: c.key}); err != nil {
				t.Fatal(err)
			}
			for _, id := range []string{"p:sub:v1", "p:sub:v2"} {
				if got := count(records(t, store, id), history.ActivityCompleted); got == 1 != (id == c.want) {
					t.Errorf("%s has %d outcomes", id, got)
				}
			}
		})
	}
}

// TestRefusedCallsTakeOverOnce gives signals that nobody waits for to a run whose driver is gone: the first takes the run
// over, and what was in flight is performed once.
func TestRefusedCallsTakeOverOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := historymem.New()
		dead := historytest.NewFaultStore(store)
		r := newRunner(t, dead, graph.Options{Activities: &script{answers: answers{"a": hang}}})
		if _, err := r.Start(t.Context(), graph.StartRequest{ExecutionID: "r", Definition: linear(t, "lin", "a"), Wait: graph.Wait{Limit: graph.NoWait}}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		dead.Set(historytest.Fault{At: 1, Reads: true, Dead: true})
		_, _ = dead.Execution(t.Context(), "r") // strikes
		closeRunner(t, r)
		time.Sleep(time.Minute)

		exec := &script{answers: answers{"a": after(time.Minute, object{"a": 1})}}
		o := newRunner(t, store, graph.Options{Activities: exec})
		for range 3 {
			_, err := o.Signal(t.Context(), graph.SignalRequest{ExecutionID: "r", Name: "go"})
			wantCode(t, err, problem.SignalNotAwaiting)
		}
		wantStatus(t, settled(t, o, "r"), machine.Completed)
		if !slices.Equal(exec.keys(), []string{"r:a#1.1"}) {
			t.Errorf("performed %v", exec.keys())
		}
	})
}
