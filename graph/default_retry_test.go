package graph_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history/historymem"
)

// TestActivitiesWithoutAPolicyAreAttemptedAsTheOperatorSays: in the run and its subworkflows, also by a process that says otherwise; a policy in
// the definition wins.
func TestActivitiesWithoutAPolicyAreAttemptedAsTheOperatorSays(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := historymem.New()
		var plain, own, inner atomic.Int64 // the three runs go on at once
		flaky := &script{answers: answers{}}
		for id, attempts := range map[string]*atomic.Int64{"x": &plain, "own": &own, "inner": &inner} {
			flaky.answers[id] = func(context.Context, activities.Request) (any, error) {
				attempts.Add(1)
				return nil, errors.New("unavailable")
			}
		}
		child := linear(t, "child", "inner")
		resolve := resolver(func(string, string) (*definition.Document, error) { return child, nil })
		first := newRunner(t, store, graph.Options{Activities: flaky, Workflows: resolve, Attempts: map[string]int{"tool_call": 3}})
		once := `{"id":"own","type":"tool_call","config":{"server":"s","tool":"t"},"retry":{"max_attempts":1}}`
		for id, d := range map[string]*definition.Document{
			"plain": workflow(t, "plain", []string{startNode(), tool("x"), endNode()}, "s x", "x e"),
			"own":   workflow(t, "own", []string{startNode(), once, endNode()}, "s own", "own e"),
			"tree":  workflow(t, "tree", []string{startNode(), subworkflow("sub", "child"), endNode()}, "s sub", "sub e"),
		} {
			run, err := first.Start(t.Context(), graph.StartRequest{ExecutionID: id, Definition: d, Wait: graph.Wait{Limit: graph.NoWait}})
			if err != nil || run.Status.Terminal() && id != "own" {
				t.Fatalf("%s: %+v, %v", id, run, err)
			}
		}
		synctest.Wait()
		run := status(t, first, "plain")
		if len(run.Pending) != 1 || run.Pending[0].Kind != machine.WaitBackoff || run.Pending[0].MaxAttempts != 3 {
			t.Errorf("%+v", run.Pending)
		}
		closeRunner(t, first)
		second := newRunner(t, store, graph.Options{Activities: flaky, Workflows: resolve})
		for _, id := range []string{"plain", "own", "tree"} {
			run, err := second.Drive(t.Context(), graph.DriveRequest{ExecutionID: id, Caller: graph.Caller{Wait: graph.Wait{Limit: time.Hour}}})
			if err != nil {
				t.Fatal(err)
			}
			wantStatus(t, run, machine.Failed)
			if findings, err := graph.Inspect(t.Context(), store, id); err != nil || len(findings) > 0 {
				t.Errorf("%s: %v, %v", id, findings, err)
			}
		}
		if plain.Load() != 3 || own.Load() != 1 || inner.Load() != 3 {
			t.Errorf("attempts: plain %d, own %d, inner %d", plain.Load(), own.Load(), inner.Load())
		}
	})
	for _, wrong := range []map[string]int{{"wait": 2}, {"llm_call": 0}} {
		_, err := graph.New(historymem.New(), graph.Options{Attempts: wrong})
		wantCode(t, err, problem.UsageError)
	}
}
