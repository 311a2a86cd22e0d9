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

// TestW19_AttemptsAreCountedAcrossRestarts fails an activity in three processes.
func TestW19_AttemptsAreCountedAcrossRestarts(t *testing.T) {
	t.Parallel()
	store := historymem.New()
	d := workflow(t, "lin", []string{startNode(), tool("a", `"retry":{"max_attempts":3}`), endNode()}, "s a", "a e")
	start(t, newRunner(t, store, graph.Options{DefaultMode: machine.HostMediated}), "r", d, nil)
	for attempt := 1; attempt <= 3; attempt++ {
		r := newRunner(t, store, graph.Options{})
		run, err := r.Start(t.Context(), graph.StartRequest{ExecutionID: "r", Definition: d, AllowExisting: true})
		if err != nil || run.Pending[0].Attempt != attempt {
			t.Fatalf("attempt %d: %+v, %v", attempt, run, err)
		}
		run, err = r.SubmitActivity(t.Context(), graph.SubmitRequest{ExecutionID: "r", NodeID: "a", Error: "no"})
		if err != nil || run.Status.Terminal() != (attempt == 3) {
			t.Fatalf("attempt %d: %+v, %v", attempt, run, err)
		}
	}
	if n := count(records(t, store, "r"), history.ActivityRequested); n != 3 {
		t.Errorf("%d requests", n)
	}
}

// TestW46_SubmitsInBranchesAppendWhatIsNew submits a wide block, restarting each time.
func TestW46_SubmitsInBranchesAppendWhatIsNew(t *testing.T) {
	t.Parallel()
	perBranch := func(n int) float64 {
		store := historymem.New()
		nodes, edges, entries := []string{startNode(), ""}, []string{"s p", "p e"}, []string{}
		for i := range n {
			id := fmt.Sprintf("a%d", i)
			nodes, edges, entries = append(nodes, tool(id)), append(edges, id+" e"), append(entries, id)
		}
		nodes[1] = fork("p", "all", entries...)
		run := start(t, newRunner(t, store, graph.Options{DefaultMode: machine.HostMediated}), "r", workflow(t, "wide", append(nodes, endNode()), edges...), nil)
		if len(run.Pending) != n {
			t.Fatalf("%d pending", len(run.Pending))
		}
		for i := n - 1; i >= 0; i-- { // the script is held back until the first branch ends
			p := run.Pending[i]
			if _, err := newRunner(t, store, graph.Options{}).SubmitActivity(t.Context(), graph.SubmitRequest{
				ExecutionID: "r", NodeID: p.NodeID, Span: p.Span, OK: true, Result: object{p.NodeID: i},
			}); err != nil {
				t.Fatal(err)
			}
		}
		run = status(t, newRunner(t, store, graph.Options{}), "r")
		wantStatus(t, run, machine.Completed)
		if len(run.FinalState) != n {
			t.Errorf("final state %v", run.FinalState)
		}
		return float64(run.Seq) / float64(n)
	}
	if few, many := perBranch(5), perBranch(20); many > few {
		t.Errorf("%.1f records a branch with 20 branches, %.1f with 5", many, few)
	}
}

// TestRunsOutliveEvictionFromTheTable holds more runs than are kept at hand.
func TestRunsOutliveEvictionFromTheTable(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r, _ := host(t, graph.Options{})
		graph.KeepIdle(r, 5)
		d := workflow(t, "w", []string{startNode(), tool("a"), timerWait("w", "1h"), endNode()}, "s a", "a w", "w e")
		const n = 50
		for i := range n {
			start(t, r, fmt.Sprint(i), d, nil)
		}
		for i := range n {
			submit(t, r, fmt.Sprint(i), "a", object{"i": i})
		}
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		for i := range n {
			if run := status(t, r, fmt.Sprint(i)); run.Status != machine.Completed || !sameJSON(run.FinalState, object{"i": i}) {
				t.Fatalf("run %d: %+v", i, run)
			}
		}
		if n := graph.InUse(r); n > 5 {
			t.Errorf("%d runs are kept", n)
		}
	})
}

// overtaken is a store in which something happens just before a position is read.
type overtaken struct {
	history.Store
	before func()
}

func (s *overtaken) Position(ctx context.Context, id string) (int64, []byte, error) {
	if f := s.before; f != nil {
		s.before = nil
		f()
	}
	return s.Store.Position(ctx, id)
}

// TestAPositionNewerThanTheProjection has another process write between the two lookups of one that loads the run.
func TestAPositionNewerThanTheProjection(t *testing.T) {
	t.Parallel()
	r, store := host(t, graph.Options{})
	start(t, r, "r", endless(t, 4), object{"n": 0})
	between := &overtaken{Store: store}
	between.before = func() { submit(t, r, "r", "a", object{"n": 1}) }
	submit(t, newRunner(t, between, graph.Options{}), "r", "a", object{"n": 2})
	rs := records(t, store, "r")
	if got := count(rs, history.ActivityCompleted); got != 2 || rs[len(rs)-1].Seq != int64(len(rs)) {
		t.Errorf("%d outcomes: %v", got, names(rs, ""))
	}
}
