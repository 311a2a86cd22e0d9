package openaichat

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

// maxRefusalBytes limits the part of an error response that is read.
const maxRefusalBytes = 64 << 10

// errRequestTimeout is the cause of the end of a request that took longer than Config.RequestTimeout.
var errRequestTimeout = errors.New("the request took too long")

// errIdle is the cause of the end of a request whose streamed answer paused for longer than Config.IdleTimeout.
var errIdle = errors.New("the stream sent nothing for too long")

// exchange is the HTTP client of one request. It limits the answer and hides it from the library, whose reader of streams loses an error that
// follows a comment.
type exchange struct {
	client         *http.Client
	limit          int64
	stream         bool
	idempotencyKey string
	// idle is how long a stream may send nothing before stop ends the request.
	idle time.Duration
	stop context.CancelCauseFunc
	// sent is the size of the request, in bytes.
	sent int64
	// body is the whole answer; nil for a streamed one, which events reads.
	body   []byte
	events io.Reader
}

// Do sends the request. An answer whose status is not 2xx is a *statusError.
func (x *exchange) Do(req *http.Request) (*http.Response, error) {
	req.Header.Set("User-Agent", "workflows-engine")
	if key := x.idempotencyKey; key != "" {
		if strings.ContainsFunc(key, unicode.IsControl) {
			key = url.QueryEscape(key) // not valid in a header
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
		// The status is enough if the body cannot be read.
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

// isJSON reports whether the content type of an answer is JSON.
func isJSON(header http.Header) bool {
	kind, _, err := mime.ParseMediaType(header.Get("Content-Type"))
	return err == nil && kind == "application/json"
}

// statusError is an answer with a status that is not 2xx, or an error with such a status within an answer.
type statusError struct {
	status int
	header http.Header
	body   string
}

func (e *statusError) Error() string { return fmt.Sprintf("status %d: %s", e.status, e.body) }

// answerError is an error in a 2xx answer.
type answerError struct {
	text string
	// quote is the provider's text, not yet scrubbed or cut; may be empty.
	quote string
	// retry is set if another attempt may help.
	retry bool
	// provider is set if the quote is an error that the provider reports.
	provider bool
	// class is the class of the failure, "" for one that depends on the quote.
	class chat.Class
}

func (e *answerError) Error() string { return e.text + ": " + e.quote }

// boundedBody returns an error for a body that is too long, breaks off, or is not UTF-8. The library would not notice.
type boundedBody struct {
	io.ReadCloser
	limit, read int64
	cut         []byte // the beginning of a character that has not been read to its end
	// idle ends the request if a streamed answer pauses; nil for an answer in one piece.
	idle     *time.Timer
	idleTime time.Duration
}

// Close also stops the idle timer.
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
