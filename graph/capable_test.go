package graph_test

import (
	"fmt"
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

// stepNode is a step of a handler.
func stepNode(id, handler string) string {
	return fmt.Sprintf(`{"id":%q,"type":"step","config":{"handler":%q}}`, id, handler)
}

// TestAMissingHandlerIsFoundAtTheStart: RequireCapable names everything that is missing, in subworkflows too, before anything is
// recorded.
func TestAMissingHandlerIsFoundAtTheStart(t *testing.T) {
	t.Parallel()
	steps := activities.NewStepRegistry()
	if err := steps.RegisterStatic(map[string]any{"urn:known": map[string]any{}}); err != nil {
		t.Fatal(err)
	}
	store := historymem.New()
	r := newRunner(t, store, graph.Options{Activities: activities.Composite{Step: steps}})
	child := workflow(t, "child", []string{startNode(), stepNode("c", "urn:below"), endNode()}, "s c", "c e")
	if err := r.RegisterWorkflow("urn:child", child); err != nil {
		t.Fatal(err)
	}
	d := workflow(t, "lacking", []string{
		startNode(), stepNode("known", "urn:known"), stepNode("a", "urn:unknown"), stepNode("again", "urn:unknown"), tool("t"), delegateNode("d"),
		subworkflow("below", "urn:child"), subworkflow("nowhere", "urn:nowhere"), endNode(),
	}, "s known", "known a", "a again", "again t", "t d", "d below", "below nowhere", "nowhere e")
	req := graph.StartRequest{ExecutionID: "r", Definition: d, RequireCapable: true}
	_, err := r.Start(t.Context(), req)
	p, ok := problem.As(err)
	if !ok || p.Code != problem.ExecutorNotConfigured || len(p.Findings) != 5 {
		t.Fatalf("%+v", err)
	}
	for _, want := range []string{
		`step handler "urn:unknown" (node "a")`, `tool_call nodes (node "t"): set Composite.ToolCall`, `protocol a2a (node "d"): set Options.Delegates`,
		`step handler "urn:below" (node "c" of subworkflow "urn:child")`, `the subworkflow "urn:nowhere" (node "nowhere")`,
	} {
		if !strings.Contains(p.Error(), want) {
			t.Errorf("%q does not say %s", p.Error(), want)
		}
	}
	if page := enginetest.Must(store.List(t.Context(), history.ListQuery{})); len(page.Executions) != 0 {
		t.Errorf("recorded: %+v", page.Executions)
	}
	req.Mode = machine.HostMediated
	if run := enginetest.Must(r.Start(t.Context(), req)); run.Status != machine.AwaitingActivity || len(run.Warnings) != 0 {
		t.Errorf("in host-mediated mode: %s, %v", run.Status, run.Warnings)
	}
	run := enginetest.Must(r.Start(t.Context(), graph.StartRequest{Definition: d}))
	if text := warned(run, problem.ExecutorNotConfigured); run.Status != machine.Failed || !strings.Contains(text, `"urn:unknown"`) {
		t.Errorf("not required: %s, %v", run.Status, run.Warnings)
	}
	capable := workflow(t, "capable", []string{startNode(), stepNode("known", "urn:known"), endNode()}, "s known", "known e")
	if run = enginetest.Must(r.Start(t.Context(), graph.StartRequest{Definition: capable, RequireCapable: true})); run.Status != machine.Completed || len(run.Warnings) != 0 {
		t.Errorf("capable: %s, %v", run.Status, run.Warnings)
	}
}

// TestAListOfMissingHandlersIsBounded: a definition of a thousand unknown handlers is refused with a readable error.
func TestAListOfMissingHandlersIsBounded(t *testing.T) {
	t.Parallel()
	nodes, edges, last := []string{startNode()}, []string{}, "s"
	for i := range 1000 {
		id := fmt.Sprintf("n%d", i)
		nodes, edges, last = append(nodes, stepNode(id, "urn:"+id)), append(edges, last+" "+id), id
	}
	d := workflow(t, "many", append(nodes, endNode()), append(edges, last+" e")...)
	r := newRunner(t, historymem.New(), graph.Options{Activities: activities.NewStepRegistry()})
	_, err := r.Start(t.Context(), graph.StartRequest{Definition: d, RequireCapable: true})
	if p, ok := problem.As(err); !ok || len(p.Findings) != 20 || !strings.Contains(p.Message, "and 980 more") || len(p.Message) > 4000 {
		t.Errorf("%+v", err)
	}
}
