package graph_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historymem"
	"github.com/workflows-engine/workflows-engine/internal/enginetest"
)

// TestAMissingHandlerIsFoundAtTheFork: RequireCapable of a fork names what is missing for the rest of the run, other branches and
// subworkflows included, before anything is recorded. What lies behind it may be missing.
func TestAMissingHandlerIsFoundAtTheFork(t *testing.T) {
	t.Parallel()
	store := historymem.New()
	child := workflow(t, "child", []string{startNode(), stepNode("c", "urn:below"), endNode()}, "s c", "c e")
	d := workflow(t, "w", []string{
		startNode(), stepNode("before", "urn:before"), fork("p", "all", "i", "x"), interrupt("i"), stepNode("x", "urn:other"),
		stepNode("after", "urn:after"), subworkflow("below", "urn:child"), endNode(),
	}, "s before", "before p", "i after", "x after", "p after", "after below", "below e")
	all := newRunner(t, store, graph.Options{Activities: activities.Stub{}, AllowInterruptInBranch: true})
	register(t, all, "urn:child", child)
	if run := enginetest.Must(all.Start(t.Context(), graph.StartRequest{ExecutionID: "r", Definition: d, Branches: machine.Sequential})); run.Status != machine.Interrupted {
		t.Fatalf("%s %s", run.Status, run.Error)
	}
	at := lastOf(records(t, store, "r"), history.InterruptRaised)

	few := newRunner(t, store, graph.Options{Activities: activities.NewStepRegistry(), AllowInterruptInBranch: true})
	register(t, few, "urn:child", child)
	req := graph.ForkRequest{ExecutionID: "r", Seq: at, NewExecutionID: "f", RequireCapable: true}
	_, err := few.Fork(t.Context(), req)
	p, ok := problem.As(err)
	if !ok || p.Code != problem.ExecutorNotConfigured || len(p.Findings) != 3 || strings.Contains(p.Error(), "urn:before") {
		t.Fatalf("%+v", err)
	}
	for _, want := range []string{`"urn:other" (node "x")`, `"urn:after" (node "after")`, `"urn:below" (node "c" of subworkflow "urn:child")`} {
		if !strings.Contains(p.Error(), want) {
			t.Errorf("%q does not say %s", p.Error(), want)
		}
	}
	if _, err := store.Execution(t.Context(), "f"); !errors.Is(err, problem.ExecutionNotFound) {
		t.Errorf("recorded: %v", err)
	}
	req.RequireCapable = false
	if run := enginetest.Must(few.Fork(t.Context(), req)); run.Lacks == nil {
		t.Errorf("not required: %+v", run)
	}
	req.RequireCapable, req.NewExecutionID = true, "g"
	if _, err := all.Fork(t.Context(), req); err != nil {
		t.Errorf("capable: %v", err)
	}
}

// TestWhatDefinitionsLackIsSaidInOneLine: Lacking names what is missing for definitions that no run follows yet.
func TestWhatDefinitionsLackIsSaidInOneLine(t *testing.T) {
	t.Parallel()
	r := newRunner(t, historymem.New(), graph.Options{Activities: activities.NewStepRegistry()})
	one := workflow(t, "one", []string{startNode(), stepNode("a", "urn:x"), stepNode("b", "urn:y"), endNode()}, "s a", "a b", "b e")
	two := workflow(t, "two", []string{startNode(), stepNode("a", "urn:x"), endNode()}, "s a", "a e")
	if got, want := r.Lacking(t.Context(), one, two), `step handler "urn:x" (node "a" of workflow "one"): add it to Options.Activities; step handler "urn:y" (node "b" of workflow "one"): add it to Options.Activities`; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got := newRunner(t, historymem.New(), graph.Options{Activities: activities.Stub{}}).Lacking(t.Context(), one, two); got != "" {
		t.Errorf("nothing is missing: %s", got)
	}
}
