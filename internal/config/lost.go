package config

import (
	"context"
	"errors"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
)

// Lost reports whether a process can never use its store again, by the error of a call: the database was replaced, or a newer release has
// migrated it. Such a process should end, so that its service manager starts it again.
func Lost(err error) bool {
	return errors.Is(err, problem.StoreReplaced) || errors.Is(err, problem.HistoryNewer)
}

// LookEvery is how often a process that stays checks its store. Until then its calls are refused, so that nothing depends on a shorter time.
const LookEvery = 15 * time.Second

// WhileUsable returns a context that also ends when the process has lost its store. end returns the reason, or nil if the store can be used.
func WhileUsable(ctx context.Context, store history.Store) (usable context.Context, end func() error) {
	usable, cancel := context.WithCancel(ctx)
	var lost error
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		ticker := time.NewTicker(LookEvery)
		defer ticker.Stop()
		for {
			if _, err := store.Overview(usable, ""); Lost(err) {
				lost = err
				cancel()
				return
			}
			select {
			case <-ticker.C:
			case <-usable.Done():
				return
			}
		}
	}()
	return usable, func() error {
		cancel()
		<-ended
		return lost
	}
}
