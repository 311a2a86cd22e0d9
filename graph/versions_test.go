package graph_test

import (
	"context"
	"testing"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historymem"
)

// folder is an ImmediateResolver whose workflows a deployment replaces.
type folder map[string]*definition.Document

func (f folder) ResolveWorkflow(_ context.Context, ref, _ string) (*definition.Document, error) {
	if d := f[ref]; d != nil {
		return d, nil
	}
	return nil, problem.New(problem.WorkflowNotFound, "no workflow %q", ref)
}

func (f folder) ResolveNow(ref, pin string) (*definition.Document, error) {
	return f.ResolveWorkflow(context.Background(), ref, pin)
}

// TestVersionsAreFixedAtTheStart: a deployment between a parent's start and the moment in which it comes to a subworkflow changes nothing,
// in this process and in one that has only the database, whose definitions were cleaned up, and after an export; a run that starts
// later, and a fork, get the new version.
func TestVersionsAreFixedAtTheStart(t *testing.T) {
	t.Parallel()
	steps := &script{answers: answers{"old": func(context.Context, activities.Request) (any, error) { return object{"version": "old"}, nil }, "new": func(context.Context, activities.Request) (any, error) { return object{"version": "new"}, nil }}}
	child := func(handler string) *definition.Document { return linear(t, "child", handler) }
	parent := workflow(t, "parent", []string{startNode(), signalWait("w", "go"), subworkflow("v", "child"), endNode()}, "s w", "w v", "v e")
	at := folder{"child": child("old")}
	store := historymem.New()
	r := newRunner(t, store, graph.Options{Activities: steps, Workflows: at})
	for _, id := range []string{"here", "elsewhere", "exported", "forked"} {
		wantStatus(t, start(t, r, id, parent, nil), machine.AwaitingSignal)
	}
	at["child"] = child("new")
	version := func(r *graph.Runner, id, want string) {
		t.Helper()
		if _, err := r.Signal(t.Context(), graph.SignalRequest{ExecutionID: id, Name: "go"}); err != nil {
			t.Fatal(err)
		}
		if run := settled(t, r, id); run.Status != machine.Completed || run.FinalState["version"] != want {
			t.Errorf("%s: %s %v %s, want the version %s", id, run.Status, run.FinalState, run.Error, want)
		}
	}
	version(r, "here", "old")
	if _, err := r.PruneDefinitions(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	version(newRunner(t, store, graph.Options{Activities: steps}), "elsewhere", "old")

	target, _ := moved(t, store, "exported")
	version(newRunner(t, target, graph.Options{Activities: steps, Workflows: at}), "exported", "old")

	start(t, r, "later", parent, nil)
	version(r, "later", "new")
	if _, err := r.Fork(t.Context(), graph.ForkRequest{ExecutionID: "forked", Seq: int64(len(records(t, store, "forked"))), NewExecutionID: "fork"}); err != nil {
		t.Fatal(err)
	}
	version(r, "fork", "new")
	version(r, "forked", "old")
	if p := records(t, store, "here")[0]; p.Name != history.ExecutionStarted || p.Payload.Subworkflows["child"] != child("old").Hash() {
		t.Errorf("the start records %v", p.Payload.Subworkflows)
	}
}
