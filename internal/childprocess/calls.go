package childprocess

import (
	"context"
	"sync"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// ErrClosed is the error of calls that Close ends, and of Begin after Close.
var ErrClosed = problem.New(problem.RunnerClosed, "the engine is shutting down")

// Calls are the calls in flight of an executor. The zero value is not ready; use NewCalls.
type Calls struct {
	// ctx ends at Close, under the lock, and with it every call.
	ctx      context.Context
	cancel   context.CancelCauseFunc
	mu       sync.Mutex
	inFlight sync.WaitGroup
}

// NewCalls makes Calls without any.
func NewCalls() *Calls {
	c := &Calls{}
	c.ctx, c.cancel = context.WithCancelCause(context.Background())
	return c
}

// Begin counts a call, unless Close was called, and returns its context, which ends after the limit and at Close. The
// caller calls end when the call has ended.
func (c *Calls) Begin(ctx context.Context, limit time.Duration) (_ context.Context, end func(), err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ctx.Err() != nil {
		return nil, nil, ErrClosed
	}
	c.inFlight.Add(1)
	ctx, cancel := context.WithCancelCause(ctx)
	detach := context.AfterFunc(c.ctx, func() { cancel(ErrClosed) })
	ctx, stop := context.WithTimeout(ctx, limit)
	return ctx, func() {
		stop()
		detach()
		cancel(nil)
		c.inFlight.Done()
	}, nil
}

// Close ends the calls in flight, and returns when they have ended.
func (c *Calls) Close() {
	c.mu.Lock()
	c.cancel(ErrClosed)
	c.mu.Unlock()
	c.inFlight.Wait()
}
