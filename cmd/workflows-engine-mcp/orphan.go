package main

import (
	"context"
	"errors"
	"os"
	"runtime"
	"time"
)

// parentLook is how often the server checks that the process that started it still runs.
const parentLook = time.Second

// errOrphaned is why a server stops after its parent has ended.
var errOrphaned = errors.New("the process that started this server has ended")

// withParent returns a context that ends when the process that started this one has ended. Usually the input ends then; but if
// another process, such as one that the host started later, holds the other end of the pipe, it does not end, and a server
// without a host would keep its lease for good.
//
// The system gives an orphan another parent, so the parent's id changes. A process that init started, or the first one in a
// container, has no parent to watch; neither has any process on Windows, where the id never changes.
func withParent(ctx context.Context, first int, parent func() int, look time.Duration) context.Context {
	if first <= 1 || runtime.GOOS == "windows" {
		return ctx
	}
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		tick := time.NewTicker(look)
		defer tick.Stop()
		for parent() == first {
			select {
			case <-ctx.Done():
				cancel(nil)
				return
			case <-tick.C:
			}
		}
		cancel(errOrphaned)
	}()
	return ctx
}

// startedBy is the process that started this one. It is read first, so that the end of the parent during the start is
// noticed.
var startedBy = os.Getppid()
