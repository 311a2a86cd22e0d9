package graph_test

import (
	"context"
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historymem"
)

// A run is cancelled while its executor does not listen, deleted, and begun anew by another process under its id. The first
// process then says of it what everybody else does.
func TestAnIdThatIsUsedAgainIsTheNewRun(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	store := historymem.New()
	begun, let := make(chan struct{}), make(chan struct{})
	s := &script{answers: map[string]func(context.Context, activities.Request) (any, error){
		"a": func(context.Context, activities.Request) (any, error) {
			close(begun)
			<-let
			return map[string]any{}, nil
		},
	}}
	one, err := graph.New(store, graph.Options{Activities: s})
	if err != nil {
		t.Fatal(err)
	}
	defer one.Close()
	defer close(let)
	two, err := graph.New(store, graph.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer two.Close()
	no := graph.Wait{Limit: graph.NoWait}
	if _, err := one.Start(ctx, graph.StartRequest{ExecutionID: "r", Definition: linear(t, "first", "a"), Wait: no}); err != nil {
		t.Fatal(err)
	}
	<-begun
	if _, err := one.Cancel(ctx, graph.CancelRequest{ExecutionID: "r"}); err != nil {
		t.Fatal(err)
	}
	_, err = store.Prune(ctx, history.PruneQuery{Before: time.Now().Add(time.Hour)})
	if err != nil {
		t.Fatal(err)
	}
	if run, err := one.Status(ctx, graph.StatusRequest{ExecutionID: "r"}); err == nil {
		t.Errorf("deleted: %+v", run.Status)
	}
	second := workflow(t, "second",
		[]string{startNode(), `{"id":"n","type":"set_state","config":{"assignments":{"n":{"literal":1}}}}`, interrupt("i"), endNode()},
		"s n", "n i", "i e")
	if _, err := two.Start(ctx, graph.StartRequest{ExecutionID: "r", Definition: second}); err != nil {
		t.Fatal(err)
	}
	run, err := one.Status(ctx, graph.StatusRequest{ExecutionID: "r"})
	if err != nil {
		t.Fatal(err)
	}
	if run.DefinitionName != "second" || run.Status != machine.Interrupted {
		t.Errorf("it is %s of %s", run.Status, run.DefinitionName)
	}
	if _, err := one.Resume(ctx, graph.ResumeRequest{ExecutionID: "r", Payload: map[string]any{"ok": true}}); err != nil {
		t.Error(err)
	}
}

// TestAnIdThatIsUsedAgainForAsManyRecords: the number of records does not tell the runs apart.
func TestAnIdThatIsUsedAgainForAsManyRecords(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	store := historymem.New()
	one, two := newRunner(t, store, hostOptions), newRunner(t, store, hostOptions)
	first := start(t, one, "r", linear(t, "first", "a"), object{"n": 1})
	if _, err := two.Cancel(ctx, graph.CancelRequest{ExecutionID: "r"}); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Prune(ctx, history.PruneQuery{Before: time.Now().Add(time.Hour)}); err != nil {
		t.Fatal(err)
	}
	second := start(t, two, "r", linear(t, "second", "a"), object{"n": 2})
	if first.Seq != second.Seq {
		t.Fatalf("%d and %d records", first.Seq, second.Seq)
	}
	if run := status(t, one, "r"); run.DefinitionName != "second" || run.State["n"] != 2.0 {
		t.Errorf("it is %s with %v", run.DefinitionName, run.State)
	}
}
