// Package wait waits for a time that a context may cut short.
package wait

import (
	"context"
	"time"
)

// For waits for d, or until the context ends, whose error it then returns.
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

// Joined returns a context that also ends with another one, whose cause it then has. The caller must call stop when it is done.
func Joined(ctx, other context.Context) (joined context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	quit := context.AfterFunc(other, func() { cancel(context.Cause(other)) })
	return ctx, func() {
		quit()
		cancel(nil)
	}
}
