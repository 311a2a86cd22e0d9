package graph_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/definition"
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
				before := heads(t, store)
				dry := newRunner(t, store, lacking(t, child, has))
				found, err := dry.Recover(t.Context(), graph.RecoverRequest{DryRun: true})
				if err != nil {
					t.Fatal(err)
				}
				if got := told(found); got != tt.want[turn] {
					t.Fatalf("%s, turn %d: %s, want %s", name, turn, got, tt.want[turn])
				}
				watched := historytest.NewFaultStore(store)
				watched.Set(historytest.Fault{Reads: true})
				narrow := newRunner(t, watched, lacking(t, child, has))
				alone, err := narrow.Survey(t.Context(), "r", "unknown", "r:sub:v")
				if err != nil || told(alone) != tt.want[turn] {
					t.Errorf("%s, turn %d: of the run alone %s, %v", name, turn, told(alone), err)
				}
				if calls := watched.Calls(); slices.Contains(calls, "Orphans") || slices.Contains(calls, "DueTimers") || len(writes(watched)) > 0 {
					t.Errorf("%s, turn %d: of the run alone it takes %v", name, turn, calls)
				}
				if !maps.Equal(heads(t, store), before) {
					t.Errorf("%s, turn %d: the dry run wrote", name, turn)
				}
				closeRunner(t, narrow)
				closeRunner(t, dry)
				r := newRunner(t, store, lacking(t, child, has))
				if _, err := r.Recover(t.Context(), graph.RecoverRequest{}); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				listed := len(found.ExecutionIDs)+len(found.Due) > 0
				if wrote := !maps.Equal(heads(t, store), before); wrote != listed {
					t.Errorf("%s, turn %d: wrote %v, and the dry run said %q", name, turn, wrote, told(found))
				}
				closeRunner(t, r)
			}
		})
	}
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
	o.Background = false
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
			if _, err := first.Start(t.Context(), graph.StartRequest{ExecutionID: id, Definition: d, Wait: graph.Wait{Set: true}}); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Second)
		for _, id := range []string{"s1", "s2"} {
			if _, err := first.Start(t.Context(), graph.StartRequest{ExecutionID: id, Definition: other, Wait: graph.Wait{Set: true}}); err != nil {
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
