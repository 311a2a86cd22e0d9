package mcpserver

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/workflows-engine/workflows-engine/internal/httpguard"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
	"github.com/workflows-engine/workflows-engine/internal/mcpserver/streamable"
)

// HTTPOptions configure access and limits of a server that listens.
type HTTPOptions = streamable.Options

// ServeHTTP answers clients that connect to an address, any number at once, until ctx ends: the pending calls are then cut short and
// answered, and the runs continue when another process claims them. A server that listens has no input that ends. It closes the listener.
func ServeHTTP(ctx context.Context, server *mcp.Server, l net.Listener, o HTTPOptions) error {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	d := newHTTPServer(ctx, server, o.Logger)
	err := httpguard.Serve(ctx, l, streamable.Handler(o, d.serve), o.Logger)
	for session := range server.Sessions() {
		go session.Close() // it waits for calls that have not ended in time
	}
	awaitLast(d.link.questions)
	return err
}

// httpServer passes messages received over HTTP to the SDK's handlers.
type httpServer struct {
	// link is copied for each session; alone serves requests without a session.
	link, alone *link
	// sessions serves revisions with sessions, which begin with initialize; single serves the later ones.
	sessions *streamable.Sessions
	single   http.Handler
}

func newHTTPServer(ctx context.Context, server *mcp.Server, log *slog.Logger) *httpServer {
	one := func(*http.Request) *mcp.Server { return server }
	handler := func(o mcp.StreamableHTTPOptions) http.Handler {
		// Package streamable has checked them: it also allows the names of --allow-host, and its errors are JSON-RPC.
		o.Logger, o.DisableLocalhostProtection, o.MaxRequestBodyBytes = log, true, -1
		return mcp.NewStreamableHTTPHandler(one, &o)
	}
	common := link{stop: ctx, turns: newTurns(), questions: new(sync.WaitGroup)}
	alone := common
	alone.oneCall = true
	many := handler(mcp.StreamableHTTPOptions{})
	return &httpServer{
		link: &common, alone: &alone,
		sessions: &streamable.Sessions{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if life := streamable.LifeOf(r); life != nil {
				r = r.WithContext(withLink(r.Context(), common.of(life)))
			}
			many.ServeHTTP(w, r)
		}), Close: func(id string) {
			for session := range server.Sessions() {
				if session.ID() == id {
					_ = session.Close()
				}
			}
		}},
		single: handler(mcp.StreamableHTTPOptions{Stateless: true, PropagateRequestCancellation: true}),
	}
}

func (d *httpServer) serve(w http.ResponseWriter, r *http.Request, m *streamable.Message) {
	r.Header.Del(turnHeader)
	if call, ok := callOf(m); ok {
		defer d.takeTurn(r, call, m.Arguments)()
	}
	if isSessionless(r, m) {
		d.single.ServeHTTP(w, r.WithContext(withLink(r.Context(), d.alone)))
		return
	}
	d.sessions.ServeHTTP(w, r, m)
}

// callOf returns the tool call of a message.
func callOf(m *streamable.Message) (*jsonrpc.Request, bool) {
	if m == nil {
		return nil, false
	}
	call, ok := m.Message.(*jsonrpc.Request)
	return call, ok && call.IsCall() && call.Method == "tools/call"
}

// isSessionless reports whether a request is one of the revisions without sessions.
func isSessionless(r *http.Request, m *streamable.Message) bool {
	if r.Header.Get("Mcp-Protocol-Version") >= cachedSince {
		return true
	}
	if m == nil || r.Header.Get("Mcp-Session-Id") != "" {
		return false
	}
	call, ok := m.Message.(*jsonrpc.Request)
	if !ok {
		return false
	}
	revision := jsonvalue.MemberText(jsonvalue.MemberText(call.Params, "_meta"), mcp.MetaKeyProtocolVersion)
	return string(jsonvalue.StringText(revision)) >= cachedSince
}

// lateHandler is how long a call of a disconnected client may take to reach its handler.
const lateHandler = 10 * time.Second

// takeTurn gives a call of a session its turn behind those whose messages have come in before; calls without a session have no order.
// The turn ends with done, unless the call is with its handler, which ends it.
func (d *httpServer) takeTurn(r *http.Request, call *jsonrpc.Request, large []byte) (done func()) {
	arguments := large
	if large == nil {
		arguments = jsonvalue.MemberText(call.Params, "arguments")
	}
	queue := ""
	if session, run := r.Header.Get("Mcp-Session-Id"), rootNamedBy(arguments); session != "" && run != "" {
		queue = session + " " + run
	}
	if queue == "" && large == nil {
		return func() {}
	}
	t := &turn{run: queue, arguments: large, known: true}
	r.Header.Set(turnHeader, d.link.turns.add(t))
	return func() {
		if r.Context().Err() != nil {
			time.AfterFunc(lateHandler, func() { d.link.turns.leave(t) })
			return
		}
		d.link.turns.leave(t)
	}
}
