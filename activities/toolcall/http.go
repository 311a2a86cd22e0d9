package toolcall

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// maxRefusal is how much of the body of a refusal a failure quotes, in bytes.
const maxRefusal = 500

// httpLink is the way to a server with a URL.
type httpLink struct {
	headers map[string]string
	limit   int64
	large   atomic.Bool
	base    *http.Transport
}

// newHTTPLink makes a link whose requests carry headers and whose answers are bounded.
func newHTTPLink(headers map[string]string, limit int) *httpLink {
	return &httpLink{headers: headers, limit: int64(limit) + envelope, base: http.DefaultTransport.(*http.Transport).Clone()}
}

// transport is the SDK's transport over the link. Redirects are not followed, so that the headers go nowhere else; there
// is no stream for messages that servers send unasked.
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
	req = req.Clone(req.Context())
	for name, value := range l.headers {
		req.Header.Set(name, value)
	}
	res, err := l.base.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	if refuses(res.StatusCode) {
		defer res.Body.Close()
		// The status says enough where the body cannot be read.
		text, _ := io.ReadAll(io.LimitReader(res.Body, maxRefusal))
		return nil, &statusError{status: res.StatusCode, header: res.Header, body: strings.TrimSpace(strings.ToValidUTF8(string(text), "\ufffd"))}
	}
	res.Body = exactAnswer(&boundedBody{http.MaxBytesReader(nil, res.Body, l.limit), &l.large}, res.Header.Get("Content-Type"))
	return res, nil
}

// statusError is an answer whose status refuses the request. The SDK would keep only the name of the status, and count
// some as answers of the protocol.
type statusError struct {
	status int
	header http.Header
	body   string
}

// refuses reports whether a status says all there is. The others mean something in the protocol: a session that is gone
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

// failure says what the status means to the operator, and whether another attempt can help.
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
