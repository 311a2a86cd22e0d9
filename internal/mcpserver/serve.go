package mcpserver

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/mcpserver/frame"
	"github.com/workflows-engine/workflows-engine/internal/mcpserver/streamable"
)

// errStopping ends the calls when the server stops.
var errStopping = errors.New("the server is stopping")

// lastWait is how long a call that drives a run may still wait after the end of input: less time than a host gives a server
// to stop.
const lastWait = 1500 * time.Millisecond

// Serve answers one client until its input ends: hosts end a server that way, and so does the death of a host. Pending
// calls are then answered; waits that only read end at once, the others soon after. When ctx ends, pending calls are
// cut short and answered, and nothing more is read; the runs continue when another process claims them.
func Serve(ctx context.Context, server *mcp.Server, t mcp.Transport) error {
	l := &link{stop: ctx, turns: newTurns(), questions: new(sync.WaitGroup)}
	if input, ok := t.(interface{ Ended() <-chan struct{} }); ok {
		over := make(chan struct{})
		defer close(over)
		l.hangup = newHangup(input.Ended(), over)
	}
	defer awaitLast(l.questions)
	session, err := server.Connect(withLink(ctx, l), ordered{t, l.turns}, nil)
	if err != nil {
		return err
	}
	return session.Wait()
}

// link holds the common state of the calls of one connection, or of one listening address. It is a value of the context
// in which a session is connected.
type link struct {
	// stop ends the calls. The SDK hands on the values of that context and not its end.
	stop   context.Context
	hangup hangup
	turns  *turns
	// questions counts the open questions to people.
	questions *sync.WaitGroup
	// life, unless nil, ends before the session of the link is closed: open forms would delay the close.
	life context.Context
	// oneCall is set if each session has one call, so that nothing is stored for it.
	oneCall bool
}

// of is the link of a session, whose calls also end with its life.
func (l link) of(life context.Context) *link {
	stop, end := context.WithCancelCause(l.stop)
	context.AfterFunc(life, func() { end(context.Cause(life)) })
	l.stop, l.life = stop, stop
	return &l
}

type linkKey struct{}

func withLink(ctx context.Context, l *link) context.Context {
	return context.WithValue(ctx, linkKey{}, l)
}

func linkOf(ctx context.Context) *link {
	l, _ := ctx.Value(linkKey{}).(*link)
	return l
}

// byLink ends the contexts of calls with their link, and makes calls wait for their turns. The end of input does not
// end the context: a call that was just read is still answered.
func byLink(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		l := linkOf(ctx)
		if l == nil {
			return next(ctx, method, req)
		}
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		defer context.AfterFunc(l.stop, func() { cancel(stopping(l.stop)) })()
		if method == listenMethod { // it ends with its client alone
			go func() {
				select {
				case <-l.hangup.looking:
					cancel(errStopping)
				case <-ctx.Done():
				}
			}()
		}
		res, err := l.turns.inTurn(next)(ctx, method, req)
		if err != nil {
			err = frame.Coded(err, jsonrpc.CodeInvalidRequest) // some of the SDK's have no code
		}
		return res, err
	}
}

// stopping returns why calls end: their session was closed, or the server stops, perhaps because of a fault.
func stopping(stop context.Context) error {
	why := context.Cause(stop)
	if errors.Is(why, streamable.ErrClosed) {
		return why
	}
	if fault, ok := problem.As(why); ok {
		return fmt.Errorf("%w: %w", errStopping, fault)
	}
	return errStopping
}

// hangup ends the waits of calls after the end of input. Nil channels never do.
type hangup struct {
	// looking ends the waits of calls that only read a run, driving of those that drive one.
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
