package toolcall

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"mime"
	"slices"
	"strconv"

	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// Messages are changed on their way to the SDK. The SDK decodes numbers as doubles, so that exact values are lost; it drops unknown
// fields of content blocks, and blocks of unknown kinds; and it does not match an id that is sent back as a string.

// unkept is the code of the error that replaces a result with inexact values. No server sends it.
const unkept = -32_000_001

// blocksMeta is the field of a result's _meta with the original content blocks. No server sends it.
const blocksMeta = "workflows-engine/blocks"

// byteOrderMark is at the start of the output of some programs.
var byteOrderMark = []byte("\ufeff")

// exact returns a message as the SDK understands it, or in place of a result with values that cannot be kept an error that names the first
// of them.
func exact(message []byte) []byte {
	message = numbered(bytes.TrimPrefix(message, byteOrderMark))
	v, losses, err := jsonvalue.DecodeExact(message)
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
	return withBlocks(message, v)
}

// numbered returns an answer whose id is a number: the SDK sends numbers, and some servers send them back as texts.
func numbered(message []byte) []byte {
	id := jsonvalue.MemberText(message, "id")
	text := jsonvalue.StringText(id)
	if text == nil || jsonvalue.MemberText(message, "method") != nil {
		return message
	}
	n, err := strconv.ParseInt(string(text), 10, 64)
	if err != nil || strconv.FormatInt(n, 10) != string(text) {
		return message
	}
	at := cap(message) - cap(id) // id is a part of message
	return slices.Concat(message[:at], text, message[at+len(id):])
}

// withBlocks moves the content blocks of a result to a field that the SDK keeps unchanged. v is the decoded message.
func withBlocks(message []byte, v any) []byte {
	whole, _ := v.(map[string]any)
	result, _ := whole["result"].(map[string]any)
	content, isList := result["content"].([]any)
	if len(content) == 0 || !isList || slices.ContainsFunc(content, func(block any) bool { _, ok := block.(map[string]any); return !ok }) {
		return message
	}
	meta, ok := result["_meta"].(map[string]any)
	if _, given := result["_meta"]; given && !ok {
		return message
	}
	moved := map[string]any{blocksMeta: content}
	for name, value := range meta {
		if name != blocksMeta {
			moved[name] = value
		}
	}
	result["_meta"], result["content"] = moved, []any{}
	return jsonvalue.Append(nil, whole)
}

// exactBody is the body of an answer whose messages are exact: one JSON text, or the events of a stream.
type exactBody struct {
	io.Closer
	source *bufio.Reader
	stream bool
	begun  bool
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
	if !b.begun {
		b.rest, b.begun = bytes.TrimPrefix(b.rest, byteOrderMark), true
	}
	const field = "data:"
	if data, ok := bytes.CutPrefix(b.rest, []byte(field)); ok {
		b.rest = append(append([]byte(field), exact(bytes.TrimRight(data, "\r\n"))...), '\n')
	}
}
