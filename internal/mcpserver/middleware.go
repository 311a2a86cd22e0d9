package mcpserver

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// onResult returns a middleware that changes results. With an error the SDK passes a nil pointer of the result's type,
// so no other middleware reads the result of its next handler.
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

// recovering turns a panic into an error of the request. The session, the other clients and the runs continue.
func (s *server) recovering(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (res mcp.Result, err error) {
		defer func() {
			if p := recover(); p != nil {
				s.log.Error("panic", "method", method, "panic", fmt.Sprint(p), slog.String("stack", string(debug.Stack())))
				res, err = nil, &jsonrpc.Error{
					Code:    jsonrpc.CodeInternalError,
					Message: fmt.Sprintf("internal error of the server in %q, see its log; the session continues", method),
				}
			}
		}()
		return next(ctx, method, req)
	}
}

// encodedResult is a tool result that writes its content itself. The SDK copies and checks the text of a result five
// times over on its way out, which for a state of hundreds of kilobytes takes longer than all the engine does.
type encodedResult struct {
	*mcp.CallToolResult
	text       string
	structured json.RawMessage // compact JSON, or nil
}

// encodeAnswers replaces results of one text, with or without structured content, by encodedResult.
var encodeAnswers = onResult(func(_ context.Context, _ string, _ mcp.Request, res mcp.Result) mcp.Result {
	r, isTool := res.(*mcp.CallToolResult)
	if isTool && r.InputRequests != nil {
		return questionResult{r}
	}
	if !isTool || len(r.Content) != 1 || len(r.Meta) > 0 {
		return res
	}
	text, isText := r.Content[0].(*mcp.TextContent)
	structured, isRaw := r.StructuredContent.(json.RawMessage)
	if !isText || len(text.Meta) > 0 || text.Annotations != nil || !isRaw && r.StructuredContent != nil {
		return res
	}
	return &encodedResult{r, text.Text, structured}
})

// noContent is the empty content in the SDK's text of the other fields.
var noContent = []byte(`"content":[]`)

// MarshalJSON encodes like the SDK, but does not escape <, > and &. It escapes the line separators of Unicode, because
// some line readers split there.
func (r *encodedResult) MarshalJSON() ([]byte, error) {
	rest := *r.CallToolResult
	rest.Content, rest.StructuredContent = []mcp.Content{}, nil
	frame, err := json.Marshal(&rest)
	if err != nil {
		return nil, err
	}
	before, after, found := bytes.Cut(frame, noContent)
	if !found {
		return json.Marshal(r.CallToolResult)
	}
	dst := make([]byte, 0, len(frame)+len(r.structured)+jsonvalue.StringSize(r.text)+64)
	dst = append(append(dst, before...), `"content":[{"type":"text","text":`...)
	dst = append(jsonvalue.AppendString(dst, r.text), "}]"...)
	if r.structured != nil {
		dst = append(append(dst, `,"structuredContent":`...), r.structured...)
	}
	dst = append(dst, after...)
	for _, separator := range []struct{ text, escaped string }{{"\u2028", `\u2028`}, {"\u2029", `\u2029`}} {
		if bytes.Contains(dst, []byte(separator.text)) {
			dst = bytes.ReplaceAll(dst, []byte(separator.text), []byte(separator.escaped))
		}
	}
	return dst, nil
}

// The SDK answers all clients by the newest revision of the protocol. Where an older one differs, clients of the older
// one get the older form.

const (
	// structuredSince is the first revision with structured content.
	structuredSince = "2025-06-18"
	// cachedSince is the first one with fields about caching, and with another code for a missing resource.
	cachedSince = "2026-07-28"
)

// codeResourceNotFound is the code for a missing resource before that revision.
const codeResourceNotFound = -32002

// revisionOf returns the revision of a client, "" if it has not named one.
func revisionOf(session *mcp.ServerSession) string {
	if params := session.InitializeParams(); params != nil {
		return params.ProtocolVersion
	}
	return ""
}

// readsStructured reports whether a client knows structured content.
func readsStructured(session *mcp.ServerSession) bool {
	revision := revisionOf(session)
	return revision == "" || revision >= structuredSince
}

// opening rejects an initialize in a session that is open already, whichever request has opened it.
func opening(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		session, ok := req.GetSession().(*mcp.ServerSession)
		if method != "initialize" || !ok || session.InitializeParams() == nil {
			return next(ctx, method, req)
		}
		mistake, revision := `duplicate "initialize"`, revisionOf(session)
		if revision >= cachedSince { // its requests need no session
			mistake = `"initialize" is too late`
		}
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: fmt.Sprintf("%s: an earlier request has opened this session with revision %q. "+
			`Continue without it; for another revision, send "initialize" on a new connection`, mistake, problem.Excerpt(revision, 40))}
	}
}

// byRevision makes answers those of the client's revision.
func byRevision(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		res, err := withoutCaching(next)(ctx, method, req)
		if e, ok := errors.AsType[*jsonrpc.Error](err); ok && isOlder(req) && method == "resources/read" && e.Message == notFound {
			return nil, &jsonrpc.Error{Code: codeResourceNotFound, Message: e.Message, Data: e.Data}
		}
		return res, err
	}
}

var withoutCaching = onResult(func(_ context.Context, _ string, req mcp.Request, res mcp.Result) mcp.Result {
	if _, cacheable := res.(mcp.CacheableResult); cacheable && isOlder(req) {
		return uncached{res}
	}
	return res
})

// isOlder reports whether a request is of a revision without caching.
func isOlder(req mcp.Request) bool {
	session, ok := req.GetSession().(*mcp.ServerSession)
	return ok && revisionOf(session) != "" && revisionOf(session) < cachedSince
}

// notFound is the message of the SDK's error for a missing resource, whose code it shares with other errors.
var notFound = mcp.ResourceNotFoundError("").(*jsonrpc.Error).Message

// uncached is a result without the fields about caching, which strict clients of older revisions reject.
type uncached struct{ mcp.Result }

// MarshalJSON implements json.Marshaler.
func (r uncached) MarshalJSON() ([]byte, error) {
	text, err := json.Marshal(r.Result)
	if err != nil {
		return nil, err
	}
	var m map[string]json.RawMessage
	if err := json.Unmarshal(text, &m); err != nil {
		return nil, err
	}
	delete(m, "ttlMs")
	delete(m, "cacheScope")
	return json.Marshal(m)
}

// awaitEngine delays the requests that need the engine until it is ready, and rejects them while it is in trouble.
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

// inTrouble answers a call while the engine is in trouble, or a read if called is nil.
func (s *server) inTrouble(called *tool, err error) (mcp.Result, error) {
	if called != nil {
		return s.shown(s.rejection(err, called.invalid, "").result(s.usualBytes())), nil
	}
	return nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: s.opts.Redaction.String(inOneLine(err))}
}

// warn puts an error that is known when a client connects in front of the instructions.
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
			*shown = "This server does not work now. Tell the user: " + s.opts.Redaction.String(inOneLine(trouble)) + "\n\n" + *shown
		}
		return res
	})(next)
}

// inOneLine returns an error with its code and hint.
func inOneLine(err error) string {
	e, ok := errors.AsType[*problem.Error](err)
	if !ok {
		e = fault(err)
	}
	return strings.TrimSpace(fmt.Sprintf("%s: %s. %s", e.Code, strings.TrimSuffix(e.Error(), "."), words.Translate(e.Hint)))
}
