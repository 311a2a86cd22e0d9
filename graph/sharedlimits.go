package graph

import (
	"context"

	"github.com/workflows-engine/workflows-engine/history"
)

// SetLimits sets limits that all processes of the store share, by class; Limit names the classes. A limit without bounds removes that of its
// class, and other classes keep theirs. They apply to attempts that begin afterwards: in this process at once, in others within a second or two.
// An attempt also keeps to Options.Limits of its process.
//
// The attempts in flight of all processes with a lease are never more than Concurrent. Those of a process that was paused for longer than its lease
// may exceed it until they end. In any time, no more attempts begin than PerSecond allows, and a few more: those of 50 ms, and of the time that the
// store takes to answer. The slots of a process that has died are free when its lease ends, or is released by a process of the same machine.
//
// Errors: USAGE_ERROR for a limit out of range or a repeated class, UNSUPPORTED_BY_BACKEND if the store keeps no shared limits (history.Limiter).
func (r *Runner) SetLimits(ctx context.Context, limits ...history.SharedLimit) error {
	_, err := upkeep(ctx, r, false, "shared limits", func(s history.Limiter) (_ any, err error) {
		if err = s.SetLimits(ctx, limits...); err == nil {
			r.p.LookAtLimits(ctx)
		}
		return nil, err
	})
	return err
}

// SharedLimits returns the shared limits in the order of their classes, with the slots that each process holds and the attempts that wait for one or
// for a start. The numbers of a process are those of its last question to the store, and of the last second or two. The error is
// UNSUPPORTED_BY_BACKEND if the store keeps no shared limits (history.Limiter).
func (r *Runner) SharedLimits(ctx context.Context) ([]history.LimitUse, error) {
	return upkeep(ctx, r, true, "shared limits", func(s history.Limiter) ([]history.LimitUse, error) { return s.SharedLimits(ctx) })
}
