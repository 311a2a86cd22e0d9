package mcpserver

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// onResult makes a middleware of what changes results. Beside an error there is none: the SDK passes a nil pointer of the result's type then,
// so no other middleware looks at what it gets back.
func onResult(change func(context.Context, string, mcp.Request, mcp.Result) mcp.Result) mcp.Middleware {
	return func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			res, err := next(ctx, method, req)
			if err != nil {
				return nil, err
			}
			if res == nil { // of a notification
				return nil, nil
			}
			return change(ctx, method, req, res), nil
		}
	}
}

// recovering answers a request that panics with an error. The session goes on, and so do the other clients and the runs of the process.
func (s *server) recovering(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (res mcp.Result, err error) {
		defer func() {
			if p := recover(); p != nil {
				s.log.Error("panic", "method", method, "panic", fmt.Sprint(p), slog.String("stack", string(debug.Stack())))
				res, err = nil, &jsonrpc.Error{
					Code:    jsonrpc.CodeInternalError,
					Message: fmt.Sprintf("a defect of the server in %q, which its log has: the session goes on", method),
				}
			}
		}()
		return next(ctx, method, req)
	}
}
