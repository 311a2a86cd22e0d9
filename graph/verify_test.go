package graph_test

import (
	"context"
	"errors"
	"testing"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historymem"
)

// The embedder's policy about definitions is asked before a definition is used in any way, and a refusal leaves nothing.
func TestDefinitionsAreVerified(t *testing.T) {
	t.Parallel()
	refused := problem.New(problem.ValidationError, "not signed")
	store := historymem.New()
	r := newRunner(t, store, graph.Options{Activities: &script{}, VerifyDefinition: func(d *definition.Document) error {
		if d.Hash() == linear(t, "trusted", "a").Hash() {
			return nil
		}
		return refused
	}})
	ctx := context.Background()
	if _, err := r.Start(ctx, graph.StartRequest{ExecutionID: "r", Definition: linear(t, "other", "a")}); !errors.Is(err, refused) {
		t.Errorf("start: %v", err)
	}
	if _, err := r.Program(linear(t, "other", "a")); !errors.Is(err, refused) {
		t.Errorf("validate: %v", err)
	}
	if err := r.RegisterWorkflow("urn:other", linear(t, "other", "a")); !errors.Is(err, refused) {
		t.Errorf("register: %v", err)
	}
	if page, err := store.List(ctx, history.ListQuery{}); err != nil || len(page.Executions) > 0 {
		t.Errorf("runs %v, %v", page.Executions, err)
	}
	wantStatus(t, start(t, r, "r", linear(t, "trusted", "a"), nil), machine.Completed)
}
