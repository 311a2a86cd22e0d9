package historytest

import (
	"context"
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/history"
)

// OpenIn is like Open for a store kept in a folder; it creates a missing store.
type OpenIn func(t testing.TB, dir string, now func() time.Time) history.Store

// RunPersistent runs the tests of the contract about persistent data. The store is closed and opened again between writing and
// reading.
func RunPersistent(t *testing.T, open OpenIn) {
	run(t, func(t testing.TB, now func() time.Time) history.Store {
		dir := t.TempDir()
		r := &reopening{open: func() history.Store { return open(t, dir, now) }, t: t}
		r.wrapper.call, r.store = r.call, r.open()
		return r
	}, true)
}

// reopening is a store that is closed and opened again before the first call after a write. Successive appends use one store; after a
// read, they use a store that has not seen the earlier writes.
type reopening struct {
	wrapper
	t     testing.TB
	open  func() history.Store
	store history.Store
	wrote bool
}

func (r *reopening) call(method string, do func(s history.Store) error) error {
	if r.wrote && method != "Append" {
		must(r.t, r.store.Close())
		r.store = r.open()
	}
	switch method {
	case "Read", "Execution", "Position", "List", "Count", "Definition", "Definitions", "DefinitionByName", "DueTimers", "Overview",
		"Now", "Owner", "Owned", "Unowned", "Tree", "Links", "DueDeliveries", "ListDeliveries", "Processes", "Lanes", "Place", "SharedLimits":
		r.wrote = false
	default:
		r.wrote = true
	}
	return do(r.store)
}

// List reads each page with another store.
func (r *reopening) List(ctx context.Context, q history.ListQuery) (history.ListPage, error) {
	r.wrote = r.wrote || q.Cursor != ""
	return r.wrapper.List(ctx, q)
}

// optional returns the wrapped store as one of the optional interfaces, or skips the rest of the test.
func optional[T any](r *reopening) T {
	v, ok := r.store.(T)
	if !ok {
		r.t.Skipf("%T lacks the methods", r.store)
	}
	return v
}

func (r *reopening) Import(ctx context.Context, in history.Import) error {
	return r.call("Import", func(history.Store) error { return optional[history.Importer](r).Import(ctx, in) })
}

func (r *reopening) Prune(ctx context.Context, q history.PruneQuery) (history.PrunePage, error) {
	return ask(&r.wrapper, "Prune", func(history.Store) (history.PrunePage, error) { return optional[history.Pruner](r).Prune(ctx, q) })
}

func (r *reopening) PruneDefinitions(ctx context.Context, dryRun bool) ([]history.StoredDefinition, error) {
	return ask(&r.wrapper, "PruneDefinitions", func(history.Store) ([]history.StoredDefinition, error) {
		return optional[history.Pruner](r).PruneDefinitions(ctx, dryRun)
	})
}
