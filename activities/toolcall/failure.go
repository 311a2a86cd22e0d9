package toolcall

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/childprocess"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// exitWait is how long a failure waits for the exit status of a server whose connection has ended.
const exitWait = time.Second

// explain turns the error of a connection or call into a failure with its code (spec: activities, 6.6 and 16.2). It
// masks secrets. x is nil without a connection.
func (s *server) explain(ctx context.Context, x *session, err error) *activities.Failure {
	failure, known := errors.AsType[*activities.Failure](err)
	wire, refused := errors.AsType[*jsonrpc.Error](err)
	status, hasStatus := errors.AsType[*statusError](err)
	request, unsent := errors.AsType[*url.Error](err)
	switch {
	case known:
		if x == nil {
			return failure
		}
		copied := *failure
		failure = &copied
	case ctx.Err() != nil:
		failure = activities.Interrupted(ctx, problem.ActivityTimeout, "the tool call")
		if failure.Code == string(problem.ActivityTimeout) && x != nil {
			failure.Message += x.said()
		}
	case x != nil && x.tooLarge(), errors.Is(err, errTooLarge):
		failure = activities.Fail(problem.ActivityOutputTooLarge, "the server was stopped, with all its calls, because it sent a message of more than %d bytes; have the tool return less at a time", s.config.MaxOutputBytes)
		failure.Retryable = activities.RetryPointless
	case hasStatus:
		failure = status.failure()
	case isClosed(err) || errors.Is(err, mcp.ErrSessionMissing):
		failure = activities.Fail(problem.MCPConnectionClosed, "the server ended the connection")
		if x != nil && x.process != nil {
			failure.Message = "the server " + x.end(ctx) + x.said()
		}
	case unsent:
		// Its own text contains the address, which may hold a key. The SDK gives it a code of the protocol, too.
		failure = activities.Fail(problem.MCPClientError, "the server cannot be reached: %v", request.Err)
	case refused && wire.Code == unkept:
		failure = activities.Fail(problem.ActivityOutputInvalid, "the result cannot be recorded: %s", wire.Message)
	case refused:
		failure = activities.Fail(problem.MCPProtocolError, "the server refused with code %d: %s", wire.Code, wire.Message)
		if len(wire.Data) > 0 {
			data := string(wire.Data)
			if x != nil {
				data = x.secret().Scrub(data) // before it is cut, so that the cut leaves no part of a secret
			}
			failure.Message += " " + strings.ToValidUTF8(data[:min(len(data), childprocess.MaxTail)], "")
		}
		data, _ := jsonvalue.Decode(wire.Data) // nil if there is none
		failure.RetryAfter = later(wire.Message, data)
		if failure.RetryAfter > 0 || slices.Contains(unsure, wire.Code) || saysLater(wire.Message) {
			failure.Retryable = activities.RetrySensible
		}
	default:
		failure = activities.Fail(problem.MCPClientError, "%v", err)
		if x != nil {
			failure.Message += x.said()
		}
	}
	if x == nil {
		return failure
	}
	if failure.Err != nil && ctx.Err() == nil { // the context's own error holds no secret, and callers look for it
		failure.Message, failure.Err = failure.Error(), nil
	}
	failure.Message = x.secret().Scrub(failure.Message)
	return failure
}

// unsure are the codes of JSON-RPC errors that say nothing of the call itself: the server's own trouble (-32000, which most servers use for
// whatever goes wrong) and an error within it. Another attempt may be answered.
var unsure = []int64{-32000, jsonrpc.CodeInternalError}

// isClosed reports whether an error means that the other side is gone.
func isClosed(err error) bool {
	for _, gone := range []error{mcp.ErrConnectionClosed, io.EOF, io.ErrUnexpectedEOF, io.ErrClosedPipe, fs.ErrClosed, syscall.EPIPE} {
		if errors.Is(err, gone) {
			return true
		}
	}
	return false
}

// tooLarge reports whether the connection has ended because of a message beyond the limit.
func (x *session) tooLarge() bool {
	return x.out != nil && x.out.large.Load() || x.link != nil && x.link.large.Load()
}

// end describes how the process ended.
func (x *session) end(ctx context.Context) string {
	timer := time.NewTimer(exitWait)
	defer timer.Stop()
	select {
	case <-x.process.Exited():
		return "has ended (" + x.process.State() + ")"
	case <-timer.C:
	case <-ctx.Done():
	}
	return "has closed its output"
}

// said quotes output of the process other than messages, as the end of a sentence.
func (x *session) said() string {
	text := ""
	if x.out != nil {
		if stray := x.out.strayLine(); stray != "" {
			text += "; on standard output it printed a line that is not a message: " + stray
		}
	}
	if x.process != nil {
		if printed := x.process.Stderr.String(); printed != "" {
			text += "; on standard error it printed: " + printed
		}
	}
	return text
}

// clientError is a failure on this side of the connection.
func clientError(err error) *activities.Failure {
	failure := activities.Fail(problem.MCPClientError, "the server cannot be started")
	failure.Err = err
	return failure
}
