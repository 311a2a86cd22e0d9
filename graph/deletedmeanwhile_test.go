package graph_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historymem"
)

// deletesFirst is a store in which somebody deletes what has ended just before the first records are read.
type deletesFirst struct {
	*historymem.Store
	t *testing.T
}

func (d *deletesFirst) Read(ctx context.Context, id string, from int64, limit int) ([]history.Record, error) {
	if _, err := d.Prune(ctx, history.PruneQuery{Before: time.Now().Add(time.Hour)}); err != nil {
		d.t.Error(err)
	}
	return d.Store.Read(ctx, id, from, limit)
}

// A run that is deleted while its end is read is gone: it is not told of as one that has ended with nothing.
func TestARunDeletedWhileItsEndIsReadIsGone(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	store := historymem.New()
	one, err := graph.New(store, graph.Options{Activities: &script{}})
	if err != nil {
		t.Fatal(err)
	}
	defer one.Close()
	doc := workflow(t, "w", []string{startNode(), `{"id":"n","type":"set_state","config":{"assignments":{"n":{"literal":1}}}}`, endNode()}, "s n", "n e")
	run, err := one.Start(ctx, graph.StartRequest{ExecutionID: "r", Definition: doc})
	if err != nil || run.Status != "completed" || run.Result == nil {
		t.Fatal(run, err)
	}
	two, err := graph.New(&deletesFirst{store, t}, graph.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer two.Close()
	if run, err := two.Status(ctx, graph.StatusRequest{ExecutionID: "r"}); !errors.Is(err, problem.ExecutionNotFound) {
		t.Errorf("it is told of as %s with the result %v and state %v, %v", run.Status, run.Result, run.State, err)
	}
}
