package graph_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/view"
	"github.com/workflows-engine/workflows-engine/history/historymem"
	"github.com/workflows-engine/workflows-engine/history/historytest"
)

// TestNothingIsSaidToBeMissingWhileSomebodyIsAtWork asks a process that lacks a handler while another one performs the
// node, and once that one has died. To know who is at work takes one read, and none where nothing is missing.
func TestNothingIsSaidToBeMissingWhileSomebodyIsAtWork(t *testing.T) {
	t.Parallel()
	child := workflow(t, "child", []string{startNode(), step("b", "two"), endNode()}, "s b", "b e")
	for name, tt := range map[string]struct {
		d     *definition.Document
		in    string // the run that the node belongs to
		reads int
		lacks string
	}{
		"the node itself": {workflow(t, "w", []string{startNode(), step("b", "two"), endNode()}, "s b", "b e"), "r", 1, "b"},
		"a node beside": {
			workflow(t, "w", []string{startNode(), fork("f", "all", "b", "c"), step("b", "two"), step("c", "three"), endNode()}, "s f", "f e", "b e", "c e"),
			"r", 1, "b",
		},
		"what a host may do": {
			workflow(t, "w", []string{startNode(), fork("f", "all", "b", "g"), step("b", "two"), signalWait("g", "go"), step("c", "two"), endNode()},
				"s f", "f e", "b e", "g c", "c e"),
			"r", 1, "b",
		},
		"a subworkflow": {workflow(t, "w", []string{startNode(), subworkflow("v", "urn:child"), endNode()}, "s v", "v e"), "r:sub:v", 1, "b"},
		"nothing":       {workflow(t, "w", []string{startNode(), step("b", "one"), endNode()}, "s b", "b e"), "r", 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				store := historymem.New()
				mortal, watched := historytest.NewFaultStore(store), historytest.NewFaultStore(store)
				worker := newRunner(t, mortal, equip(t, &script{answers: answers{"b": hang, "c": hang}}, "one", "two", "three"))
				register(t, worker, "urn:child", child)
				if _, err := worker.Start(t.Context(), graph.StartRequest{ExecutionID: "r", Definition: tt.d, Wait: graph.Wait{Limit: graph.NoWait}}); err != nil {
					t.Fatal(err)
				}
				o := equip(t, &script{}, "one")
				o.Work = graph.WorkOwn
				lone := newRunner(t, watched, o)
				ask := func() *view.Lack {
					watched.Set(historytest.Fault{Reads: true})
					l := status(t, lone, "r").Lacks
					reads := 0
					for _, call := range watched.Calls() {
						if call == "Owner" {
							reads++
						}
					}
					if reads != tt.reads {
						t.Errorf("the owner was read %d times", reads)
					}
					return l
				}
				for range 3 {
					time.Sleep(10 * time.Minute)
					if l := ask(); l != nil {
						t.Errorf("performed elsewhere, and said to lack %+v", l)
					}
				}
				kill(t, worker, mortal)
				time.Sleep(time.Minute)
				switch l := ask(); {
				case tt.lacks == "" && l != nil, tt.lacks != "" && (l == nil || l.NodeID != tt.lacks || l.ExecutionID != tt.in):
					t.Errorf("lacks %+v", l)
				}
			})
		})
	}
}

// TestASubworkflowThatSomebodyBringsUp asks a process that does not know a subworkflow's workflow while another one, whose
// source of workflows takes its time, is about to begin it.
func TestASubworkflowThatSomebodyBringsUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := historymem.New()
		child := workflow(t, "child", []string{startNode(), step("c", "one"), endNode()}, "s c", "c e")
		bereft(t, store, workflow(t, "w", []string{startNode(), step("a", "one"), subworkflow("v", "urn:child"), endNode()}, "s a", "a v", "v e"))
		lone := newRunner(t, store, equip(t, &script{}, "one"))
		time.Sleep(2 * time.Minute)
		if l := status(t, lone, "r").Lacks; l == nil || l.NodeID != "v" {
			t.Fatalf("lacks %+v", l)
		}
		o := equip(t, &script{}, "one")
		o.Workflows = slowResolver{child}
		newRunner(t, store, o)
		time.Sleep(30 * time.Second)
		if l := status(t, lone, "r").Lacks; l != nil {
			t.Errorf("somebody is at it, and it is said to lack %+v", l)
		}
		wantStatus(t, settled(t, lone, "r"), machine.Completed)
	})
}

// TestADriverAtWorkLacksNothing asks the process that performs a branch of a run, and lacks what another branch needs, while it
// is at work and once it is done.
func TestADriverAtWorkLacksNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := historymem.New()
		bereft(t, store, workflow(t, "w", []string{startNode(), fork("f", "all", "a", "b"), step("a", "one"), step("b", "two"), endNode()}, "s f", "f e", "a e", "b e"))
		driver := newRunner(t, store, equip(t, &script{answers: answers{"a": after(time.Hour, nil)}}, "one"))
		for range 3 {
			time.Sleep(15 * time.Minute)
			if l := status(t, driver, "r").Lacks; l != nil {
				t.Errorf("at work, and said to lack %+v", l)
			}
		}
		time.Sleep(time.Hour)
		if l := status(t, driver, "r").Lacks; l == nil || l.NodeID != "b" {
			t.Errorf("lacks %+v", l)
		}
	})
}
