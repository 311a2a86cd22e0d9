package main

import (
	"context"
	"errors"
	"os"
	"runtime"
	"time"
)

// parentLook is how often the server looks whether the process that started it is still there.
const parentLook = time.Second

// errOrphaned is why a server ends whose parent has died.
var errOrphaned = errors.New("the process that started this server has ended")

// withParent returns a context that ends when the process that started this one has ended. Usually the end of the input
// says so; but where somebody else holds the other end of the pipe, such as a process that the host had started later,
// it never comes, and a server that nobody talks to would hold its runs' leases for good.
//
// The system gives an orphan another parent, so a change of the parent's id is the sign. A process that had none of its
// own to begin with, as the first one in a container or one that init started, is left alone; and so it is on Windows,
// where the id never changes.
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

// startedBy is the process that started this one, asked before anything else, so that a parent is missed too that dies
// while the server starts.
var startedBy = os.Getppid()
