package streamable

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/workflows-engine/workflows-engine/internal/mcpserver/frame"
)

// answer is a response whose errors are JSON-RPC: of some requests the SDK says in a line of text why it refuses them, which a client
// cannot tell from a page of a proxy, and which has no id.
type answer struct {
	http.ResponseWriter
	// call is the request that is answered, nil if it is unknown or none.
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
	limitWrite(a.ResponseWriter)
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
			// A method that there is not is no fault of the request: clients look for the code, and not behind an error status.
			r.Code, r.Message, a.status = jsonrpc.CodeMethodNotFound, fmt.Sprintf("method not found: %q", a.call.Method), http.StatusOK
			if !a.call.IsCall() { // nobody waits for an answer
				a.status = http.StatusAccepted
				a.ResponseWriter.WriteHeader(a.status)
				return
			}
		}
	}
	refuse(a.ResponseWriter, a.status, r)
}

// panicked answers a request whose handler has panicked. If some of an answer is out, the client learns by the end of the connection that it is
// not whole.
func (a *answer) panicked(p any, log *slog.Logger) {
	if p == http.ErrAbortHandler {
		panic(p)
	}
	log.Error("panic", "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
	if a.status != 0 && a.text == nil {
		panic(http.ErrAbortHandler)
	}
	r := frame.Refuse(jsonrpc.CodeInternalError, "a defect of the server, which its log has: other requests go on")
	if a.call != nil {
		r.ID = a.call.ID
	}
	a.text = nil
	a.Header().Del("X-Content-Type-Options")
	refuse(a.ResponseWriter, http.StatusInternalServerError, r)
}
