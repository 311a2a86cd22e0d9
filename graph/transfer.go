package graph

import (
	"context"
	"io"

	"github.com/workflows-engine/workflows-engine/graph/internal/transfer"
	"github.com/workflows-engine/workflows-engine/history"
)

// ExportOptions say how a run is exported. Their fields: go doc graph/transfer Options.
type ExportOptions = transfer.ExportOptions

// ImportResult is what Import has found in a file. Its fields: go doc graph/transfer Result.
type ImportResult = transfer.ImportResult

// Export writes a run with its subworkflows and their definitions; see transfer.Export.
func Export(ctx context.Context, store history.Store, executionID string, o ExportOptions, out io.Writer) error {
	return transfer.Export(ctx, store, executionID, o, out)
}

// Export is the function Export for the Runner's store.
func (r *Runner) Export(ctx context.Context, executionID string, o ExportOptions, out io.Writer) error {
	if err := r.enter(ctx); err != nil {
		return err
	}
	defer r.tasks.Done()
	return Export(ctx, r.store, executionID, o.Or(r.opts.Redaction), out)
}

// Import reads what Export has written and adds the runs to a store, all or nothing; see transfer.Import. Only a Runner knows how to check the
// steps of agents.
func Import(ctx context.Context, store history.Store, in io.Reader) (*ImportResult, error) {
	return transfer.Import(ctx, store, in, nil)
}

// Import is the function Import for the Runner's store.
func (r *Runner) Import(ctx context.Context, in io.Reader) (*ImportResult, error) {
	if err := r.enterToWrite(ctx); err != nil {
		return nil, err
	}
	defer r.tasks.Done()
	return transfer.Import(ctx, r.store, in, r.opts.CheckSteps)
}
