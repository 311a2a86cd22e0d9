package mcpserver

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// errStopping is the cause with which calls end when the server has to stop.
var errStopping = errors.New("the server is stopping")

// lastWait is how long a call that drives a run may still wait for it once the input has ended: enough for what is about
// to come to rest, below the patience of a host that waits for the server to end.
const lastWait = 1500 * time.Millisecond

// Serve answers one client until its input ends, which is how hosts end a server and what becomes of the input when a
// host dies. Pending calls are still answered then, but the waits of those that only look end at once, and the others'
// soon after. When ctx ends the pending calls are cut short and answered, and nothing more is read; the runs continue
// when another process claims them. A server is served once.
func Serve(ctx context.Context, server *mcp.Server, t mcp.Transport) error {
	var h hangup
	if input, ok := t.(interface{ Ended() <-chan struct{} }); ok {
		over := make(chan struct{})
		defer close(over)
		h = newHangup(input.Ended(), over)
	}
	turns := newTurns()
	var open sync.WaitGroup // questions to people
	defer awaitLast(&open)
	server.AddReceivingMiddleware(endWith(ctx, h, &open), turns.inTurn)
	session, err := server.Connect(ctx, ordered{t, turns}, nil)
	if err != nil {
		return err
	}
	return session.Wait()
}

// stopping is why calls end: errStopping, and with it the fault that stops the server, if one does.
func stopping(stop context.Context) error {
	if fault, ok := problem.As(context.Cause(stop)); ok {
		return fmt.Errorf("%w: %w", errStopping, fault)
	}
	return errStopping
}

// hangup says when calls need not wait any longer, because the input has ended. Nil channels never say it.
type hangup struct {
	// looking is closed for calls that only look where a run stands, driving for those that drive one.
	looking, driving <-chan struct{}
}

// newHangup returns the hangup of an input; over ends it.
func newHangup(ended, over <-chan struct{}) hangup {
	driving := make(chan struct{})
	go func() {
		select {
		case <-ended:
		case <-over:
			return
		}
		last := time.NewTimer(lastWait)
		defer last.Stop()
		select {
		case <-last.C:
			close(driving)
		case <-over:
		}
	}()
	return hangup{looking: ended, driving: driving}
}

type hangupKey struct{}

// endWith ends the contexts of calls with stop, because the SDK does not pass on the context of the connection. The end of
// input is a value of the context and not its end, which refuses a call that has just been read.
func endWith(stop context.Context, h hangup, open *sync.WaitGroup) mcp.Middleware {
	return func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			ctx, cancel := context.WithCancelCause(context.WithValue(context.WithValue(ctx, hangupKey{}, h), openKey{}, open))
			defer cancel(nil)
			defer context.AfterFunc(stop, func() { cancel(stopping(stop)) })()
			if method == listenMethod { // it ends with its client alone
				go func() {
					select {
					case <-h.looking:
						cancel(errStopping)
					case <-ctx.Done():
					}
				}()
			}
			return next(ctx, method, req)
		}
	}
}
