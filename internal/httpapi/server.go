// Package httpapi is the HTTP API over an engine: one table of operations makes the routes and openapi.json.
//
// Arguments and answers are those of the MCP tools (internal/calls, internal/runjson). docs/http-api.md describes the API for
// users.
package httpapi

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"net/url"
	"path"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/calls"
	"github.com/workflows-engine/workflows-engine/internal/catalog"
	"github.com/workflows-engine/workflows-engine/internal/httpguard"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

const (
	// DefaultMaxBodyBytes bounds the body of a request.
	DefaultMaxBodyBytes = 16 << 20
	// maxStreams bounds the event streams that are open at once.
	maxStreams = 256
	// maxCallerStreams bounds those of the holder of a token, so that one program leaves room for others.
	maxCallerStreams = 64
	// largeBody is the size of the smallest large body, in bytes; maxLargeReads of them are read at once.
	largeBody, maxLargeReads = 64 << 10, 4
)

// Options configure the API.
type Options struct {
	// Engine performs the operations. Required.
	Engine graph.Engine
	// Catalog has the workflows of a directory; nil without one.
	Catalog *catalog.Catalog
	// Access decides who may send requests. Only pages of its Origins may.
	Access httpguard.Access
	// DefaultMode is the mode of runs that are started without one; "" means machine.InProcess.
	DefaultMode machine.Mode
	// Redaction hides secrets in answers; the zero value hides nothing.
	Redaction history.Redaction
	// MaxBodyBytes bounds the body of a request; 0 means DefaultMaxBodyBytes.
	MaxBodyBytes int
	// Healthy is asked for the health, at most once a second; nil means that the server always works.
	Healthy func(context.Context) error
	// Stop ends waits and event streams when it is closed; nil never does.
	Stop <-chan struct{}
	// Log receives refused requests (info) and faults (error); nil discards them.
	Log *slog.Logger
	// Version is that of the program, for openapi.json.
	Version string
}

// Server is the API as an http.Handler. Handlers besides it must not have paths below /v1, /openapi.json and /healthz.
type Server struct {
	Options
	mux     *http.ServeMux
	large   chan struct{}
	streams streams
	openAPI []byte
}

// New returns the handler of the API.
func New(o Options) *Server {
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	o.MaxBodyBytes = cmp.Or(o.MaxBodyBytes, DefaultMaxBodyBytes)
	o.Access.Methods, o.Access.Exposed = "GET, POST", "Location, Retry-After, WWW-Authenticate"
	s := &Server{Options: o, mux: http.NewServeMux(), large: make(chan struct{}, maxLargeReads)}
	s.openAPI = OpenAPI(o.Version)
	health := httpguard.Health(o.Healthy)
	table := operations(o.DefaultMode)
	verbs := map[string]*operation{}
	for i := range table {
		op := &table[i]
		switch {
		case op.verb() != "":
			verbs[op.verb()] = op
		case op.path == httpguard.HealthPath:
			s.mux.Handle(op.path, health)
		default:
			s.mux.HandleFunc(op.method+" "+op.path, func(w http.ResponseWriter, r *http.Request) { s.serve(w, r, op, r.PathValue("exec_id")) })
		}
	}
	// The mux has no {exec_id}:verb, and an id may contain a colon, sent as %3A.
	s.mux.HandleFunc("POST /v1/executions/{rest}", func(w http.ResponseWriter, r *http.Request) {
		escaped := r.URL.EscapedPath()
		escaped = escaped[strings.LastIndexByte(escaped, '/')+1:]
		colon := strings.LastIndexByte(escaped, ':')
		op := verbs[escaped[colon+1:]]
		id, err := url.PathUnescape(escaped[:max(colon, 0)])
		if colon < 0 || op == nil || err != nil {
			s.refuse(w, notFound("there is no such operation: POST %s", r.URL.EscapedPath()))
			return
		}
		s.serve(w, r, op, id)
	})
	s.mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		var allowed []string
		for _, method := range []string{http.MethodGet, http.MethodPost} {
			other := *r
			other.Method = method
			if _, pattern := s.mux.Handler(&other); pattern != "/" && pattern != "" {
				allowed = append(allowed, method)
			}
		}
		if len(allowed) > 0 && !slices.Contains(allowed, r.Method) {
			w.Header().Set("Allow", strings.Join(allowed, ", "))
			s.refuse(w, &refusal{http.StatusMethodNotAllowed, problem.New(problem.ValidationError, "the method %s does not exist here", r.Method).WithHint("Use %s.", problem.OrList(allowed))})
			return
		}
		s.refuse(w, notFound("there is nothing at %s", r.URL.Path))
	})
	return s
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a := &answer{ResponseWriter: w}
	defer func() {
		if p := recover(); p != nil {
			if p == http.ErrAbortHandler || a.status != 0 {
				panic(http.ErrAbortHandler)
			}
			s.Log.Error("panic", "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			s.refuse(a, problem.New(problem.Internal, "internal error of the server, see its log"))
		}
		if a.status >= http.StatusBadRequest {
			s.Log.Info("request refused", "status", a.status, "from", r.RemoteAddr)
		}
	}()
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Cross-Origin-Resource-Policy", "same-origin")
	if r.URL.Path == httpguard.HealthPath {
		s.mux.ServeHTTP(a, r)
		return
	}
	caller, ok := s.Access.Admit(a, r, func(status int, message string) {
		code := problem.ValidationError
		switch status {
		case http.StatusUnauthorized:
			code = problem.Unauthorized
		case http.StatusForbidden:
			code = problem.Forbidden
		}
		s.refuse(a, &refusal{status, problem.New(code, "%s", message)})
	})
	if !ok {
		return
	}
	if !httpguard.Enter(w, r) {
		s.refuse(a, tooMany("%d connections are in use, as many as there can be", httpguard.MaxConnections))
		return
	}
	if escaped := r.URL.EscapedPath(); path.Clean("/"+escaped) != escaped {
		s.refuse(a, problem.New(problem.ValidationError, "the path has an empty segment, or one that is . or ..").
			WithHint("Address a run with such an id as /v1/executions/-?id=ID."))
		return
	}
	s.mux.ServeHTTP(a, r.WithContext(context.WithValue(r.Context(), callerKey{}, caller)))
}

type callerKey struct{}

// answer notes the status of an answer, and limits the time to read it.
type answer struct {
	http.ResponseWriter
	status int
}

// Unwrap is for http.ResponseController.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

func (a *answer) WriteHeader(status int) {
	if a.status == 0 {
		a.status = status
		a.ResponseWriter.WriteHeader(status)
	}
}

func (a *answer) Write(p []byte) (int, error) {
	a.WriteHeader(http.StatusOK)
	httpguard.LimitWrite(a.ResponseWriter)
	return a.ResponseWriter.Write(p)
}

// request is a request of an operation with its arguments.
type request struct {
	*http.Request
	*calls.Arguments
	w http.ResponseWriter
	// id is the run that the path names, or ""; ref the workflow.
	id, ref string
}

// serve performs an operation on the run with an id, if it is about one.
func (s *Server) serve(w http.ResponseWriter, r *http.Request, op *operation, id string) {
	caller := r.Context().Value(callerKey{}).(httpguard.Caller)
	if op.writes && caller.ReadOnly {
		s.refuse(w, problem.New(problem.Forbidden, "the token of %q permits reading alone", caller.Name))
		return
	}
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		s.refuse(w, problem.New(problem.ValidationError, "invalid query: %v", err).WithHint("Separate parameters by & and escape their values."))
		return
	}
	if ids := query["id"]; op.ofRun() && id == "-" && len(ids) == 1 {
		id = ids[0]
		query.Del("id")
	}
	in := &request{Request: r, w: w, id: id, ref: r.PathValue("wf_id")}
	elsewhere := map[string]any{}
	if op.ofRun() {
		elsewhere["execution_id"] = id
	}
	if in.ref != "" && op.request != nil {
		elsewhere["definition_ref"] = in.ref
	}
	if op.method == http.MethodPost {
		body, err := s.body(w, r, op)
		if err != nil {
			s.refuse(w, err)
			return
		}
		if len(query) > 0 {
			s.refuse(w, problem.New(problem.ValidationError, "unknown parameter %q in the query", firstKey(query)).WithHint("Write arguments into the body."))
			return
		}
		in.Arguments = calls.Read(body, names(op.request), op.inner, elsewhere)
		if in.Broken != nil {
			s.refuse(w, problem.New(problem.ValidationError, "the body is not JSON: %v", in.Broken))
			return
		}
	} else {
		if r.ContentLength != 0 {
			s.refuse(w, problem.New(problem.ValidationError, "a %s request has no body", r.Method))
			return
		}
		if op.ofRun() && query.Has("execution_id") {
			s.refuse(w, problem.New(problem.ValidationError, "the path names the run, the query must not"))
			return
		}
		values := queryValues(query, op.params)
		for name, value := range elsewhere {
			values[name] = value
		}
		known := names(op.params)
		if op.ofRun() {
			known = append(known, "execution_id")
		}
		in.Arguments = calls.Of(values, known)
	}
	ctx := graph.WithActor(r.Context(), history.Actor{Via: "http", Name: caller.Name})
	if parent := r.Header.Get("Traceparent"); parent != "" {
		ctx = graph.WithTraceParent(ctx, parent)
	}
	in.Request = r.WithContext(ctx)
	result, err := op.call(s, in)
	switch {
	case err != nil:
		s.refuse(w, err)
	case result != nil:
		s.write(w, result.status, result.body)
	}
}

func firstKey(query url.Values) string {
	for name := range query {
		return name
	}
	return ""
}

// queryValues returns the values of a query by the types of its parameters. What is not of the type stays text, which the
// reader of the arguments then reports.
func queryValues(query url.Values, params []calls.Property) map[string]any {
	values := map[string]any{}
	for name, texts := range query {
		i := slices.IndexFunc(params, func(p calls.Property) bool { return p.Name == name })
		if len(texts) > 1 {
			list := make([]any, len(texts))
			for i, text := range texts {
				list[i] = text
			}
			values[name] = list
			continue
		}
		values[name] = texts[0]
		if i < 0 {
			continue
		}
		switch kind, _ := jsonvalue.Decode(params[i].Schema.Append(nil)); kind.(map[string]any)["type"] {
		case "integer":
			if n, err := strconv.ParseInt(texts[0], 10, 53); err == nil {
				values[name] = float64(n)
			}
		case "boolean":
			if b, err := strconv.ParseBool(texts[0]); err == nil {
				values[name] = b
			}
		}
	}
	return values
}

// body reads the body of a request, which may be absent.
func (s *Server) body(w http.ResponseWriter, r *http.Request, op *operation) ([]byte, error) {
	if r.ContentLength == 0 {
		return nil, nil
	}
	if media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || media != "application/json" {
		return nil, &refusal{http.StatusUnsupportedMediaType, problem.New(problem.ValidationError, "the Content-Type must be application/json")}
	}
	if r.ContentLength < 0 || r.ContentLength > largeBody {
		select {
		case s.large <- struct{}{}:
			defer func() { <-s.large }()
		case <-r.Context().Done():
			return nil, context.Cause(r.Context())
		}
	}
	httpguard.LimitRead(w, r) // the client did not cause the wait above
	body, err := io.ReadAll(io.LimitReader(r.Body, int64(s.MaxBodyBytes)+1))
	switch {
	case err != nil:
		return nil, problem.New(problem.ValidationError, "the body has not come in: %v", err)
	case len(body) > s.MaxBodyBytes:
		_, _ = io.CopyN(io.Discard, r.Body, int64(s.MaxBodyBytes)) // a client that is still sending does not read the answer
		return nil, &refusal{http.StatusRequestEntityTooLarge, problem.New(problem.ValidationError, "the body has more than %d bytes", s.MaxBodyBytes)}
	}
	return body, nil
}

// write answers with a JSON object, without the operator's secrets.
func (s *Server) write(w http.ResponseWriter, status int, body jsonvalue.Ordered) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(s.Redaction.Text(body.Append(nil)), '\n')) // a client that is gone needs no answer
}

// refusal is an error with the status of its answer.
type refusal struct {
	status  int
	problem *problem.Error
}

func (r *refusal) Error() string { return r.problem.Error() }

// Unwrap returns the error.
func (r *refusal) Unwrap() error { return r.problem }

func notFound(format string, args ...any) error {
	return &refusal{http.StatusNotFound, problem.New(problem.ValidationError, format, args...).WithHint("GET /openapi.json lists the operations.")}
}

func tooMany(format string, args ...any) error {
	return &refusal{http.StatusTooManyRequests, problem.New(problem.ValidationError, format, args...).WithHint("Close some, or try again later.")}
}

// retryAfter is the number of seconds after which a client should try again.
const retryAfter = "5"

// refuse answers with an error.
func (s *Server) refuse(w http.ResponseWriter, err error) {
	status := 0
	if r, ok := errors.AsType[*refusal](err); ok {
		status, err = r.status, r.problem
	}
	e, ok := problem.As(err)
	switch {
	case ok:
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		e = problem.New(problem.CallCancelled, "the call was cancelled: %v", err)
	default:
		e = problem.New(problem.Internal, "%v", err)
	}
	if status == 0 {
		status = statusOf(e)
	}
	if status >= http.StatusInternalServerError {
		s.Log.Error("call failed", "error", e.Error(), "code", string(e.Code))
	}
	if status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", retryAfter)
	}
	s.write(w, status, jsonvalue.Ordered{{"error", encodeError(e)}})
}
