package toolcall

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/childprocess"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// protocolVersion is the requested protocol version. Without it the SDK would start with server/discover, and servers
// that ignore unknown requests hang.
const protocolVersion = "2025-11-25"

// idempotencyKeyMeta is the field of a call's _meta that holds its idempotency key.
const idempotencyKeyMeta = "idempotencyKey"

// session is a live connection to a server. Its user counts are kept by the server.
type session struct {
	mcp *mcp.ClientSession
	// process and out are nil for a server with a URL; link is nil for the others.
	process *childprocess.Process
	out     *messages
	link    *httpLink
	// secrets are the values to mask. Secrets behind a reference may be added during the session.
	secrets atomic.Pointer[childprocess.Scrubber]
	log     *slog.Logger
	// ended is closed when the connection has ended, stopped when its process has too.
	ended, stopped chan struct{}

	tools toolList

	tokens   atomic.Int64
	mu       sync.Mutex
	progress map[string]func(map[string]any)
	// allowance limits the server's log messages that are logged.
	allowance childprocess.Allowance

	// calls, retired and idle belong to the server.
	calls   int
	retired bool
	idle    *time.Timer
}

// dial makes a connection: it starts the process if there is one, and initializes the session. On an error nothing is
// left behind. The error is the SDK's, or a failure with its own code.
func (s *server) dial(ctx context.Context) (*session, error) {
	env, secrets, err := childprocess.Resolve(s.Env, s.config.Secret)
	if err != nil {
		return nil, clientError(err)
	}
	headers, more, err := childprocess.Resolve(s.Headers, s.config.Secret)
	if err != nil {
		return nil, clientError(err)
	}
	x := &session{
		ended: make(chan struct{}), stopped: make(chan struct{}), progress: map[string]func(map[string]any){}, log: s.log, allowance: logged,
	}
	known := slices.Concat(secrets, more)
	x.mask(known)
	client := mcp.NewClient(
		&mcp.Implementation{Name: "workflows-engine", Version: s.config.Version},
		&mcp.ClientOptions{
			Capabilities:                &mcp.ClientCapabilities{},
			MultiRoundTrip:              &mcp.MultiRoundTripOptions{Disabled: true},
			ProgressNotificationHandler: x.heartbeat,
			//lint:ignore SA1019 servers of today use it
			LoggingMessageHandler: x.logMessage,
			ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) {
				x.tools.stale.Store(true)
				s.changes.Add(1)
			},
		})
	var renew func() (map[string]string, error)
	if _, _, err := childprocess.Resolve(s.Headers, nil); err != nil { // there are references in them
		renew = func() (map[string]string, error) {
			headers, more, err := childprocess.Resolve(s.Headers, s.config.Secret)
			if err == nil {
				known = append(known, more...)
				x.mask(known)
			}
			return headers, err
		}
	}
	transport, err := s.transport(x, env, headers, renew)
	if err != nil {
		return nil, err
	}
	begun := time.Now()
	connecting, stop := context.WithTimeout(ctx, s.connectLimit(ctx))
	defer stop()
	if x.process != nil {
		defer context.AfterFunc(connecting, x.process.Kill)() // ends before stop
	}
	x.mcp, err = client.Connect(connecting, transport, &mcp.ClientSessionOptions{ProtocolVersion: protocolVersion})
	if err != nil {
		if connecting.Err() != nil {
			err = s.silent(ctx, x, time.Since(begun), err)
		}
		err = s.explain(ctx, x, err)
		if x.process != nil {
			x.process.Kill()
			_ = x.out.Close()
			x.process.Stop(s.config.StopGrace)
		} else {
			x.link.base.CloseIdleConnections()
		}
		return nil, err
	}
	s.changes.Add(1)
	s.wait.Go(func() { x.attend(s.config.StopGrace) })
	return x, nil
}

// connectLimit is how long a server may take to answer initialize. A call with little time reserves a part of it for the error.
func (s *server) connectLimit(ctx context.Context) time.Duration {
	limit := s.config.ConnectTimeout
	const short = 4 * time.Second // less is for starting the server
	if at, bounded := ctx.Deadline(); bounded && time.Until(at) > short {
		limit = min(limit, time.Until(at)*3/4)
	}
	return limit
}

// silent returns the failure for a server that has not answered initialize; or the call's own failure, if it timed out or was cancelled.
func (s *server) silent(ctx context.Context, x *session, after time.Duration, err error) error {
	failure := activities.Fail(problem.MCPClientError, "")
	if ctx.Err() != nil {
		if failure = s.explain(ctx, nil, err); failure.Code != string(problem.ActivityTimeout) {
			return failure
		}
		failure.Message += ": "
	}
	failure.Message += fmt.Sprintf("it has not answered initialize within %v", after.Round(time.Millisecond))
	if x.process != nil {
		failure.Message += "; start its command by hand to see why (a first start may install packages)"
	}
	failure.Message += x.said()
	return failure
}

// logMessage logs a server's notifications/message.
func (x *session) logMessage(ctx context.Context, req *mcp.LoggingMessageRequest) {
	level := slog.LevelInfo
	switch req.Params.Level {
	case "debug":
		level = slog.LevelDebug
	case "warning":
		level = slog.LevelWarn
	case "error", "critical", "alert", "emergency":
		level = slog.LevelError
	}
	text, isText := req.Params.Data.(string)
	if plain, err := jsonvalue.Normalize(req.Params.Data); err == nil && !isText {
		text = string(jsonvalue.Canonical(plain))
	}
	clean := func(s string) string { // masked before it is cut, so that the cut leaves no part of a secret
		s = x.secret().Scrub(strings.ToValidUTF8(s, "\ufffd"))
		return strings.ToValidUTF8(s[:min(len(s), childprocess.MaxLine)], "")
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.allowance.Log(clean(text), func(text string) {
		x.log.Log(ctx, level, "MCP server logs", logLogger, clean(req.Params.Logger), logData, text)
	})
}

// mask sets the secrets that are masked.
func (x *session) mask(secrets []string) {
	scrubber := childprocess.NewScrubber(secrets)
	x.secrets.Store(&scrubber)
}

// secret masks the secrets of the session.
func (x *session) secret() childprocess.Scrubber { return *x.secrets.Load() }

func (s *server) transport(x *session, env, headers map[string]string, renew func() (map[string]string, error)) (mcp.Transport, error) {
	if s.URL != "" {
		x.link = newHTTPLink(headers, s.config.MaxOutputBytes, renew)
		return x.link.transport(s.URL), nil
	}
	program := childprocess.Program{
		Command: s.Command, Args: s.Args, Environment: childprocess.Environment(s.config.Environ, env), Directory: s.Directory,
	}
	stderr := &childprocess.Tail{Secret: x.secret(), Allowance: logged, Line: func(line string) { s.log.Info("MCP server prints", logLine, line) }}
	var err error
	x.process, err = childprocess.Start(program, stderr, func(state string) { s.log.Info("MCP server ended", logState, state) })
	if err != nil {
		return nil, clientError(err)
	}
	s.log.Info("MCP server started", logPID, x.process.PID)
	x.out = newMessages(x.process.Stdout, s.config.MaxOutputBytes, s.log, x.secret())
	// The messages are bounded already, and the SDK's own bound has no code.
	return &mcp.IOTransport{Reader: x.out, Writer: x.process.Stdin, MaxLineLength: -1}, nil
}

// attend waits for the end of the connection, whatever the reason, and leaves nothing of it behind.
func (x *session) attend(grace time.Duration) {
	_ = x.mcp.Wait()
	close(x.ended)
	if x.process != nil {
		x.process.Stop(grace)
		_ = x.out.Close()
	} else {
		x.link.base.CloseIdleConnections()
	}
	close(x.stopped)
}

// stop ends the connection. It returns when the process has ended.
func (x *session) stop(grace time.Duration) {
	if x.process != nil {
		x.process.Stop(grace)
	}
	_ = x.mcp.Close() // an error of the closing handshake does not matter
	<-x.stopped
}

// alive reports whether the connection is still open.
func (x *session) alive() bool {
	select {
	case <-x.ended:
		return false
	default:
		return true
	}
}

// call calls a tool. The error is the SDK's.
func (x *session) call(ctx context.Context, c Call) (*mcp.CallToolResult, error) {
	params := &mcp.CallToolParams{Name: c.Tool, Arguments: c.Arguments, Meta: mcp.Meta{}}
	if c.Arguments == nil {
		params.Arguments = map[string]any{}
	}
	if c.IdempotencyKey != "" {
		params.Meta[idempotencyKeyMeta] = c.IdempotencyKey
	}
	if c.Heartbeat != nil {
		token := strconv.FormatInt(x.tokens.Add(1), 10)
		params.SetProgressToken(token)
		x.mu.Lock()
		x.progress[token] = c.Heartbeat
		x.mu.Unlock()
		defer func() {
			x.mu.Lock()
			delete(x.progress, token)
			x.mu.Unlock()
		}()
	}
	return x.mcp.CallTool(ctx, params)
}

// heartbeat hands a progress notification to the call that it belongs to.
func (x *session) heartbeat(_ context.Context, req *mcp.ProgressNotificationClientRequest) {
	x.mu.Lock()
	beat := x.progress[fmt.Sprint(req.Params.ProgressToken)]
	x.mu.Unlock()
	if beat == nil {
		return // of a call that has ended
	}
	details := map[string]any{"progress": req.Params.Progress}
	if req.Params.Total != 0 {
		details["total"] = req.Params.Total
	}
	if req.Params.Message != "" {
		details["message"] = x.secret().Scrub(req.Params.Message)
	}
	beat(details)
}
