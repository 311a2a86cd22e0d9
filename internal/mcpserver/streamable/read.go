package streamable

import (
	"bytes"
	"context"
	"io"
	"mime"
	"net/http"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/workflows-engine/workflows-engine/internal/mcpserver/frame"
)

const (
	// readTime is how long a message may take to come in.
	readTime = time.Minute
	// maxLargeReads is how many large messages are read at once: each of them is in memory before anybody can say that there is none left.
	maxLargeReads = 4
	// largeRead is from how many bytes on a message is large.
	largeRead = 64 << 10
)

// Message is what a POST brings.
type Message struct {
	// Message is nil for a batch.
	jsonrpc.Message
	// Arguments of a tool call that have been taken out of it because they are large, nil otherwise.
	Arguments []byte
}

// id is that of a request, invalid for anything else.
func (m *Message) id() jsonrpc.ID {
	if m != nil {
		if call, ok := m.Message.(*jsonrpc.Request); ok {
			return call.ID
		}
	}
	return jsonrpc.ID{}
}

type reader struct {
	max   int
	large chan struct{}
}

// read reads the message of a POST, and leaves in the body what the SDK is to read of it. A refusal comes with the HTTP status.
func (d *reader) read(w http.ResponseWriter, r *http.Request) (*Message, int, *frame.Refusal) {
	if media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || media != "application/json" {
		return nil, http.StatusUnsupportedMediaType, frame.Refuse(jsonrpc.CodeInvalidRequest, "the Content-Type must be application/json")
	}
	text, err := d.body(w, r)
	switch {
	case err != nil:
		return nil, http.StatusBadRequest, frame.Refuse(jsonrpc.CodeInvalidRequest, "the message has not come in: %v", err)
	case text.IsEmpty():
		return nil, http.StatusBadRequest, frame.Refuse(jsonrpc.CodeInvalidRequest, "the request has no message")
	case text.IsBatch():
		refusal := checkBatch(text)
		if refusal == nil {
			setBody(r, text.Bytes())
		}
		return &Message{}, http.StatusBadRequest, refusal
	}
	m, refusal := text.Decode()
	switch {
	case text.IsTooLong():
		return nil, http.StatusRequestEntityTooLarge, refusal
	case refusal != nil:
		return nil, http.StatusBadRequest, refusal
	}
	if m == nil {
		return nil, http.StatusBadRequest, frame.Refuse(jsonrpc.CodeInvalidRequest, "the response cannot be read")
	}
	read := &Message{Message: m}
	if call, ok := m.(*jsonrpc.Request); ok {
		arguments, _ := call.Extra.(frame.Arguments)
		read.Arguments = arguments
	}
	rest, err := jsonrpc.EncodeMessage(m)
	if err != nil {
		return nil, http.StatusBadRequest, frame.Refuse(jsonrpc.CodeInvalidRequest, "the message cannot be read: %v", err)
	}
	setBody(r, rest)
	return read, 0, nil
}

// body reads the body. Past the limit it goes on as far again, because a client that is still sending does not read the answer.
func (d *reader) body(w http.ResponseWriter, r *http.Request) (frame.Text, error) {
	if r.ContentLength < 0 || r.ContentLength > largeRead {
		select {
		case d.large <- struct{}{}:
			defer func() { <-d.large }()
		case <-r.Context().Done():
			return frame.Text{}, context.Cause(r.Context())
		}
	}
	// The wait above is none of the client's. Not every writer has deadlines; those of connections do.
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(readTime))
	defer liftDeadline(w)
	return frame.Whole(io.LimitReader(r.Body, 2*int64(d.max)), r.ContentLength, d.max)
}

// liftDeadline lets the request take as long as it does, now that it has come in.
func liftDeadline(w http.ResponseWriter) {
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
}

// checkBatch finds what is no message in a batch. Whether the client's revision has batches is the SDK's to say.
func checkBatch(text frame.Text) *frame.Refusal {
	members, refusal := text.Members()
	for _, member := range members {
		if _, refusal := member.Decode(); refusal != nil {
			return refusal
		}
	}
	return refusal
}

func setBody(r *http.Request, text []byte) {
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(text)), int64(len(text))
}
