package transfer_test

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/internal/transfer"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historymem"
)

// TestAnExportOfARunThatIsBeingDeleted: what is left of its records is not taken for a run.
func TestAnExportOfARunThatIsBeingDeleted(t *testing.T) {
	t.Parallel()
	store := &vanishing{Store: historymem.New()}
	start(t, newRunner(t, store, graph.Options{}), "r", workflow(t, "w", []string{startNode(), endNode()}, "s e"), nil)
	store.vanish = true
	var file bytes.Buffer
	if err := transfer.Export(t.Context(), store, "r", transfer.ExportOptions{}, &file); !errors.Is(err, problem.ExecutionNotFound) || file.Len() > 0 {
		t.Errorf("%v\n%s", err, &file)
	}
}

// vanishing is a store in which the deletion of a run begins just before its records are read.
type vanishing struct {
	history.Store
	vanish, gone bool
}

func (s *vanishing) Execution(ctx context.Context, id string) (history.Execution, error) {
	if s.gone {
		return history.Execution{}, history.NotFound(id)
	}
	return s.Store.Execution(ctx, id)
}

func (s *vanishing) Read(ctx context.Context, id string, from int64, limit int) ([]history.Record, error) {
	if s.gone = s.vanish; s.gone {
		limit = 3
	}
	return s.Store.Read(ctx, id, from, limit)
}
