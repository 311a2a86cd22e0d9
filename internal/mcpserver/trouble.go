package mcpserver

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// awaitEngine holds the requests that need the engine back until it is ready, and refuses them while it is in trouble.
func (s *server) awaitEngine() mcp.Middleware {
	return func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			var called *tool
			switch r := req.(type) {
			case *mcp.CallToolRequest:
				if called = s.tool(r.Params.Name); called == nil {
					return next(ctx, method, req)
				}
			case *mcp.ReadResourceRequest:
				if !strings.HasPrefix(r.Params.URI, runPrefix) {
					return next(ctx, method, req)
				}
			case *mcp.CompleteRequest:
			default:
				return next(ctx, method, req)
			}
			if s.opts.Trouble != nil {
				if err := s.opts.Trouble(ctx); err != nil {
					return s.inTrouble(called, err)
				}
			}
			if s.opts.Ready != nil {
				select {
				case <-s.opts.Ready:
				case <-ctx.Done():
					return nil, context.Cause(ctx)
				}
			}
			return next(ctx, method, req)
		}
	}
}

// inTrouble answers a call, or a read if called is nil.
func (s *server) inTrouble(called *tool, err error) (mcp.Result, error) {
	if called != nil {
		return s.shown(s.refusal(err, called.invalid, "").result(s.usualBytes())), nil
	}
	return nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: s.opts.Redaction.String(inOneLine(err))}
}

// warn begins the instructions with a trouble that is known when a client connects.
func (s *server) warn(next mcp.MethodHandler) mcp.MethodHandler {
	if s.opts.Known == nil {
		return next
	}
	return onResult(func(ctx context.Context, _ string, _ mcp.Request, res mcp.Result) mcp.Result {
		var shown *string
		switch r := res.(type) {
		case *mcp.InitializeResult:
			shown = &r.Instructions
		case *mcp.DiscoverResult:
			shown = &r.Instructions
		default:
			return res
		}
		if trouble := s.opts.Known(ctx); trouble != nil {
			*shown = "This server cannot work at present. Tell the user: " + s.opts.Redaction.String(inOneLine(trouble)) + "\n\n" + *shown
		}
		return res
	})(next)
}

// inOneLine is an error with its code and what to do.
func inOneLine(err error) string {
	e, ok := errors.AsType[*problem.Error](err)
	if !ok {
		e = fault(err)
	}
	return strings.TrimSpace(fmt.Sprintf("%s: %s. %s", e.Code, strings.TrimSuffix(e.Error(), "."), words.Translate(e.Hint)))
}
