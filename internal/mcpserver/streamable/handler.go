package streamable

import (
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/workflows-engine/workflows-engine/internal/mcpserver/frame"
)

// The paths.
const (
	// Path is where clients connect.
	Path = "/mcp"
	// HealthPath answers 200 while the server works and 503 while it does not, to anybody.
	HealthPath = "/healthz"
)

var errNoOrigin = errors.New("an origin is a scheme and a host, as in https://app.example.com")

// Options say who may connect and what is taken in. The zero value lets everybody in who reaches the address.
type Options struct {
	// Token is what requests have to send as their bearer token; "" asks for none.
	Token string
	// Origins are those of web pages that may connect, as in https://app.example.com, besides pages of this machine.
	Origins []string
	// Hosts are names by which requests may address the server, besides localhost and addresses.
	Hosts []string
	// MaxMessageBytes bounds a message; 0 means frame.DefaultMaxMessageBytes.
	MaxMessageBytes int
	// Healthy is asked for the health, at most once a second; nil means that the server always works.
	Healthy func(context.Context) error
	// Logger gets what is refused (info); nil discards it.
	Logger *slog.Logger
}

// Handler returns the handler of all paths: next gets the requests that may pass, with their message if they are POSTs. A text answer
// of an error that next gives becomes a JSON-RPC error.
func Handler(o Options, next func(http.ResponseWriter, *http.Request, *Message)) http.Handler {
	o.MaxMessageBytes = cmp.Or(o.MaxMessageBytes, frame.DefaultMaxMessageBytes)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	r := &reader{max: o.MaxMessageBytes, large: make(chan struct{}, maxLargeReads)}
	mux := http.NewServeMux()
	mux.Handle(HealthPath, Health(o.Healthy))
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		refuse(w, http.StatusNotFound, frame.Refuse(jsonrpc.CodeInvalidRequest, "there is nothing here: MCP clients connect to %s", Path))
	})
	mux.HandleFunc(Path, func(w http.ResponseWriter, req *http.Request) {
		a := &answer{ResponseWriter: w}
		defer func() {
			if p := recover(); p != nil {
				a.panicked(p, o.Logger)
			}
		}()
		defer func() {
			if a.status >= http.StatusBadRequest {
				o.Logger.Info("request refused", "status", a.status, "from", req.RemoteAddr)
			}
		}()
		w.Header().Set("X-Accel-Buffering", "no") // proxies pass on what is sent at once
		if !o.guard(a, req) {
			return
		}
		if !admit(w, req) {
			w.Header().Set("Retry-After", "10")
			refuse(a, http.StatusServiceUnavailable, frame.Refuse(jsonrpc.CodeInternalError, "%d connections are in use, as many as there can be: close some, or try again later", maxConnections))
			return
		}
		if req.Method != http.MethodPost {
			if req.ContentLength != 0 {
				refuse(a, http.StatusBadRequest, frame.Refuse(jsonrpc.CodeInvalidRequest, "a %s request has no body", req.Method))
				return
			}
			liftDeadline(w)
			next(a, req, nil)
			a.finish()
			return
		}
		m, status, refusal := r.read(a, req)
		if refusal != nil {
			refuse(a, status, refusal)
			return
		}
		if call, ok := m.Message.(*jsonrpc.Request); ok {
			a.call = call
		}
		next(a, req, m)
		a.finish()
	})
	return mux
}

// Health returns a handler that answers 200 while a program works, and 503 while it does not. It asks at most once a second; nil says that
// the program always works.
func Health(ask func(context.Context) error) http.Handler { return &health{ask: ask} }

// health answers who asks whether the server works.
type health struct {
	ask func(context.Context) error

	mu    sync.Mutex
	asked time.Time
	err   error
}

const (
	// healthEvery is how long an answer holds: anybody may ask, as often as they like.
	healthEvery = time.Second
	// healthTime is how long the server may take to find out.
	healthTime = 2 * time.Second
)

func (h *health) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	if err := h.now(r.Context()); err != nil {
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = io.WriteString(w, "unavailable\n")
		return
	}
	_, _ = io.WriteString(w, "ok\n")
}

func (h *health) now(ctx context.Context) error {
	if h.ask == nil {
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if time.Since(h.asked) >= healthEvery {
		// Who asks and goes away must not leave an error for the next.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), healthTime)
		defer cancel()
		h.err = h.ask(ctx)
		h.asked = time.Now()
	}
	return h.err
}
