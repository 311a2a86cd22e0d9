package graph_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/graph/view"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historymem"
)

// mapping is a workflow with one node that is repeated for n items, the numbers from 0.
func mapping(t testing.TB, n, concurrency int, members ...string) *definition.Document {
	t.Helper()
	each := fmt.Sprintf(`"map":{"items":"[range(%d)]","as":"n","concurrency":%d,"collect":"out"}`, n, concurrency)
	return workflowWith(t, "mapping", `"x-workflows-engine":{"uses":["map"]}`,
		[]string{startNode(), tool("each", append(members, each)...), endNode()}, "s each", "each e")
}

// itemOf gives back the item of a request.
func itemOf(_ context.Context, req activities.Request) (any, error) {
	return object{"n": req.State()["n"]}, nil
}

func wantItems(t *testing.T, run *view.Run, n int) {
	t.Helper()
	wantStatus(t, run, machine.Completed)
	out, _ := run.FinalState["out"].([]any)
	if len(out) != n {
		t.Fatalf("%d outputs, want %d", len(out), n)
	}
	for i, v := range out {
		if !sameJSON(v, object{"n": i}) {
			t.Fatalf("output %d is %v", i, v)
		}
	}
}

// TestAMapGoesOnElsewhere ends processes in the middle of a map: what was recorded is not performed again.
func TestAMapGoesOnElsewhere(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const items = 200
		store := historymem.New()
		s := &script{answers: answers{"each": func(ctx context.Context, req activities.Request) (any, error) {
			if _, err := after(time.Second, nil)(ctx, req); err != nil {
				return nil, err
			}
			return itemOf(ctx, req)
		}}}
		for i := range 4 {
			r, err := graph.New(store, graph.Options{Activities: s, Work: graph.WorkAll})
			if err != nil {
				t.Fatal(err)
			}
			if i == 0 {
				if _, err := r.Start(t.Context(), graph.StartRequest{ExecutionID: "r", Definition: mapping(t, items, 7), Wait: graph.Wait{Limit: graph.NoWait}}); err != nil {
					t.Fatal(err)
				}
			}
			time.Sleep(5500 * time.Millisecond)
			if err := r.Close(); err != nil {
				t.Fatal(err)
			}
		}
		r := newRunner(t, store, graph.Options{Activities: s, Work: graph.WorkAll})
		wantItems(t, settled(t, r, "r"), items)
		rs := records(t, store, "r")
		if n := count(rs, history.ActivityCompleted); n != items {
			t.Errorf("%d outcomes", n)
		}
		if n := s.count(); n < items || n > items+4*7 {
			t.Errorf("%d attempts", n)
		}
	})
}

// TestTheStatusOfAMap shows how far it has come, and which item each entry is.
func TestTheStatusOfAMap(t *testing.T) {
	t.Parallel()
	r, _ := host(t, graph.Options{})
	run := start(t, r, "r", mapping(t, 5, 2), nil)
	submitItem := func(p *view.Pending) *view.Run {
		run, err := r.SubmitActivity(t.Context(), graph.SubmitRequest{
			ExecutionID: "r", NodeID: "each", IdempotencyKey: p.IdempotencyKey, OK: true, Result: object{"n": p.State["n"]},
		})
		if err != nil {
			t.Fatal(err)
		}
		return run
	}
	run = submitItem(&run.Pending[1])
	if want := []machine.MapProgress{{NodeID: "each", Items: 5, Succeeded: 1, Running: 2}}; !slices.Equal(run.Maps, want) {
		t.Errorf("maps %+v, want %+v", run.Maps, want)
	}
	if p := run.Pending; len(p) != 2 || p[0].Item != 0 || p[1].Item != 2 || p[1].Items != 5 || !sameJSON(p[1].State, object{"n": 2}) {
		t.Errorf("pending %+v", p)
	}
	// An outcome that names no item is taken for none, even if it is that of an item that has ended.
	_, err := r.SubmitActivity(t.Context(), graph.SubmitRequest{ExecutionID: "r", NodeID: "each", OK: true, Result: object{"n": 1}})
	wantCode(t, err, problem.SubmitValidationError)
	for run.Status == machine.AwaitingActivity {
		run = submitItem(&run.Pending[0])
	}
	wantItems(t, run, 5)
}

// TestAFailedItemIsRetriedByAFork forks a failed map before the failure: only that item, and what had not begun, is performed.
func TestAFailedItemIsRetriedByAFork(t *testing.T) {
	t.Parallel()
	store := historymem.New()
	s := &script{answers: answers{"each": func(ctx context.Context, req activities.Request) (any, error) {
		if req.ExecutionID == "r" && sameJSON(req.State()["n"], 7) {
			return nil, fmt.Errorf("no seven")
		}
		return itemOf(ctx, req)
	}}}
	r := newRunner(t, store, graph.Options{Activities: s})
	start(t, r, "r", mapping(t, 10, 1), nil)
	wantStatus(t, settled(t, r, "r"), machine.Failed)
	before := s.count()
	if _, err := r.Fork(t.Context(), graph.ForkRequest{ExecutionID: "r", BeforeNode: "each", NewExecutionID: "f"}); err != nil {
		t.Fatal(err)
	}
	wantItems(t, settled(t, r, "f"), 10)
	if n := s.count() - before; n != 3 {
		t.Errorf("%d items were performed again, want 3", n)
	}
}

// TestAMapOfSubworkflows collects the results of subworkflows, and fails by the code of one.
func TestAMapOfSubworkflows(t *testing.T) {
	t.Parallel()
	child := workflow(t, "child", []string{startNode(), tool("c"), `{"id":"e","type":"end","config":{"output_mapping":"{n, twice: (.n * 2)}"}}`}, "s c", "c e")
	parent := workflowWith(t, "parent", `"x-workflows-engine":{"uses":["map","catch"]}`, []string{
		startNode(), `{"id":"each","type":"subworkflow","config":{"workflow_ref":"urn:child","input_mapping":{"n":{"jq":".item"}}},
			"map":{"items":".ns","concurrency":2,"collect":"out"},"catch":[{"codes":["ODD"],"target":"e","as":"why"}]}`, endNode(),
	}, "s each", "each e")
	s := &script{answers: answers{"c": func(_ context.Context, req activities.Request) (any, error) {
		if sameJSON(req.State()["n"], 13) {
			return nil, &activities.Failure{Code: "ODD", Message: "no thirteen"}
		}
		return object{}, nil
	}}}
	r := newRunner(t, historymem.New(), graph.Options{Activities: s})
	register(t, r, "urn:child", child)
	start(t, r, "r", parent, object{"ns": []any{1, 2, 3}})
	run := settled(t, r, "r")
	want := []any{object{"n": 1, "twice": 2}, object{"n": 2, "twice": 4}, object{"n": 3, "twice": 6}}
	if wantStatus(t, run, machine.Completed); !sameJSON(run.FinalState["out"], want) {
		t.Errorf("collected %v", run.FinalState["out"])
	}
	start(t, r, "odd", parent, object{"ns": []any{1, 13}})
	run = settled(t, r, "odd")
	wantStatus(t, run, machine.Completed)
	if why, _ := run.FinalState["why"].(object); why["code"] != "ODD" || why["node"] != "each" {
		t.Errorf("caught %v", run.FinalState["why"])
	}
}

// BenchmarkMap runs ten thousand items.
func BenchmarkMap(b *testing.B) {
	for b.Loop() {
		store := historymem.New()
		r := newRunner(b, store, graph.Options{Activities: &script{answers: answers{"each": itemOf}}})
		start(b, r, "r", mapping(b, 10_000, 100), nil)
		if run := settled(b, r, "r"); run.Status != machine.Completed {
			b.Fatal(run.Status, run.Error)
		}
		b.ReportMetric(float64(len(records(b, store, "r"))), "records")
	}
}
