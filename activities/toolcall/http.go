package toolcall

import (
	"io"
	"net/http"
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

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
// is no stream for what servers say unasked.
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
	if err == nil {
		res.Body = &boundedBody{ReadCloser: res.Body, left: l.limit, large: &l.large}
	}
	return res, err
}

// boundedBody fails with errTooLarge after so many bytes.
type boundedBody struct {
	io.ReadCloser
	left  int64
	large *atomic.Bool
}

func (b *boundedBody) Read(p []byte) (int, error) {
	if b.left <= 0 {
		// Only a byte more tells a body that is too large from one that just fits.
		var one [1]byte
		if n, err := b.ReadCloser.Read(one[:]); n == 0 {
			return 0, err
		}
		b.large.Store(true)
		return 0, errTooLarge
	}
	n, err := b.ReadCloser.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	return n, err
}
