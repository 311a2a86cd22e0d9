package graph_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/history/historymem"
)

// TestPriorityPassesTheBacklog: a thousand runs wait for a turn. One of higher priority that starts then begins at the next free turn, and its
// second node at the next one after its first has ended.
func TestPriorityPassesTheBacklog(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const lasts = 10 * time.Millisecond
		work := &gauge{lasts: lasts}
		r := newRunner(t, historymem.New(), graph.Options{Activities: work, Limits: []graph.Limit{{Class: "tool_call", Concurrent: 1}}})
		startMany(t, r, 1000, tool("n0"))
		time.Sleep(100*lasts + lasts/2)
		began := time.Now()
		urgent := linear(t, "urgent", "n0", "n1")
		if _, err := r.Start(t.Context(), graph.StartRequest{ExecutionID: "urgent", Definition: urgent, Priority: 100, Wait: waitFor(0)}); err != nil {
			t.Fatal(err)
		}
		wantStatus(t, settled(t, r, "urgent"), machine.Completed)
		for i := range 2 {
			if waited := work.beganAt("urgent", i).Sub(began); waited > time.Duration(2*i+1)*lasts {
				t.Errorf("node %d began after %s", i, waited)
			}
		}
		for i := range 1000 {
			wantStatus(t, settled(t, r, fmt.Sprint("r", i)), machine.Completed)
		}
	})
}
