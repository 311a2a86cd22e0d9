package graph_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/delegate"
	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historymem"
)

// TestAMiddlewareWithoutSelectiveFailsNoRunOfAnother wraps executors in functions, which do not say what they perform. Such a process
// takes over a run whose node it cannot perform, and leaves it to one that can: nothing is recorded, and it is not tried all the
// time. A handler that is registered later is found.
func TestAMiddlewareWithoutSelectiveFailsNoRunOfAnother(t *testing.T) {
	t.Parallel()
	stepNode := `{"id":"a","type":"step","config":{"handler":"urn:one"}}`
	for name, tt := range map[string]struct {
		node       string
		activities activities.Executor
		delegates  activities.Executor
	}{
		"registry":                 {node: stepNode, activities: activities.NewStepRegistry()},
		"composite":                {node: `{"id":"a","type":"llm_call","config":{"model":"m","prompt":"hello?"}}`, activities: activities.Composite{Step: activities.NewStepRegistry()}},
		"registry for other nodes": {node: tool("a"), activities: activities.NewStepRegistry()},
		"no delegates": {node: delegateNode("a"), delegates: activities.ExecutorFunc(func(_ context.Context, req activities.Request) (activities.Result, error) {
			return activities.Result{}, activities.NotConfigured(req.Node(), "")
		})},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				store := historymem.New()
				first := newRunner(t, store, graph.Options{Activities: &script{answers: answers{"a": hang}}, Delegates: activities.ExecutorFunc(func(ctx context.Context, _ activities.Request) (activities.Result, error) {
					_, err := hang(ctx, activities.Request{})
					return activities.Result{}, err
				})})
				d := workflow(t, "w", []string{startNode(), tt.node, endNode()}, "s a", "a e")
				if _, err := first.Start(t.Context(), graph.StartRequest{ExecutionID: "r", Definition: d, Wait: waitFor(0)}); err != nil {
					t.Fatal(err)
				}
				closeRunner(t, first)
				before := len(records(t, store, "r"))
				var calls atomic.Int64
				o := graph.Options{Work: graph.WorkAll}
				if x := tt.activities; x != nil {
					o.Activities = activities.ExecutorFunc(func(ctx context.Context, req activities.Request) (activities.Result, error) {
						calls.Add(1)
						res, err := x.Execute(ctx, req)
						if err != nil {
							err = fmt.Errorf("measured: %w", err)
						}
						return res, err
					})
				}
				if x := tt.delegates; x != nil {
					o.Delegates = activities.ExecutorFunc(func(ctx context.Context, req activities.Request) (activities.Result, error) {
						calls.Add(1)
						return x.Execute(ctx, req)
					})
				}
				r := newRunner(t, store, o)
				time.Sleep(time.Hour)
				run := status(t, r, "r")
				if run.Status.Terminal() || run.Lacks == nil || len(records(t, store, "r")) != before {
					t.Fatalf("%s %s, lacks %+v, %v", run.Status, run.ErrorCode, run.Lacks, names(records(t, store, "r"), ""))
				}
				if n := calls.Load(); n < 2 || n > 15 {
					t.Errorf("called %d times in an hour", n)
				}
				registry, ok := tt.activities.(*activities.StepRegistry)
				if !ok || tt.node != stepNode {
					newRunner(t, store, graph.Options{Work: graph.WorkAll, Activities: &script{}, Delegates: delegate.Mock{}})
				} else if err := registry.RegisterStatic(map[string]any{"urn:one": 1.0}); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Hour)
				wantStatus(t, status(t, r, "r"), machine.Completed)
				if n := count(records(t, store, "r"), history.ActivityFailed); n != 0 {
					t.Errorf("%d failed attempts", n)
				}
			})
		})
	}
}

// TestAMissingHandlerFailsARunStartedHere: whoever starts a run hears of it.
func TestAMissingHandlerFailsARunStartedHere(t *testing.T) {
	t.Parallel()
	steps := activities.NewStepRegistry()
	r := newRunner(t, historymem.New(), graph.Options{Activities: activities.ExecutorFunc(steps.Execute)})
	d := workflow(t, "w", []string{startNode(), `{"id":"a","type":"step","config":{"handler":"urn:one"}}`, endNode()}, "s a", "a e")
	for _, id := range []string{"r", "again"} {
		run := start(t, r, id, d, nil)
		wantStatus(t, run, machine.Failed)
		if run.ErrorCode != string(problem.HandlerNotFound) {
			t.Errorf("code %q", run.ErrorCode)
		}
	}
}
