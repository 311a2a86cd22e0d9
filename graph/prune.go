package graph

import (
	"context"

	"github.com/workflows-engine/workflows-engine/history"
)

// Prune deletes a page of ended runs; see history.Pruner.
func (r *Runner) Prune(ctx context.Context, q history.PruneQuery) (history.PrunePage, error) {
	return upkeep(ctx, r, q.DryRun, "Prune", func(s history.Pruner) (history.PrunePage, error) { return s.Prune(ctx, q) })
}

// PruneDefinitions deletes unused definitions; see history.Pruner.
func (r *Runner) PruneDefinitions(ctx context.Context, dryRun bool) ([]history.StoredDefinition, error) {
	return upkeep(ctx, r, dryRun, "PruneDefinitions", func(s history.Pruner) ([]history.StoredDefinition, error) { return s.PruneDefinitions(ctx, dryRun) })
}

// Size returns the size of the store's file and its free space, in bytes; see history.Shrinker.
func (r *Runner) Size(ctx context.Context) (bytes, free int64, err error) {
	bytes, err = upkeep(ctx, r, true, "Size", func(s history.Shrinker) (n int64, err error) {
		n, free, err = s.Size(ctx)
		return n, err
	})
	return bytes, free, err
}

// Shrink rewrites the store's file without free space; see history.Shrinker.
func (r *Runner) Shrink(ctx context.Context) error {
	_, err := upkeep(ctx, r, false, "Shrink", func(s history.Shrinker) (zero struct{}, err error) { return zero, s.Shrink(ctx) })
	return err
}

// upkeep calls do with the store as S, an optional interface of stores. call names the call for errors.
func upkeep[S, T any](ctx context.Context, r *Runner, reads bool, call string, do func(S) (T, error)) (zero T, err error) {
	enter := r.enterToWrite
	if reads {
		enter = r.enter
	}
	if err := enter(ctx); err != nil {
		return zero, err
	}
	defer r.p.Leave()
	s, ok := history.As[S](r.p.Store)
	if !ok {
		return zero, unsupported("this store", call)
	}
	return do(s)
}
