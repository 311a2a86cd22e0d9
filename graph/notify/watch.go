package notify

import (
	"context"
	"log/slog"

	"github.com/workflows-engine/workflows-engine/graph/execution"
	"github.com/workflows-engine/workflows-engine/history"
)

// Watch wakes waiters by what the store notices, until ctx ends. While it does, waiters look for themselves more seldom.
func (n *Notifier) Watch(ctx context.Context, store history.Watcher, log *slog.Logger) {
	n.watched.Store(true)
	defer n.watched.Store(false)
	err := store.Watch(ctx, func(executionID string, _ int64) { n.Changed(executionID) })
	if err != nil && ctx.Err() == nil {
		log.Warn("store not watched any more: waiting calls poll it instead", execution.LogError, err)
	}
}

// Watched reports whether the store is being watched.
func (n *Notifier) Watched() bool { return n.watched.Load() }
