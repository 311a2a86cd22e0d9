package streamable

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"runtime/debug"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/workflows-engine/workflows-engine/internal/httpguard"
	"github.com/workflows-engine/workflows-engine/internal/mcpserver/frame"
)

// Path is where clients connect.
const Path = "/mcp"

// Options configure access and limits. The zero value admits every client that reaches the address.
type Options struct {
	// Token is the bearer token of requests; "" means no token.
	Token string
	// Origins lists the origins of web pages that may connect, as in https://app.example.com, besides pages of this machine.
	Origins []string
	// Hosts lists the names of the server in requests, besides localhost and addresses.
	Hosts []string
	// MaxMessageBytes bounds a message; 0 means frame.DefaultMaxMessageBytes.
	MaxMessageBytes int
	// Others answers requests for paths other than Path and the health check; nil answers that nothing is there.
	Others http.Handler
	// Healthy returns an error while the server does not work. It is called at most once a second; nil means that the server always works.
	Healthy func(context.Context) error
	// Logger receives refusals (info); nil discards them.
	Logger *slog.Logger
}

// Handler returns the handler of all paths: next gets the permitted requests, with their message if they are POSTs. An error
// that next answers with text becomes a JSON-RPC error.
func Handler(o Options, next func(http.ResponseWriter, *http.Request, *Message)) http.Handler {
	o.MaxMessageBytes = cmp.Or(o.MaxMessageBytes, frame.DefaultMaxMessageBytes)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	r := &reader{max: o.MaxMessageBytes, large: make(chan struct{}, maxLargeReads)}
	access := httpguard.Access{
		Hosts: o.Hosts, Origins: o.Origins, LocalPages: true, Tokens: httpguard.OneToken(o.Token, ""),
		Methods: "GET, POST, DELETE", Exposed: "Mcp-Session-Id, Mcp-Protocol-Version, WWW-Authenticate",
	}
	mux := http.NewServeMux()
	mux.Handle(httpguard.HealthPath, httpguard.Health(o.Healthy))
	if o.Others != nil {
		mux.Handle("/", o.Others)
	} else {
		mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
			refuse(w, http.StatusNotFound, frame.Refuse(jsonrpc.CodeInvalidRequest, "not found: MCP clients connect to %s", Path))
		})
	}
	mux.HandleFunc(Path, func(w http.ResponseWriter, req *http.Request) {
		a := &answer{ResponseWriter: w}
		defer func() {
			if p := recover(); p != nil {
				a.panicked(p, o.Logger)
			}
		}()
		defer func() {
			if a.status >= http.StatusBadRequest {
				o.Logger.Info("request rejected", "status", a.status, "from", req.RemoteAddr)
			}
		}()
		w.Header().Set("X-Accel-Buffering", "no") // proxies must not buffer
		if _, ok := access.Admit(a, req, func(status int, message string) {
			refuse(a, status, frame.Refuse(jsonrpc.CodeInvalidRequest, "%s", message))
		}); !ok {
			return
		}
		if !httpguard.Enter(w, req) {
			w.Header().Set("Retry-After", "10")
			refuse(a, http.StatusServiceUnavailable, frame.Refuse(jsonrpc.CodeInternalError, "%d connections are in use, as many as there can be: close some, or try again later", httpguard.MaxConnections))
			return
		}
		if req.Method != http.MethodPost {
			if req.ContentLength != 0 {
				refuse(a, http.StatusBadRequest, frame.Refuse(jsonrpc.CodeInvalidRequest, "a %s request must not have a body", req.Method))
				return
			}
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

// answer is a response whose errors are JSON-RPC: the SDK rejects some requests with a line of text, which a client
// cannot tell from a page of a proxy, and which has no id.
type answer struct {
	http.ResponseWriter
	// call is the request to answer, nil if unknown.
	call   *jsonrpc.Request
	status int
	// text collects the text of an error; nil while nothing is collected.
	text *bytes.Buffer
}

// Unwrap is for http.ResponseController.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// WriteHeader holds back the status of an error in text.
func (a *answer) WriteHeader(status int) {
	if a.status != 0 {
		return
	}
	a.status = status
	if status >= http.StatusBadRequest && !strings.HasPrefix(a.Header().Get("Content-Type"), "application/json") {
		a.text = new(bytes.Buffer)
		return
	}
	a.ResponseWriter.WriteHeader(status)
}

func (a *answer) Write(p []byte) (int, error) {
	if a.status == 0 {
		a.WriteHeader(http.StatusOK)
	}
	if a.text != nil {
		return a.text.Write(p)
	}
	httpguard.LimitWrite(a.ResponseWriter)
	return a.ResponseWriter.Write(p)
}

// finish sends an error that was held back.
func (a *answer) finish() {
	if a.text == nil {
		return
	}
	said := strings.TrimSpace(a.text.String())
	r := frame.Refuse(jsonrpc.CodeInvalidRequest, "%s", said)
	a.text = nil
	a.Header().Del("X-Content-Type-Options")
	if a.call != nil {
		r.ID = a.call.ID
		if strings.HasSuffix(said, fmt.Sprintf("%q unsupported", a.call.Method)) {
			// An unknown method is not an HTTP error: clients look for the code in a response with status 200.
			r.Code, r.Message, a.status = jsonrpc.CodeMethodNotFound, fmt.Sprintf("method not found: %q", a.call.Method), http.StatusOK
			if !a.call.IsCall() { // a notification
				a.status = http.StatusAccepted
				a.ResponseWriter.WriteHeader(a.status)
				return
			}
		}
	}
	refuse(a.ResponseWriter, a.status, r)
}

// panicked answers a request whose handler panicked. If part of an answer is sent, the connection is closed, so that the client learns that it is
// incomplete.
func (a *answer) panicked(p any, log *slog.Logger) {
	if p == http.ErrAbortHandler {
		panic(p)
	}
	log.Error("panic", "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
	if a.status != 0 && a.text == nil {
		panic(http.ErrAbortHandler)
	}
	r := frame.Refuse(jsonrpc.CodeInternalError, "internal error of the server, see its log; other requests are not affected")
	if a.call != nil {
		r.ID = a.call.ID
	}
	a.text = nil
	a.Header().Del("X-Content-Type-Options")
	refuse(a.ResponseWriter, http.StatusInternalServerError, r)
}

const (
	// maxLargeReads bounds the large messages read at once: each is in memory before the memory limit can reject it.
	maxLargeReads = 4
	// largeRead is the size, in bytes, from which a message is large.
	largeRead = 64 << 10
)

// Message is the content of a POST.
type Message struct {
	// Message is nil for a batch.
	jsonrpc.Message
	// Arguments holds large arguments that were taken out of a tool call, nil without any.
	Arguments []byte
}

// id returns the id of a request, invalid for other messages.
func (m *Message) id() jsonrpc.ID {
	if m != nil {
		if call, ok := m.Message.(*jsonrpc.Request); ok {
			return call.ID
		}
	}
	return jsonrpc.ID{}
}

type reader struct {
	max   int
	large chan struct{}
}

// read reads the message of a POST and leaves the text for the SDK in the body. A refusal comes with the HTTP status.
func (d *reader) read(w http.ResponseWriter, r *http.Request) (*Message, int, *frame.Refusal) {
	if media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || media != "application/json" {
		return nil, http.StatusUnsupportedMediaType, frame.Refuse(jsonrpc.CodeInvalidRequest, "the Content-Type must be application/json")
	}
	text, err := d.body(w, r)
	switch {
	case err != nil:
		return nil, http.StatusBadRequest, frame.Refuse(jsonrpc.CodeInvalidRequest, "the message was not received: %v", err)
	case text.IsEmpty():
		return nil, http.StatusBadRequest, frame.Refuse(jsonrpc.CodeInvalidRequest, "the request must have a message")
	case text.IsBatch():
		refusal := checkBatch(text)
		if refusal == nil {
			setBody(r, text.Bytes())
		}
		return &Message{}, http.StatusBadRequest, refusal
	}
	m, refusal := text.Decode()
	switch {
	case text.IsTooLong():
		return nil, http.StatusRequestEntityTooLarge, refusal
	case refusal != nil:
		return nil, http.StatusBadRequest, refusal
	}
	if m == nil {
		return nil, http.StatusBadRequest, frame.Refuse(jsonrpc.CodeInvalidRequest, "the response cannot be read")
	}
	read := &Message{Message: m}
	if call, ok := m.(*jsonrpc.Request); ok {
		arguments, _ := call.Extra.(frame.Arguments)
		read.Arguments = arguments
	}
	rest, err := jsonrpc.EncodeMessage(m)
	if err != nil {
		return nil, http.StatusBadRequest, frame.Refuse(jsonrpc.CodeInvalidRequest, "the message cannot be read: %v", err)
	}
	setBody(r, rest)
	return read, 0, nil
}

// body reads the body. Beyond the limit it reads as much again, because a client that is still sending does not read
// the answer.
func (d *reader) body(w http.ResponseWriter, r *http.Request) (frame.Text, error) {
	if r.ContentLength < 0 || r.ContentLength > largeRead {
		select {
		case d.large <- struct{}{}:
			defer func() { <-d.large }()
		case <-r.Context().Done():
			return frame.Text{}, context.Cause(r.Context())
		}
	}
	// The client did not cause the wait above.
	httpguard.LimitRead(w, r)
	return frame.Whole(io.LimitReader(r.Body, 2*int64(d.max)), r.ContentLength, d.max)
}

// checkBatch checks the messages of a batch. The SDK rejects batches in revisions without them.
func checkBatch(text frame.Text) *frame.Refusal {
	members, refusal := text.Members()
	for _, member := range members {
		if _, refusal := member.Decode(); refusal != nil {
			return refusal
		}
	}
	return refusal
}

func setBody(r *http.Request, text []byte) {
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(text)), int64(len(text))
}

// refuse answers with a JSON-RPC error.
func refuse(w http.ResponseWriter, status int, r *frame.Refusal) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write(r.Encode()) // a client that is gone needs no answer
}
