package toolcall

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"mime"
	"slices"

	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// The SDK decodes numbers as doubles, so what a message said is gone before a result is seen. Messages are therefore looked at
// on their way to the SDK.

// unkept is the code of the error that takes the place of a result with values that would change. No server sends it.
const unkept = -32_000_001

// exact returns a message, or in place of a result with values that cannot be kept an error that names the first of them.
func exact(message []byte) []byte {
	_, losses, err := jsonvalue.DecodeExact(message)
	if err != nil {
		return message
	}
	for _, loss := range losses {
		path := jsonvalue.PointerTokens(loss.Pointer)
		if len(path) < 2 || path[0] != "result" || !slices.Contains([]string{"structuredContent", "content"}, path[1]) {
			continue
		}
		text := jsonvalue.AppendString(nil, fmt.Sprintf("invalid value at %q: %s", loss.Pointer[len("/result"):], loss.Message))
		return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":%s}}`, jsonvalue.MemberText(message, "id"), unkept, text)
	}
	return message
}

// exactBody is the body of an answer whose messages are exact: one JSON text, or the events of a stream.
type exactBody struct {
	io.Closer
	source *bufio.Reader
	stream bool
	rest   []byte
	err    error
}

// exactAnswer returns the body of an answer with that content type.
func exactAnswer(body io.ReadCloser, contentType string) io.ReadCloser {
	kind, _, err := mime.ParseMediaType(contentType)
	if stream := kind == "text/event-stream"; err == nil && (stream || kind == "application/json") {
		return &exactBody{Closer: body, source: bufio.NewReader(body), stream: stream}
	}
	return body
}

// Read implements io.Reader.
func (b *exactBody) Read(p []byte) (int, error) {
	for len(b.rest) == 0 {
		if b.err != nil {
			return 0, b.err
		}
		b.next()
	}
	n := copy(p, b.rest)
	b.rest = b.rest[n:]
	return n, nil
}

// next reads the next line of a stream, or the whole text.
func (b *exactBody) next() {
	if !b.stream {
		if b.rest, b.err = io.ReadAll(b.source); b.err == nil {
			b.rest, b.err = exact(b.rest), io.EOF
		}
		return
	}
	b.rest, b.err = b.source.ReadBytes('\n')
	const field = "data:"
	if data, ok := bytes.CutPrefix(b.rest, []byte(field)); ok {
		b.rest = append(append([]byte(field), exact(bytes.TrimRight(data, "\r\n"))...), '\n')
	}
}
