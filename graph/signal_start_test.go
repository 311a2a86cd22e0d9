package graph_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/graph/view"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historymem"
)

// collector waits for two signals "part", and keeps them.
func collector(t testing.TB) *definition.Document {
	return workflowWith(t, "collect", `"x-workflows-engine":{"uses":["early_signals"]},"state_schema":{"type":"object","properties":{"got":{"type":"array","items":{"type":"string"},"reducer":"append"}}}`,
		[]string{startNode(), keepingWait("one", "part"), keepingWait("two", "part"), endNode()}, "s one", "one two", "two e")
}

// sendPart sends a part to a run, which it starts if it is missing.
func sendPart(t *testing.T, r *graph.Runner, id, part string, d *definition.Document) (*view.Run, error) {
	return r.Signal(t.Context(), graph.SignalRequest{
		ExecutionID: id, Name: "part", Payload: object{"got": []any{part}}, IdempotencyKey: part, Start: &graph.StartRequest{Definition: d},
	})
}

// TestSignalWithStart: processes that send signals at the same time start one run, and each signal counts once, also if it is repeated.
func TestSignalWithStart(t *testing.T) {
	t.Parallel()
	test := func(t *testing.T, open func() history.Store) {
		stores := []history.Store{open(), open()}
		var rs []*graph.Runner
		for _, s := range stores {
			rs = append(rs, newRunner(t, s, graph.Options{}))
		}
		d := collector(t)
		for i := range 20 {
			id := fmt.Sprint("r", i)
			var all sync.WaitGroup
			for n, r := range rs {
				for range 2 { // and a repeated call
					all.Go(func() {
						if _, err := sendPart(t, r, id, fmt.Sprint("p", n), d); err != nil {
							t.Errorf("%s: %v", id, err)
						}
					})
				}
			}
			all.Wait()
			run := status(t, rs[0], id)
			wantStatus(t, run, machine.Completed)
			if got, _ := run.FinalState["got"].([]any); len(got) != 2 || got[0] == got[1] {
				t.Errorf("%s got %v", id, run.FinalState)
			}
			if n := count(records(t, stores[0], id), history.ExecutionStarted); n != 1 {
				t.Errorf("%s was started %d times", id, n)
			}
		}
	}
	t.Run("memory", func(t *testing.T) {
		t.Parallel()
		store := historymem.New()
		test(t, func() history.Store { return store })
	})
	ofProcesses(t, test)
}

// TestASignalThatIsRejectedStartsNothing: one of another name, one that breaks the schema, one that comes before the wait, and a wrong start.
func TestASignalThatIsRejectedStartsNothing(t *testing.T) {
	t.Parallel()
	store := historymem.New()
	r := newRunner(t, store, graph.Options{Activities: &script{}})
	late := workflow(t, "late", []string{startNode(), tool("a"), signalWait("w", "part"), endNode()}, "s a", "a w", "w e")
	for name, tt := range map[string]struct {
		d    *definition.Document
		sent string
		body object
		code problem.Code
	}{
		"another name": {collector(t), "other", nil, problem.SignalNameMismatch},
		"the schema":   {collector(t), "part", object{"got": []any{1}}, problem.SignalValidationError},
		"before":       {late, "part", nil, problem.SignalNotAwaiting},
		"no start":     {nil, "part", nil, problem.ValidationError},
	} {
		unchanged(t, store, func() {
			_, err := r.Signal(t.Context(), graph.SignalRequest{ExecutionID: "r", Name: tt.sent, Payload: tt.body, Start: &graph.StartRequest{Definition: tt.d}})
			if err == nil {
				t.Errorf("%s: accepted", name)
				return
			}
			wantCode(t, err, tt.code)
		})
	}
	if run, err := sendPart(t, r, "r", "a", collector(t)); err != nil || run.Status != machine.AwaitingSignal || run.Repeated {
		t.Fatalf("%+v, %v", run, err)
	}
	if run, err := sendPart(t, r, "r", "a", collector(t)); err != nil || !run.Repeated {
		t.Errorf("%+v, %v", run, err)
	}
	wantTrue(t, store, "r")
}
