package graph_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historymem"
)

// slowChildren takes its time for each commit to a subworkflow once slow is set.
type slowChildren struct {
	history.Store
	slow *bool
}

func (s slowChildren) Append(ctx context.Context, b history.Batch) error {
	if *s.slow && strings.Contains(b.ExecutionID, history.ChildMark) {
		time.Sleep(time.Second)
	}
	return s.Store.Append(ctx, b)
}

// TestAfterACancelSubworkflowsTakeNothing cancels a run whose subworkflows take longer to cancel than the call waits: the answer says so, and
// those that are not cancelled yet, at any depth, take nothing any more and do not ask for anything.
func TestAfterACancelSubworkflowsTakeNothing(t *testing.T) {
	t.Parallel()
	const branches = 4
	synctest.Test(t, func(t *testing.T) {
		slow := false
		r := newRunner(t, slowChildren{historymem.New(), &slow}, graph.Options{DefaultMode: machine.HostMediated})
		register(t, r, "inner", linear(t, "inner", "a"))
		register(t, r, "middle", workflow(t, "middle", []string{startNode(), subworkflow("m", "inner"), endNode()}, "s m", "m e"))
		var nodes, edges, names []string
		for i := range branches {
			name := fmt.Sprintf("v%d", i)
			names, nodes, edges = append(names, name), append(nodes, subworkflow(name, "middle")), append(edges, name+" e")
		}
		nodes = append([]string{startNode(), fork("f", "all", names...), endNode()}, nodes...)
		d := workflow(t, "above", nodes, append(edges, "s f", "f e")...)
		wantStatus(t, start(t, r, "r", d, nil), machine.AwaitingActivity)
		synctest.Wait()
		slow = true
		began := time.Now()
		run := cancel(t, r, "r", "stop")
		wantStatus(t, run, machine.Cancelled)
		if took := time.Since(began); took > 250*time.Millisecond {
			t.Errorf("it took %s", took)
		}
		if len(run.Warnings) != 1 || run.Warnings[0].Code != problem.CancelGoesOn {
			t.Errorf("warnings %+v", run.Warnings)
		}
		last := fmt.Sprintf("r:sub:v%d", branches-1)
		_, err := r.SubmitActivity(t.Context(), graph.SubmitRequest{ExecutionID: last + ":sub:m", NodeID: "a", OK: true})
		if !errors.Is(err, problem.SubmitNotAwaiting) {
			t.Errorf("a submit after the cancel: %v", err)
		}
		wantStatus(t, status(t, r, fmt.Sprintf("r:sub:v%d:sub:m", branches-2)), machine.Cancelled)
		for i := range branches {
			settled(t, r, fmt.Sprintf("r:sub:v%d:sub:m", i))
		}
		if run = cancel(t, r, "r", "again"); len(run.Warnings) > 0 {
			t.Errorf("once all are cancelled: %+v", run.Warnings)
		}
	})
}

// TestAnInputWaitsForItsSubworkflow sends an outcome to a subworkflow, by its own id, right after the input that leads there.
func TestAnInputWaitsForItsSubworkflow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		slow := true
		r := newRunner(t, slowChildren{historymem.New(), &slow}, graph.Options{DefaultMode: machine.HostMediated})
		register(t, r, "inner", linear(t, "inner", "a"))
		register(t, r, "middle", workflow(t, "middle", []string{startNode(), subworkflow("m", "inner"), endNode()}, "s m", "m e"))
		d := workflow(t, "above", []string{startNode(), subworkflow("v", "middle"), endNode()}, "s v", "v e")
		noWait := graph.Wait{Limit: graph.NoWait}
		if _, err := r.Start(t.Context(), graph.StartRequest{ExecutionID: "r", Definition: d, Wait: noWait}); err != nil {
			t.Fatal(err)
		}
		_, err := r.SubmitActivity(t.Context(), graph.SubmitRequest{ExecutionID: "r:sub:v:sub:m", NodeID: "a", OK: true})
		if err != nil {
			t.Fatal(err)
		}
		wantStatus(t, settled(t, r, "r"), machine.Completed)
		if _, err = r.SubmitActivity(t.Context(), graph.SubmitRequest{ExecutionID: "r:sub:nothing", NodeID: "a", OK: true}); !errors.Is(err, problem.SubmitNotAwaiting) {
			t.Errorf("for no subworkflow: %v", err)
		}
	})
}
