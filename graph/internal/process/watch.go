package process

import (
	"context"
	"log/slog"

	"github.com/workflows-engine/workflows-engine/graph/internal/run"
	"github.com/workflows-engine/workflows-engine/history"
)

// WatchOnce wakes waiters, from the first call on until ctx ends, by what the store notices, if it can tell what other processes write. begin
// runs a function in the background.
func (n *Notifier) WatchOnce(ctx context.Context, store history.Store, begin func(func()), log *slog.Logger) {
	if s, ok := history.As[history.Watcher](store); ok {
		n.watch.Do(func() { begin(func() { n.watchStore(ctx, s, log) }) })
	}
}

// watchStore watches the store until ctx ends. While it does, waiters look for themselves more seldom.
func (n *Notifier) watchStore(ctx context.Context, store history.Watcher, log *slog.Logger) {
	n.watched.Store(true)
	defer n.watched.Store(false)
	err := store.Watch(ctx, func(executionID string, _ int64) { n.Changed(executionID) })
	if err != nil && ctx.Err() == nil {
		log.Warn("store not watched any more: waiting calls poll it instead", run.LogError, err)
	}
}

// Watched reports whether the store is being watched.
func (n *Notifier) Watched() bool { return n.watched.Load() }
