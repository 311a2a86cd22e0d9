package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// The SDK answers all clients as the newest revision of the protocol has it. Where an older one says otherwise, clients of the older
// one are answered by it.

const (
	// structuredSince is the first revision with structured content.
	structuredSince = "2025-06-18"
	// cachedSince is the first one with members about caching, and with another code for a missing resource.
	cachedSince = "2026-07-28"
)

// codeResourceNotFound is the code for a missing resource before that revision.
const codeResourceNotFound = -32002

// revisionOf is the revision that a client has named, "" if none.
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

// opening refuses an initialize in a session that is open already, whichever request has opened it.
func opening(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		session, ok := req.GetSession().(*mcp.ServerSession)
		if method != "initialize" || !ok || session.InitializeParams() == nil {
			return next(ctx, method, req)
		}
		what, revision := `duplicate "initialize"`, revisionOf(session)
		if revision >= cachedSince { // its requests stand for themselves
			what = `"initialize" comes too late`
		}
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: fmt.Sprintf("%s: an earlier request has opened this session with revision %q. "+
			`Go on without it; for another revision open another connection, and begin that with "initialize"`, what, problem.Excerpt(revision, 40))}
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

// uncached is a result without the members about caching, which strict clients of older revisions refuse.
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
