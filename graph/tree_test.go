package graph_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/graph/view"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historymem"
	"github.com/workflows-engine/workflows-engine/history/historytest"
)

// selfStarting registers a workflow that starts itself n times in parallel.
func selfStarting(t testing.TB, r *graph.Runner, n int) *definition.Document {
	t.Helper()
	nodes, edges, entries := []string{startNode(), "", endNode()}, []string{"s p", "p e"}, []string{}
	for i := range n {
		id := fmt.Sprint("v", i)
		nodes, edges, entries = append(nodes, subworkflow(id, "urn:self")), append(edges, id+" e"), append(entries, id)
	}
	nodes[1] = fork("p", "all", entries...)
	d := workflow(t, "self", nodes, edges...)
	register(t, r, "urn:self", d)
	return d
}

// calling registers a subworkflow of two activities and returns a workflow that starts it in each round, after a wait.
func calling(t testing.TB, r *graph.Runner, wait string) *definition.Document {
	t.Helper()
	register(t, r, "urn:child", linear(t, "child", "c", "d"))
	return workflow(t, "calling", []string{
		startNode(), wait, subworkflow("v", "urn:child"), `{"id":"sw","type":"switch","config":{"cases":[{"when":"true","target":"a"}],"default":"e"}}`, endNode(),
	}, "s a", "a v", "v sw")
}

// treeOf returns what the runs of a tree have used.
func treeOf(t testing.TB, store history.Store, root string) history.TreeUse {
	t.Helper()
	use, err := store.Tree(t.Context(), root)
	if err != nil {
		t.Fatal(err)
	}
	return use
}

// wantTreeLimit checks that a run has failed at a limit of its tree, and that the histories of the tree can be repeated.
func wantTreeLimit(t *testing.T, r *graph.Runner, store history.Store, run *view.Run, what string) {
	t.Helper()
	if run.Status != machine.Failed || run.ErrorCode != string(problem.TreeLimitExceeded) || !strings.Contains(run.Error, what) {
		t.Errorf("the run is %s with %q: %s", run.Status, run.ErrorCode, run.Error)
	}
	if use := treeOf(t, store, run.ExecutionID); use.Pending != 0 {
		t.Errorf("the tree has ended, and awaits %d activities", use.Pending)
	}
	for id := range heads(t, store) {
		if !status(t, r, id).Status.Terminal() {
			t.Errorf("%s has not ended", id)
		}
	}
}

// TestAWorkflowThatStartsItselfTwentyTimes: it fails at the limit of runs in a tree, and there are no more runs than that.
func TestAWorkflowThatStartsItselfTwentyTimes(t *testing.T) {
	t.Parallel()
	o, most := graph.Options{MaxDepth: 100, Tree: graph.TreeLimits{Runs: 60}}, int64(60)
	if os.Getenv("SOAK") != "" {
		o, most = graph.Options{MaxDepth: 100}, 1000
	}
	store := historymem.New()
	r := newRunner(t, store, o)
	start(t, r, "r", selfStarting(t, r, 20), nil)
	run := settled(t, r, "r")
	for settledAll := false; !settledAll; { // subworkflows that nobody waits for are cancelled meanwhile
		settledAll = true
		for id := range heads(t, store) {
			settledAll = settled(t, r, id).Status.Terminal() && settledAll
		}
	}
	wantTreeLimit(t, r, store, run, fmt.Sprintf("%d runs", most))
	if use := treeOf(t, store, "r"); use.Runs > most || use.Runs < 22 {
		t.Errorf("the tree has %+v", use)
	}
}

// TestEachLimitOfATreeEndsIt: a run that goes on starting subworkflows fails with the code and the name of the limit. What is left
// of a tree ends with its root, and the limit is passed by no more than the commits under way.
func TestEachLimitOfATreeEndsIt(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		limits graph.TreeLimits
		used   func(u history.TreeUse) (used, most int64)
	}{
		"7 runs":                 {graph.TreeLimits{Runs: 7}, func(u history.TreeUse) (int64, int64) { return u.Runs, 7 }},
		"90 node visits":         {graph.TreeLimits{Visits: 90}, func(u history.TreeUse) (int64, int64) { return u.Visits, 100 }},
		"300 records":            {graph.TreeLimits{Records: 300}, func(u history.TreeUse) (int64, int64) { return u.Records, 330 }},
		"50000 bytes of history": {graph.TreeLimits{Bytes: 50_000}, func(u history.TreeUse) (int64, int64) { return u.Bytes, 60_000 }},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			store := historymem.New()
			r := newRunner(t, store, graph.Options{Activities: &script{}, Tree: c.limits})
			start(t, r, "r", calling(t, r, tool("a")), nil)
			wantTreeLimit(t, r, store, settled(t, r, "r"), "the tree of run r has reached its limit of "+what)
			if used, most := c.used(treeOf(t, store, "r")); used > most {
				t.Errorf("the tree has used %d of %d", used, most)
			}
		})
	}
	for beside, status := range map[string]machine.Status{"x": machine.AwaitingActivity, "x y": machine.Failed} {
		t.Run("awaited beside "+beside, func(t *testing.T) {
			t.Parallel()
			store := historymem.New()
			r := newRunner(t, store, graph.Options{DefaultMode: machine.HostMediated, Tree: graph.TreeLimits{Pending: 2}})
			register(t, r, "urn:child", linear(t, "child", "b"))
			nodes, edges, entries := []string{startNode(), subworkflow("v", "urn:child"), endNode()}, []string{"s p", "p e", "v e"}, []string{"v"}
			for id := range strings.FieldsSeq(beside) {
				nodes, edges, entries = append(nodes, tool(id)), append(edges, id+" e"), append(entries, id)
			}
			start(t, r, "r", workflow(t, "parent", append(nodes, fork("p", "all", entries...)), edges...), nil)
			run := settled(t, r, "r")
			if status == machine.Failed {
				wantTreeLimit(t, r, store, run, "2 pending activities")
			} else if run.Status != status || len(run.Pending) != 2 {
				t.Errorf("the run is %s with %q, pending %+v", run.Status, run.ErrorCode, run.Pending)
			}
		})
	}
}

// submitIn ends a pending activity in whichever run of the tree awaits it.
func submitIn(t *testing.T, r *graph.Runner, run *view.Run, node string) {
	t.Helper()
	for _, p := range run.Pending {
		if p.NodeID == node {
			req := graph.SubmitRequest{ExecutionID: p.ExecutionID, NodeID: node, Span: p.Span, OK: true, Result: object{node: 1}}
			if _, err := r.SubmitActivity(t.Context(), req); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestLimitsOfATreeAreAnnounced: from 80 % of a limit on, status of every run of the tree warns, in whichever process it is asked.
func TestLimitsOfATreeAreAnnounced(t *testing.T) {
	t.Parallel()
	r, store := host(t, graph.Options{})
	run := start(t, r, "r", calling(t, r, tool("a")), nil)
	for range 4 {
		submitIn(t, r, run, "a")
		for _, node := range []string{"c", "d"} {
			submitIn(t, r, settled(t, r, "r"), node)
		}
		run = settled(t, r, "r")
	}
	submitIn(t, r, run, "a")
	settled(t, r, "r")
	use := treeOf(t, store, "r")
	if use.Runs != 6 || use.Pending != 1 {
		t.Fatalf("the tree has %+v", use)
	}
	limits := func(percent int64) map[string]graph.TreeLimits {
		of := func(n int64) int64 { return n * 100 / percent }
		return map[string]graph.TreeLimits{
			"runs": {Runs: of(use.Runs)}, "node visits": {Visits: of(use.Visits)}, "records": {Records: of(use.Records)},
			"bytes of history": {Bytes: of(use.Bytes)}, "pending activities": {Pending: of(use.Pending)},
		}
	}
	for _, percent := range []int64{50, 85, 100} {
		for what, l := range limits(percent) {
			other := newRunner(t, store, graph.Options{DefaultMode: machine.HostMediated, Tree: l})
			for _, id := range []string{"r", "r:sub:v#5"} {
				warned := status(t, other, id).Warnings
				switch {
				case percent < 80:
					if len(warned) != 0 {
						t.Errorf("%s: %d %% of %s: warned %+v", id, percent, what, warned)
					}
				case len(warned) != 1 || warned[0].Code != problem.TreeLimitExceeded || !strings.Contains(warned[0].Message, what) || !strings.Contains(warned[0].Hint, "TreeLimits."):
					t.Errorf("%s: %d %% of %s: warned %+v", id, percent, what, warned)
				}
			}
		}
	}
}

// TestTheLimitOfATreeHoldsInEveryProcess: each round is made by another process, which has seen nothing of the rounds before.
func TestTheLimitOfATreeHoldsInEveryProcess(t *testing.T) {
	t.Parallel()
	store := historymem.New()
	runner := func() *graph.Runner {
		return newRunner(t, store, graph.Options{Activities: &script{}, Tree: graph.TreeLimits{Runs: 4}})
	}
	r := runner()
	start(t, r, "r", calling(t, r, signalWait("a", "go")), nil)
	for round := 1; ; round++ {
		r = runner()
		calling(t, r, signalWait("a", "go"))
		if _, err := r.Signal(t.Context(), graph.SignalRequest{ExecutionID: "r", Name: "go", Payload: object{}}); err != nil {
			t.Fatal(err)
		}
		run := settled(t, r, "r")
		if !run.Status.Terminal() && round < 4 {
			continue
		}
		wantTreeLimit(t, r, store, run, "4 runs")
		if n := len(heads(t, store)); n != 4 || round != 4 {
			t.Errorf("%d runs after round %d", n, round)
		}
		return
	}
}

// TestTheLimitOfATreeHoldsAfterACrash stops the process at some appends, and lets another one take over.
func TestTheLimitOfATreeHoldsAfterACrash(t *testing.T) {
	t.Parallel()
	for _, at := range []int{3, 20, 35, 42} {
		t.Run(fmt.Sprint(at), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				beneath := historymem.New()
				o := graph.Options{MaxDepth: 100, Tree: graph.TreeLimits{Runs: 30}}
				dying := historytest.NewFaultStore(beneath)
				dying.Set(historytest.Fault{At: at, Dead: true})
				r := newRunner(t, dying, o)
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				_, _ = r.Start(ctx, graph.StartRequest{ExecutionID: "r", Definition: selfStarting(t, r, 3)})
				closeRunner(t, r)
				if !dying.Struck() {
					t.Fatal("the process has not died")
				}
				time.Sleep(time.Minute) // the lease runs out

				r = newRunner(t, beneath, o)
				selfStarting(t, r, 3)
				if _, err := r.Recover(t.Context(), graph.RecoverRequest{}); err != nil {
					t.Fatal(err)
				}
				run := settled(t, r, "r")
				synctest.Wait()
				wantTreeLimit(t, r, beneath, run, "30 runs")
				if use := treeOf(t, beneath, "r"); use.Runs > 30 {
					t.Errorf("the tree has %+v", use)
				}
			})
		})
	}
}

// TestARunWithoutSubworkflowsHasNoTree: the limits of a tree are not its limits, and the store is not asked.
func TestARunWithoutSubworkflowsHasNoTree(t *testing.T) {
	t.Parallel()
	store := historytest.NewFaultStore(historymem.New())
	r := newRunner(t, store, graph.Options{Activities: &script{}, Tree: graph.TreeLimits{Runs: 1, Visits: 1, Records: 1, Bytes: 1, Pending: 1}})
	wantStatus(t, start(t, r, "r", linear(t, "lone", "a", "b"), nil), machine.Completed)
	for _, call := range store.Calls() {
		if call == "Tree" {
			t.Error("the store was asked for the tree of a lone run")
		}
	}
}
