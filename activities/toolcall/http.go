package toolcall

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// maxRefusal is how much of the body of an error response a failure quotes, in bytes.
const maxRefusal = 500

// httpLink is the way to a server with a URL.
type httpLink struct {
	// renew reads the headers again; nil if they have no references.
	renew func() (map[string]string, error)
	limit int64
	large atomic.Bool
	base  *http.Transport

	mu      sync.Mutex
	headers map[string]string
	// version counts how often headers were read anew.
	version int
}

// newHTTPLink makes a link whose requests carry headers and whose answers are bounded.
func newHTTPLink(headers map[string]string, limit int, renew func() (map[string]string, error)) *httpLink {
	return &httpLink{headers: headers, renew: renew, limit: int64(limit) + envelope, base: http.DefaultTransport.(*http.Transport).Clone()}
}

// transport is the SDK's transport over the link. Redirects are not followed, so that the headers go nowhere else; there
// is no stream for unsolicited messages of servers.
func (l *httpLink) transport(url string) mcp.Transport {
	return &mcp.StreamableClientTransport{
		Endpoint: url,
		HTTPClient: &http.Client{
			Transport:     l,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		MaxRetries:           -1,
		DisableStandaloneSSE: true,
		MaxEventSize:         int(l.limit),
	}
}

// RoundTrip implements http.RoundTripper.
func (l *httpLink) RoundTrip(req *http.Request) (*http.Response, error) {
	l.mu.Lock()
	headers, version := l.headers, l.version
	l.mu.Unlock()
	res, err := l.base.RoundTrip(with(req, headers))
	if err == nil && res.StatusCode == http.StatusUnauthorized && l.renew != nil && (req.Body == nil || req.GetBody != nil) {
		res, err = l.again(req, res, version)
	}
	if err != nil {
		return nil, err
	}
	if refuses(res.StatusCode) {
		defer res.Body.Close()
		// The status is enough if the body cannot be read.
		text, _ := io.ReadAll(io.LimitReader(res.Body, maxRefusal))
		return nil, &statusError{status: res.StatusCode, header: res.Header, body: strings.TrimSpace(strings.ToValidUTF8(string(text), "\ufffd"))}
	}
	res.Body = exactAnswer(&boundedBody{http.MaxBytesReader(nil, res.Body, l.limit), &l.large}, res.Header.Get("Content-Type"))
	return res, nil
}

// with is a copy of a request that carries headers.
func with(req *http.Request, headers map[string]string) *http.Request {
	req = req.Clone(req.Context())
	for name, value := range headers {
		req.Header.Set(name, value)
	}
	return req
}

// again repeats a request that the server did not accept (401) with headers whose references are read anew: a key may have been replaced
// since the session began. A rejected request has not been performed, so that it can be sent again. Without new headers the
// refusal stands.
func (l *httpLink) again(req *http.Request, refusal *http.Response, version int) (*http.Response, error) {
	l.mu.Lock()
	if l.version == version { // else another request has read them meanwhile
		headers, err := l.renew()
		if err != nil {
			l.mu.Unlock()
			return refusal, nil
		}
		l.headers, l.version = headers, version+1
	}
	headers := l.headers
	l.mu.Unlock()
	_, _ = io.CopyN(io.Discard, refusal.Body, maxRefusal) // so that the connection can be used again
	_ = refusal.Body.Close()
	req = with(req, headers)
	if req.GetBody != nil {
		body, err := req.GetBody()
		if err != nil {
			return nil, err
		}
		req.Body = body
	}
	return l.base.RoundTrip(req)
}

// statusError is a response whose status rejects the request. The SDK would keep only the name of the status, and count
// some as answers of the protocol.
type statusError struct {
	status int
	header http.Header
	body   string
}

// refuses reports whether a status is a plain error. Other statuses have a meaning in the protocol: a session that is gone
// (404), a method that is not served (405), a JSON-RPC error (400).
func refuses(status int) bool {
	return status == http.StatusUnauthorized || status == http.StatusForbidden || status == http.StatusTooManyRequests || status >= 500
}

func (e *statusError) Error() string {
	text := fmt.Sprintf("status %d %s", e.status, http.StatusText(e.status))
	if e.body != "" {
		text += ": " + e.body
	}
	return text
}

// failure explains the status to the operator, and sets whether another attempt can help.
func (e *statusError) failure() *activities.Failure {
	failure := activities.Fail(problem.MCPClientError, "the server answered with %v", e)
	if e.status == http.StatusUnauthorized || e.status == http.StatusForbidden {
		failure.Message = fmt.Sprintf("the server rejects the headers of the manifest: %v", e)
		failure.Retryable = activities.RetryPointless
		return failure
	}
	failure.RetryAfter = activities.RetryAfter(e.header, time.Now())
	return failure
}

// boundedBody notes that a body is larger than its limit, and fails with errTooLarge then.
type boundedBody struct {
	io.ReadCloser
	large *atomic.Bool
}

func (b *boundedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if _, tooLarge := errors.AsType[*http.MaxBytesError](err); tooLarge {
		b.large.Store(true)
		err = errTooLarge
	}
	return n, err
}
