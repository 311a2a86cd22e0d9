package mcpserver

import (
	"context"
	"errors"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// errStopping is the cause with which calls end when the server is told to stop.
var errStopping = errors.New("the server is stopping")

// Serve answers one client until its input ends, which is how hosts end a server and what becomes of the input when a
// host dies. When ctx ends the calls in flight are cut short, answered, and nothing more is taken; the runs go on
// where they stood when somebody takes them up. A server is served once.
func Serve(ctx context.Context, server *mcp.Server, t mcp.Transport) error {
	server.AddReceivingMiddleware(endWith(ctx))
	session, err := server.Connect(ctx, t, nil)
	if err != nil {
		return err
	}
	return session.Wait()
}

// endWith ends the contexts of calls with stop: the SDK keeps that of the connection from them.
func endWith(stop context.Context) mcp.Middleware {
	return func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			ctx, cancel := context.WithCancelCause(ctx)
			defer cancel(nil)
			defer context.AfterFunc(stop, func() { cancel(errStopping) })()
			return next(ctx, method, req)
		}
	}
}
