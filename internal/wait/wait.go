// Package wait waits for a time or the end of a context.
package wait

import (
	"context"
	"time"
)

// For waits for d. If the context ends first, it returns the error of the context.
func For(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Within waits for a channel to be closed, and reports whether that happened in time.
func Within(limit time.Duration, done <-chan struct{}) bool {
	t := time.NewTimer(limit)
	defer t.Stop()
	select {
	case <-done:
		return true
	case <-t.C:
		return false
	}
}

// Joined returns a context that also ends with another context, with the cause of that one. The caller must call stop.
func Joined(ctx, other context.Context) (joined context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	quit := context.AfterFunc(other, func() { cancel(context.Cause(other)) })
	return ctx, func() {
		quit()
		cancel(nil)
	}
}
