package graph_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historymem"
)

// slowBelow is a store that takes its time over what subworkflows record.
type slowBelow struct {
	history.Store
	takes time.Duration
}

func (s slowBelow) Append(ctx context.Context, b history.Batch) error {
	if strings.Contains(b.ExecutionID, ":sub:") {
		time.Sleep(s.takes)
	}
	return s.Store.Append(ctx, b)
}

// TestCallsDoNotWaitForABreadth: how long a start and a question wait, and what a cancel takes, does not grow with the number of subworkflows
// that are at work.
func TestCallsDoNotWaitForABreadth(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const children = 60
		store := slowBelow{historymem.New(), 3 * time.Second}
		r := newRunner(t, store, graph.Options{Activities: &script{answers: answers{"a": hang}}}) // a child ends by the cancel alone
		if err := r.RegisterWorkflow("urn:child", linear(t, "child", "a")); err != nil {
			t.Fatal(err)
		}
		each := fmt.Sprintf(`{"id":"each","type":"subworkflow","config":{"workflow_ref":"urn:child","input_mapping":{}},"map":{"items":"[range(%d)]","concurrency":%d,"collect":"out"}}`, children, children)
		parent := workflowWith(t, "parent", `"x-workflows-engine":{"uses":["map"]}`, []string{startNode(), each, endNode()}, "s each", "each e")
		const limit, late = 500 * time.Millisecond, 250 * time.Millisecond

		began := time.Now()
		run, err := r.Start(t.Context(), graph.StartRequest{ExecutionID: "r", Definition: parent, Wait: graph.WaitAtMost(limit)})
		if err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took > limit+late || run.Status != machine.Running || len(run.Pending) != children {
			t.Errorf("a start took %s and found %s, %d pending", took, run.Status, len(run.Pending))
		}
		began = time.Now()
		run = status(t, r, "r")
		if took := time.Since(began); took > late || run.Status != machine.Running {
			t.Errorf("a question took %s and found %s", took, run.Status)
		}
		time.Sleep(time.Second)
		began = time.Now()
		cancel(t, r, "r", "enough")
		if took := time.Since(began); took > late {
			t.Errorf("a cancel took %s", took)
		}
		time.Sleep(time.Hour)
		for i := range children {
			id := run.Pending[i].ChildExecutionID
			if e, err := store.Execution(t.Context(), id); err != nil || e.Phase != history.PhaseCancelled {
				t.Errorf("subworkflow %s: %s, %v", id, e.Phase, err)
			}
		}
	})
}
