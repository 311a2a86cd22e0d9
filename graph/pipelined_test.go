package graph_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historymem"
)

// slowStore takes its time for each commit, so that a walk in stretches is under way for long.
type slowStore struct{ history.Store }

func (s slowStore) Append(ctx context.Context, b history.Batch) error {
	time.Sleep(time.Millisecond)
	return s.Store.Append(ctx, b)
}

// TestInputsFollowEachOtherThroughAWalk sends outcomes for a run, by its id, each as soon as the one before is recorded: what
// takes the next one is known only after a walk of many stretches, in the run or below it, or after a subworkflow has ended.
func TestInputsFollowEachOtherThroughAWalk(t *testing.T) {
	t.Parallel()
	rounds := func(id, next string) (node, again string) {
		return fmt.Sprintf(`{"id": %q, "type": "set_state", "config": {"assignments": {%q: {"jq": "(.%s // 0) + 1"}}}}`, id, id, id),
			fmt.Sprintf(`{"id": "%s2", "type": "switch", "config": {"cases": [{"when": ".%s >= 30", "target": %q}], "default": %q}}`, id, id, next, id)
	}
	work := func(id, next string) []string {
		node, again := rounds("after_"+id, next)
		return []string{step(id, "h"), node, again}
	}
	path := func(id, next string) []string {
		return []string{id + " after_" + id, "after_" + id + " after_" + id + "2", "after_" + id + "2 " + next, "after_" + id + "2 after_" + id}
	}
	var below, above []string
	for _, more := range [][]string{{startNode()}, work("a", "b"), work("b", "e"), {endNode()}} {
		below = append(below, more...)
	}
	for _, more := range [][]string{{startNode()}, work("before", "v"), {`{"id": "v", "type": "subworkflow", "config": {"workflow_ref": "below", "input_mapping": {}}}`}, work("c", "e"), {endNode()}} {
		above = append(above, more...)
	}
	child := workflow(t, "below", below, append(append([]string{"s a"}, path("a", "b")...), path("b", "e")...)...)
	parent := workflow(t, "above", above, append(append([]string{"s before", "v c"}, path("before", "v")...), path("c", "e")...)...)
	synctest.Test(t, func(t *testing.T) {
		r := newRunner(t, slowStore{historymem.New()}, graph.InStretches(graph.Options{DefaultMode: machine.HostMediated}, 1))
		if err := r.RegisterWorkflow("below", child); err != nil {
			t.Fatal(err)
		}
		run, err := r.Start(t.Context(), graph.StartRequest{ExecutionID: "r", Definition: parent})
		if err != nil {
			t.Fatal(err)
		}
		wantStatus(t, run, machine.AwaitingActivity)
		for _, node := range []string{"before", "a", "b", "c"} {
			_, err := r.SubmitActivity(t.Context(), graph.SubmitRequest{
				ExecutionID: "r", NodeID: node, OK: true, Result: map[string]any{"last": node}, Caller: graph.Caller{Wait: graph.Wait{Limit: graph.NoWait}},
			})
			if err != nil {
				t.Fatalf("%s: %v", node, err)
			}
		}
		if run = settled(t, r, "r"); run.Status != machine.Completed || run.FinalState["last"] != "c" {
			t.Errorf("%+v", run)
		}
	})
}
