package graph

import (
	"context"
	"errors"

	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/internal/admit"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
)

var (
	_ Follower        = (*Runner)(nil)
	_ Peeker          = (*Runner)(nil)
	_ Counter         = (*Runner)(nil)
	_ Definitions     = (*Runner)(nil)
	_ DefinitionStore = (*Runner)(nil)
)

// List returns a page of runs with their Lineage, last changed first unless q.Oldest is set. Errors: VALIDATION_ERROR for a limit outside 0 to 100 and an unknown
// phase; INVALID_LIST_CURSOR.
func (r *Runner) List(ctx context.Context, q history.ListQuery) (history.ListPage, error) {
	if err := r.enter(ctx); err != nil {
		return history.ListPage{}, err
	}
	defer r.p.Leave()
	if err := admit.List(q); err != nil {
		return history.ListPage{}, err
	}
	page, err := r.p.Store.List(ctx, q)
	if err != nil {
		return history.ListPage{}, err
	}
	runs := make([]*history.Execution, len(page.Executions))
	for i := range runs {
		runs[i] = &page.Executions[i]
	}
	return page, history.AddLineage(ctx, r.p.Store, runs...)
}

// Count returns how many runs a query selects; see Counter.
func (r *Runner) Count(ctx context.Context, q history.ListQuery, most int) (int, error) {
	if err := r.enter(ctx); err != nil {
		return 0, err
	}
	defer r.p.Leave()
	q.Limit, q.Cursor = 0, ""
	if err := admit.List(q); err != nil {
		return 0, err
	}
	return r.p.Store.Count(ctx, q, most)
}

// Peek returns the row of a run; see Peeker.
func (r *Runner) Peek(ctx context.Context, executionID string) (history.Execution, error) {
	if err := r.enter(ctx); err != nil {
		return history.Execution{}, err
	}
	defer r.p.Leave()
	e, err := r.p.Store.Execution(ctx, executionID)
	if err == nil {
		err = history.AddLineage(ctx, r.p.Store, &e)
	}
	if err != nil {
		return history.Execution{}, admit.NotFoundAs(err, problem.ExecutionNotFound, executionID)
	}
	return e, nil
}

// Follow reports changes of runs; see Follower. All calls share one watch of the store. This process's own changes are reported at once.
func (r *Runner) Follow(ctx context.Context, changed func(executionID string, seq int64)) error {
	if ctx.Err() != nil {
		return nil
	}
	if err := r.enter(ctx); err != nil {
		return err
	}
	defer r.p.Leave()
	return r.p.Follow(ctx, changed)
}

// Definitions returns a page of the stored definitions; see Definitions.
func (r *Runner) Definitions(ctx context.Context, cursor string, limit int) (history.DefinitionPage, error) {
	if err := r.enter(ctx); err != nil {
		return history.DefinitionPage{}, err
	}
	defer r.p.Leave()
	return r.p.Store.Definitions(ctx, cursor, limit)
}

// Definition returns a stored definition; see Definitions.
func (r *Runner) Definition(ctx context.Context, hash string) (*definition.Document, error) {
	if err := r.enter(ctx); err != nil {
		return nil, err
	}
	defer r.p.Leave()
	return r.p.Library.Document(ctx, hash)
}

// FindDefinition returns the definition with a hash, name or name@version; see DefinitionStore.
func (r *Runner) FindDefinition(ctx context.Context, ref string) (*definition.Document, error) {
	if err := r.enter(ctx); err != nil {
		return nil, err
	}
	defer r.p.Leave()
	prog, err := r.p.Library.Find(ctx, ref)
	if err != nil {
		return nil, err
	}
	return prog.Document, nil
}

// StoreDefinition stores a definition without a run; see DefinitionStore.
func (r *Runner) StoreDefinition(ctx context.Context, d *definition.Document) (stored bool, err error) {
	if err := r.enterToWrite(ctx); err != nil {
		return false, err
	}
	defer r.p.Leave()
	prog, err := r.p.Library.Admit(d)
	if err != nil {
		return false, err
	}
	switch _, err := r.p.Store.Definition(ctx, prog.Hash); {
	case err == nil:
		return false, r.p.Store.PutDefinition(ctx, *admit.StoredForm(prog)) // with another signature, maybe
	case !errors.Is(err, problem.DefinitionNotFound):
		return false, err
	}
	switch other, err := r.p.Store.DefinitionByName(ctx, prog.Name, prog.Version); {
	case err == nil && other.Version == prog.Version:
		return false, problem.New(problem.DuplicateWorkflowID, "another definition is stored as %q, version %q", prog.Name, prog.Version).
			WithHint("Give the definition another version in document.version.")
	case err != nil && !errors.Is(err, problem.DefinitionNotFound):
		return false, err
	}
	return true, r.p.Store.PutDefinition(ctx, *admit.StoredForm(prog))
}
