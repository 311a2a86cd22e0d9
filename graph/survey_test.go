package graph_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
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

// TestADryRunSaysWhatRecoverDoes lets processes that lack something recover a run in turns. Each dry run writes nothing; a
// recover then writes if and only if the dry run listed the run, and of one that is left to others it said what is missing.
func TestADryRunSaysWhatRecoverDoes(t *testing.T) {
	t.Parallel()
	again := strings.TrimSuffix(step("b", "two"), "}") + `,"retry":{"max_attempts":3,"initial_interval":"10m"}}`
	for name, tt := range map[string]struct {
		nodes, edges []string
		has          [][]string // what the process of each turn has
		want         []string   // what the dry run of each turn says
	}{
		"in turns": {
			[]string{step("a", "one"), step("b", "two")}, []string{"s a", "a b", "b e"},
			[][]string{{"two"}, {"one"}, {"one"}, {"two"}, {"two"}}, []string{"r lacks one", "takes r", "r lacks two", "takes r", ""},
		},
		"no executor": {[]string{step("a", "one")}, []string{"s a", "a e"}, [][]string{nil}, []string{"r lacks executor"}},
		"branches": {
			[]string{fork("f", "all", "a", "b"), step("a", "one"), step("b", "two")}, []string{"s f", "f e", "a e", "b e"},
			[][]string{{"two"}, {"two"}, {"one"}}, []string{"takes r", "r lacks one", "takes r"},
		},
		"a timer": {
			[]string{step("a", "one"), timerWait("w", "30s"), step("b", "two")}, []string{"s a", "a w", "w b", "b e"},
			[][]string{{"one"}, {"one"}, {"one"}}, []string{"takes r", "due r", "r lacks two"},
		},
		"a back-off": {
			[]string{again}, []string{"s b", "b e"},
			[][]string{{"fails", "two"}, {"two"}, nil, {"one"}, {"two"}}, []string{"takes r", "", "", "r lacks two", "due r"},
		},
		"a person": {
			[]string{step("a", "one"), interrupt("i"), step("b", "two")}, []string{"s a", "a i", "i b", "b e"},
			[][]string{{"one"}, {"one"}}, []string{"takes r", ""},
		},
		"a subworkflow": {
			[]string{step("a", "one"), subworkflow("v", "urn:child"), step("b", "one")}, []string{"s a", "a v", "v b", "b e"},
			[][]string{{"one"}, {"one"}, {"child"}, {"one"}, {"two"}, {"one"}},
			[]string{"takes r", "r lacks urn:child", "takes r", "r:sub:v lacks two", "takes r:sub:v", "takes r"},
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			store := historymem.New()
			bereft(t, store, workflow(t, "w", append(tt.nodes, startNode(), endNode()), tt.edges...))
			child := workflow(t, "child", []string{startNode(), step("c", "two"), endNode()}, "s c", "c e")
			for turn, has := range tt.has {
				time.Sleep(time.Minute)
				if name == "a back-off" && turn == 3 {
					time.Sleep(time.Hour)
				}
				agrees(t, fmt.Sprintf("%s, turn %d", name, turn), store, lacking(t, child, has), tt.want[turn])
			}
		})
	}
}

// agrees checks what a dry run in a process says, of the whole store and of two runs alone, that it writes nothing, and that a
// recover there then writes if and only if the dry run listed a run.
func agrees(t *testing.T, what string, store history.Store, o graph.Options, want string) {
	t.Helper()
	o.Work = graph.WorkOwn
	before := heads(t, store)
	dry := newRunner(t, store, o)
	found, err := dry.Recover(t.Context(), graph.RecoverRequest{DryRun: true})
	if err != nil {
		t.Fatal(err)
	}
	if got := told(found); got != want {
		t.Fatalf("%s: %s, want %s", what, got, want)
	}
	closeRunner(t, dry)
	watched := historytest.NewFaultStore(store)
	watched.Set(historytest.Fault{Reads: true})
	narrow := newRunner(t, watched, o)
	alone, err := narrow.Survey(t.Context(), "r", "unknown", "r:sub:v")
	if err != nil || told(alone) != want {
		t.Errorf("%s: of the run alone %s, %v", what, told(alone), err)
	}
	if calls := watched.Calls(); slices.Contains(calls, "Orphans") || slices.Contains(calls, "DueTimers") || len(writes(watched)) > 0 {
		t.Errorf("%s: of the run alone it takes %v", what, calls)
	}
	closeRunner(t, narrow)
	if !maps.Equal(heads(t, store), before) {
		t.Errorf("%s: the dry run wrote", what)
	}
	r := newRunner(t, store, o)
	if _, err := r.Recover(t.Context(), graph.RecoverRequest{}); err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
	listed := len(found.ExecutionIDs)+len(found.Due) > 0
	if wrote := !maps.Equal(heads(t, store), before); wrote != listed {
		t.Errorf("%s: wrote %v, and the dry run said %q", what, wrote, want)
	}
	closeRunner(t, r)
}

// lacking gives the options of a process that has some handlers, and knows the subworkflow if "child" is among them.
func lacking(t *testing.T, child *definition.Document, has []string) graph.Options {
	if has == nil {
		return graph.Options{}
	}
	work := &script{}
	if slices.Contains(has, "fails") {
		work.answers = answers{"b": func(context.Context, activities.Request) (any, error) { return nil, errors.New("no") }}
	}
	o := equip(t, work, has...)
	o.Work = graph.WorkOwn
	if slices.Contains(has, "child") {
		o.Workflows = knows{child}
	}
	return o
}

type knows struct{ child *definition.Document }

func (k knows) ResolveWorkflow(context.Context, string, string) (*definition.Document, error) {
	return k.child, nil
}

// told is what a dry run says, in short.
func told(res *graph.RecoverResult) string {
	var said []string
	for _, id := range res.ExecutionIDs {
		said = append(said, "takes "+id)
	}
	for _, t := range res.Due {
		said = append(said, "due "+t.ExecutionID)
	}
	for _, l := range res.Left {
		what := "nothing"
		for _, name := range []string{"one", "two", "executor", "urn:child"} {
			if l.Lack != nil && l.Lack.NodeID != "" && l.Lack.Setting != "" && strings.Contains(l.Lack.Missing, name) {
				what = name
			}
		}
		said = append(said, l.ExecutionID+" lacks "+what)
	}
	return strings.Join(said, ", ")
}

// TestADryRunLooksPastWhatIsLeft: runs that are left to others do not keep those out of the list that would be taken over.
func TestADryRunLooksPastWhatIsLeft(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := historymem.New()
		d := workflow(t, "w", []string{startNode(), step("a", "one"), endNode()}, "s a", "a e")
		other := workflow(t, "v", []string{startNode(), step("b", "two"), endNode()}, "s b", "b e")
		first := newRunner(t, store, graph.Options{Activities: &script{answers: answers{"a": hang, "b": hang}}})
		for id, d := range map[string]*definition.Document{"r1": d, "r2": d, "r3": d} {
			if _, err := first.Start(t.Context(), graph.StartRequest{ExecutionID: id, Definition: d, Wait: graph.Wait{Limit: graph.NoWait}}); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Second)
		for _, id := range []string{"s1", "s2"} {
			if _, err := first.Start(t.Context(), graph.StartRequest{ExecutionID: id, Definition: other, Wait: graph.Wait{Limit: graph.NoWait}}); err != nil {
				t.Fatal(err)
			}
		}
		closeRunner(t, first)
		r := newRunner(t, store, equip(t, &script{}, "two"))
		found, err := r.Recover(t.Context(), graph.RecoverRequest{DryRun: true, Limit: 1})
		if err != nil || !slices.Equal(found.ExecutionIDs, []string{"s1"}) || len(found.Left) != 3 {
			t.Errorf("%+v, %v", found, err)
		}
		found, err = r.Survey(t.Context(), "r2", "s2")
		if err != nil || !slices.Equal(found.ExecutionIDs, []string{"s2"}) || len(found.Left) != 1 || found.Left[0].ExecutionID != "r2" {
			t.Errorf("of two alone: %+v, %v", found, err)
		}
	})
}

// TestADryRunOfASubworkflowWhoseParentHasEnded kills a process between the end of a run and the cancelling of the subworkflow
// that it does not wait for any more. Whoever finds that ends it, whatever it lacks.
func TestADryRunOfASubworkflowWhoseParentHasEnded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := historymem.New()
		mortal := historytest.NewFaultStore(store)
		first := newRunner(t, mortal, equip(t, &script{answers: answers{"a": after(time.Minute, nil), "c": hang}}, "one", "two"))
		register(t, first, "urn:child", workflow(t, "child", []string{startNode(), step("c", "two"), endNode()}, "s c", "c e"))
		d := workflow(t, "w", []string{startNode(), fork("f", "any", "a", "v"), step("a", "one"), subworkflow("v", "urn:child"), endNode()}, "s f", "f e", "a e", "v e")
		if _, err := first.Start(t.Context(), graph.StartRequest{ExecutionID: "r", Definition: d, Wait: graph.Wait{Limit: graph.NoWait}}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(30 * time.Second)
		mortal.Set(historytest.Fault{At: 2, Dead: true})
		time.Sleep(2 * time.Minute)
		closeRunner(t, first)
		agrees(t, "unfit", store, equip(t, &script{}, "one"), "takes r:sub:v")
		if got := phase(t, store, "r:sub:v"); got != history.PhaseCancelled {
			t.Errorf("the subworkflow is %s", got)
		}
	})
}

// TestADryRunOfASubworkflowThatIsNestedTooDeep: a process refuses it by its own limit, for which it need not know the workflow,
// and records that.
func TestADryRunOfASubworkflowThatIsNestedTooDeep(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := historymem.New()
		middle := workflow(t, "middle", []string{startNode(), step("a", "one"), subworkflow("m", "urn:child-of-none"), endNode()}, "s a", "a m", "m e")
		bereft(t, store, workflow(t, "w", []string{startNode(), subworkflow("v", "urn:child"), endNode()}, "s v", "v e"), middle)
		time.Sleep(time.Minute)
		o := equip(t, &script{}, "one")
		agrees(t, "a step", store, o, "takes r:sub:v")
		time.Sleep(time.Minute)
		agrees(t, "within the limit", store, o, "r:sub:v lacks urn:child")
		o.MaxDepth = 1
		agrees(t, "too deep", store, o, "takes r:sub:v")
		if run := status(t, newRunner(t, store, o), "r"); run.Status != machine.Failed {
			t.Errorf("%+v", run)
		}
	})
}

// TestADryRunBesideADriver finds a timer due whose run another process drives: that fires it.
func TestADryRunBesideADriver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := historymem.New()
		bereft(t, store, workflow(t, "w", []string{startNode(), fork("f", "all", "a", "w"), step("a", "one"), timerWait("w", "5s"), endNode()}, "s f", "f e", "a e", "w e"))
		time.Sleep(10 * time.Second) // its lease lasts longer
		agrees(t, "fit", store, equip(t, &script{}, "one"), "")
		agrees(t, "unfit", store, equip(t, &script{}, "two"), "")
		time.Sleep(time.Minute)
		agrees(t, "unfit, once the lease has run out", store, equip(t, &script{}, "two"), "takes r")
	})
}

// TestADryRunWhereTheRunIsDriven asks a process that is about to begin a subworkflow about the run that it drives.
func TestADryRunWhereTheRunIsDriven(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		child := workflow(t, "child", []string{startNode(), step("c", "one"), endNode()}, "s c", "c e")
		s := newSource(time.Hour)
		s.learn("urn:child", child)
		o := equip(t, &script{}, "one")
		o.Work, o.Workflows = graph.WorkOwn, s
		r := newRunner(t, historymem.New(), o)
		d := workflow(t, "w", []string{startNode(), subworkflow("v", "urn:child"), endNode()}, "s v", "v e")
		if _, err := r.Start(t.Context(), graph.StartRequest{ExecutionID: "r", Definition: d, Wait: graph.Wait{Limit: graph.NoWait}}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		for range 2 {
			found, err := r.Recover(t.Context(), graph.RecoverRequest{DryRun: true})
			if err != nil || told(found) != "" {
				t.Errorf("%s, %v", told(found), err)
			}
			found, err = r.Recover(t.Context(), graph.RecoverRequest{})
			if err != nil || told(found) != "" {
				t.Errorf("recovered: %s, %v", told(found), err)
			}
		}
		if n, _ := s.asked("urn:child"); n != 1 {
			t.Errorf("the workflow was asked for %d times", n)
		}
	})
}

// TestADryRunOfAHistoryCutAnywhere: what loading a run brings to light is written by whoever takes it over.
func TestADryRunOfAHistoryCutAnywhere(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := workflow(t, "w", []string{startNode(), endNode()}, "s e")
		source := historymem.New()
		start(t, newRunner(t, source, graph.Options{}), "r", d, nil)
		whole := records(t, source, "r")
		for n := 1; n < len(whole); n++ {
			store, rs := historymem.New(), slices.Clone(whole[:n])
			for i := range rs {
				rs[i].Raw = nil
			}
			if err := store.Append(t.Context(), history.Batch{ExecutionID: "r", Records: rs, Execution: history.Project("r", rs), Definition: &history.StoredDefinition{
				Hash: d.Hash(), Name: "w", Version: "1", Text: d.Canonical(),
			}}); err != nil {
				t.Fatal(err)
			}
			agrees(t, fmt.Sprintf("%d records", n), store, graph.Options{}, "takes r")
			if got := phase(t, store, "r"); got != history.PhaseCompleted {
				t.Errorf("%d records: %s", n, got)
			}
		}
	})
}

// TestASubworkflowThatIsNotTheRunsOwn finds a run of somebody else under the id of a subworkflow that was left to others: it is
// refused by whoever looks, also by who does not know the workflow.
func TestASubworkflowThatIsNotTheRunsOwn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := historymem.New()
		d := workflow(t, "w", []string{startNode(), step("z", "one"), fork("f", "all", "v", "a"), step("a", "two"), subworkflow("v", "urn:child"), endNode()},
			"s z", "z f", "f e", "a e", "v e")
		bereft(t, store, d)
		time.Sleep(time.Minute)
		o := equip(t, &script{}, "one")
		agrees(t, "a step", store, o, "takes r")
		time.Sleep(time.Minute)
		agrees(t, "not begun", store, o, "r lacks two")
		other := historymem.New()
		start(t, newRunner(t, other, graph.Options{}), "forged", workflow(t, "child", []string{startNode(), signalWait("g", "go"), endNode()}, "s g", "g e"), nil)
		forged := records(t, other, "forged")
		for i := range forged {
			forged[i].Raw = nil
		}
		if err := store.Append(t.Context(), history.Batch{ExecutionID: "r:sub:v", Records: forged, Execution: history.Project("r:sub:v", forged)}); err != nil {
			t.Fatal(err)
		}
		agrees(t, "not its own", store, o, "takes r")
		run := status(t, newRunner(t, store, o), "r")
		if wantStatus(t, run, machine.Failed); run.ErrorCode != string(problem.DuplicateExecutionID) {
			t.Errorf("%s %s", run.ErrorCode, run.Error)
		}
	})
}
