package llmcall

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/workflows-engine/workflows-engine/activities/chat"
	"github.com/workflows-engine/workflows-engine/internal/httpbody"
)

// maxRefusalBytes limits the part of an error's body that is read.
const maxRefusalBytes = 64 << 10

// errRequestTimeout is why a request ended that took longer than Config.RequestTimeout.
var errRequestTimeout = errors.New("the request took too long")

// errIdle is why a request ended whose streamed answer stood still for longer than Config.IdleTimeout.
var errIdle = errors.New("the stream stood still for too long")

// exchange is the way of one request through the client: it bounds what comes back, and keeps it from the library, which would drop
// parts of it: its reader of streams loses errors that come after a comment.
type exchange struct {
	client         *http.Client
	limit          int64
	stream         bool
	idempotencyKey string
	// idle is how long a stream may send nothing before stop ends the request.
	idle time.Duration
	stop context.CancelCauseFunc
	// sent is the size of the request.
	sent int64
	// body is the whole answer once it has been read; it stays nil for an answer that comes as a stream, of events.
	body   []byte
	events io.Reader
}

// Do sends the request. An answer whose status is not 2xx is a *statusError.
func (x *exchange) Do(req *http.Request) (*http.Response, error) {
	req.Header.Set("User-Agent", "workflows-engine")
	if key := x.idempotencyKey; key != "" {
		if strings.ContainsFunc(key, unicode.IsControl) {
			key = url.QueryEscape(key) // no header takes it as it is
		}
		req.Header.Set("Idempotency-Key", key)
	}
	x.sent = req.ContentLength
	resp, err := x.client.Do(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		defer resp.Body.Close()
		// The status says enough where the body cannot be read.
		body, _ := io.ReadAll(io.LimitReader(httpbody.Of(resp), maxRefusalBytes))
		return nil, &statusError{status: resp.StatusCode, header: resp.Header, body: string(body)}
	}
	if resp.ContentLength > x.limit {
		resp.Body.Close()
		return nil, longerThan(x.limit)
	}
	bounded := &boundedBody{ReadCloser: http.MaxBytesReader(nil, resp.Body, x.limit), limit: x.limit}
	if x.stream && !isJSON(resp.Header) {
		bounded.idle = time.AfterFunc(x.idle, func() { x.stop(errIdle) })
		bounded.idleTime = x.idle
		resp.Body, x.events = bounded, bounded
		return resp, nil
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(bounded)
	if err != nil {
		return nil, err
	}
	x.body = body
	resp.Body = io.NopCloser(strings.NewReader("{}"))
	return resp, nil
}

// isJSON reports whether an answer says that it is one JSON text.
func isJSON(header http.Header) bool {
	kind, _, err := mime.ParseMediaType(header.Get("Content-Type"))
	return err == nil && kind == "application/json"
}

// statusError is an answer that refuses.
type statusError struct {
	status int
	header http.Header
	body   string
}

func (e *statusError) Error() string { return fmt.Sprintf("status %d: %s", e.status, e.body) }

// answerError is a 2xx answer that is not a chat completion. retry says whether another attempt may help.
type answerError struct {
	text string
	// quote is the provider's text, not yet scrubbed or cut; may be empty.
	quote string
	retry bool
	// provider says that the quote is an error that the provider reports.
	provider bool
	// class is that of the failure, "" for one of the provider.
	class chat.Class
}

func (e *answerError) Error() string { return e.text + ": " + e.quote }

// boundedBody says in its error that a body is longer than allowed, breaks off, or is not UTF-8, which the library would not
// notice.
type boundedBody struct {
	io.ReadCloser
	limit, read int64
	cut         []byte // the beginning of a character whose rest has not been read
	// idle ends a request whose answer stands still; nil for one in one piece.
	idle     *time.Timer
	idleTime time.Duration
}

// Close also ends the watch over an answer that stands still.
func (b *boundedBody) Close() error {
	if b.idle != nil {
		b.idle.Stop()
	}
	return b.ReadCloser.Close()
}

func (b *boundedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.read += int64(n)
	if b.idle != nil && n > 0 {
		b.idle.Reset(b.idleTime)
	}
	if !b.valid(p[:n]) || err == io.EOF && len(b.cut) > 0 {
		return 0, &answerError{text: "the answer is not valid UTF-8", retry: true}
	}
	switch _, tooLarge := errors.AsType[*http.MaxBytesError](err); {
	case tooLarge:
		err = longerThan(b.limit)
	case err != nil && err != io.EOF && !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded):
		err = &answerError{text: fmt.Sprintf("the answer broke off after %d bytes", b.read), quote: err.Error(), retry: true}
	}
	return n, err
}

// valid reports whether the text is UTF-8, except for an incomplete character at its end.
func (b *boundedBody) valid(read []byte) bool {
	text := append(b.cut, read...)
	whole := len(text)
	for i := whole - 1; i >= max(whole-utf8.UTFMax, 0); i-- {
		if utf8.RuneStart(text[i]) {
			if !utf8.FullRune(text[i:]) {
				whole = i
			}
			break
		}
	}
	b.cut = append([]byte(nil), text[whole:]...)
	return utf8.Valid(text[:whole])
}

func longerThan(limit int64) error {
	return &answerError{text: fmt.Sprintf("the answer is longer than the limit of %d bytes", limit)}
}
