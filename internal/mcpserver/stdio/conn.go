package stdio

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/workflows-engine/workflows-engine/internal/mcpserver/frame"
)

// conn is an mcp.Connection. The session calls Read from one goroutine and Write from many.
type conn struct {
	lines   chan frame.Text
	readErr error // set before lines is closed

	stop   <-chan struct{} // ends reading
	ended  chan<- struct{} // closed at the end of input
	isOver bool            // that ended is closed
	closed chan struct{}
	once   sync.Once
	log    *slog.Logger

	drainLimit, stopLimit time.Duration

	// queue holds the rest of a batch that Read has taken apart.
	queue []jsonrpc.Message

	// mu guards the fields below, and the order of writes to out.
	mu  sync.Mutex
	out io.Writer
	// pending are the requests handed to the session and not answered yet.
	pending map[jsonrpc.ID]*call
	// idle is closed when pending becomes empty; nil while drain does not wait for it.
	idle chan struct{}
	// revision is the negotiated protocol revision, "" before.
	revision string
}

// call is a request that the session owes an answer.
type call struct {
	method string
	// cancelled requests get no answer (MCP: cancellation).
	cancelled bool
	// batch receives the answer; nil for a single request.
	batch *batch
}

// SessionID is empty: a pair of streams is one session.
func (*conn) SessionID() string { return "" }

func (c *conn) read(r *frame.Lines) {
	defer close(c.lines)
	for {
		l, err := r.Next()
		if err != nil {
			c.readErr = err
			return
		}
		select {
		case c.lines <- l:
			// The next read keeps its processor until the runtime notices that it blocks, which may take ten milliseconds.
			runtime.Gosched()
		case <-c.closed:
			return
		}
	}
}

// Read returns the next message. Lines without a valid message are answered here. At the end of input, or when the connection must
// stop, it first waits for the pending requests: the session drops their answers as soon as Read fails.
func (c *conn) Read(context.Context) (jsonrpc.Message, error) {
	for {
		if len(c.queue) > 0 {
			m := c.queue[0]
			c.queue = c.queue[1:]
			return m, nil
		}
		// A stop comes before input that has arrived already.
		select {
		case <-c.stop:
			c.drain(c.stopLimit)
			return nil, io.EOF
		default:
		}
		select {
		case <-c.closed:
			return nil, io.EOF
		case <-c.stop:
		case l, open := <-c.lines:
			if open {
				c.accept(l)
				continue
			}
			if !c.isOver {
				c.isOver = true
				close(c.ended)
				if !errors.Is(c.readErr, io.EOF) {
					c.log.Error("read failed", "error", c.readErr)
				}
			}
			c.drain(c.drainLimit)
			return nil, io.EOF
		}
	}
}

// accept queues the messages of a line, or answers with the error.
func (c *conn) accept(l frame.Text) {
	var r *frame.Refusal
	if l.IsBatch() {
		r = c.acceptBatch(l)
	} else {
		var m jsonrpc.Message
		if m, r = l.Decode(); r == nil {
			r = c.enqueue(m, nil)
		}
	}
	if r == nil {
		return
	}
	c.log.Warn("message rejected", "code", r.Code, "reason", r.Message)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.writeLine(r.Encode()); err != nil {
		c.log.Error("write failed", "error", err) // the session's next write meets the same
	}
}

// enqueue queues a message for the session and remembers the answer that it needs.
func (c *conn) enqueue(m jsonrpc.Message, b *batch) *frame.Refusal {
	req, isRequest := m.(*jsonrpc.Request)
	switch {
	case m == nil:
		c.log.Warn("malformed response dropped")
		return nil
	case isRequest && req.IsCall():
		c.mu.Lock()
		_, taken := c.pending[req.ID]
		if !taken {
			c.pending[req.ID] = &call{method: req.Method, batch: b}
		}
		c.mu.Unlock()
		if taken {
			// With this id the answer would be taken for that of the request in flight.
			return frame.Refuse(jsonrpc.CodeInvalidRequest, "a request with id %s is in flight already", frame.EncodeID(req.ID))
		}
		if b != nil {
			b.open++
		}
	case isRequest && req.Method == "notifications/cancelled":
		c.cancel(req)
	}
	c.queue = append(c.queue, m)
	return nil
}

func (c *conn) cancel(req *jsonrpc.Request) {
	// A map, because the names of a struct would match in any letter case, and the session takes no other spelling: the request that it
	// cancels is the one that gets no answer.
	var params map[string]json.RawMessage
	if json.Unmarshal(req.Params, &params) != nil {
		return
	}
	target, problem := frame.ParseID(params["requestId"])
	if problem != "" {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if p := c.pending[target]; p != nil {
		p.cancelled = true
	}
}

// drain waits until every pending request has been answered, at most for limit.
func (c *conn) drain(limit time.Duration) {
	c.mu.Lock()
	if len(c.pending) == 0 {
		c.mu.Unlock()
		return
	}
	idle := make(chan struct{})
	c.idle = idle
	c.mu.Unlock()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-idle:
	case <-c.closed:
	case <-timer.C:
		c.log.Warn("closed before every request was answered")
	}
}

// Write sends a message of the session.
func (c *conn) Write(_ context.Context, m jsonrpc.Message) error {
	resp, isResponse := m.(*jsonrpc.Response)
	c.mu.Lock()
	defer c.mu.Unlock()
	if !isResponse || c.pending[resp.ID] == nil {
		return c.send(m)
	}
	p := c.pending[resp.ID]
	// The request counts as answered once the answer is written.
	defer c.settle(resp.ID)
	if resp.Error != nil {
		resp.Error = c.wireError(p.method, resp.Error)
	} else if p.method == "initialize" {
		c.revision = negotiated(resp.Result)
	}
	if p.batch != nil {
		return c.writeToBatch(p, resp)
	}
	if p.cancelled {
		return nil
	}
	return c.send(resp)
}

func (c *conn) settle(answered jsonrpc.ID) {
	delete(c.pending, answered)
	if len(c.pending) == 0 && c.idle != nil {
		close(c.idle)
		c.idle = nil
	}
}

func (c *conn) send(m jsonrpc.Message) error {
	text, err := encode(m)
	if err != nil {
		return err
	}
	return c.writeLine(text)
}

// encode returns the text of a message. A result is copied as it is, which for large ones saves a fifth of the time
// that an answer takes; the SDK has made it itself, compactly.
func encode(m jsonrpc.Message) ([]byte, error) {
	resp, isResponse := m.(*jsonrpc.Response)
	if !isResponse || resp.Error != nil || len(resp.Result) == 0 || bytes.IndexByte(resp.Result, '\n') >= 0 {
		return jsonrpc.EncodeMessage(m)
	}
	text := make([]byte, 0, len(resp.Result)+64)
	text = append(append(text, `{"jsonrpc":"2.0","id":`...), frame.EncodeID(resp.ID)...)
	text = append(append(text, `,"result":`...), resp.Result...)
	return append(text, '}'), nil
}

// writeLine writes a line in one call, so that a reader never sees half of one between two others.
func (c *conn) writeLine(text []byte) error {
	_, err := c.out.Write(append(text, '\n'))
	return err
}

// Close ends Read and drain. In and Out are the caller's to close.
func (c *conn) Close() error {
	c.once.Do(func() { close(c.closed) })
	return nil
}

func negotiated(result json.RawMessage) string {
	var r struct {
		ProtocolVersion string `json:"protocolVersion"`
	}
	_ = json.Unmarshal(result, &r) // an unreadable result has no version
	return r.ProtocolVersion
}

// wireError is an error of the session as it is sent. The SDK leaves the code out for the parameters of initialize, too.
func (c *conn) wireError(method string, err error) *jsonrpc.Error {
	if method == "initialize" && c.revision == "" {
		return frame.Coded(err, jsonrpc.CodeInvalidParams)
	}
	wire := frame.Coded(err, jsonrpc.CodeInvalidRequest)
	if method == "server/discover" && wire.Code == jsonrpc.CodeMethodNotFound {
		// Requests of the revisions with this method name their revision, so this request is of another one.
		wire.Message = fmt.Sprintf("only requests whose _meta has %q (2026-07-28) and %q may call %q; other clients must send initialize first",
			mcp.MetaKeyProtocolVersion, mcp.MetaKeyClientCapabilities, method)
	}
	return wire
}

// firstWithoutBatches is the first protocol revision without batches.
const firstWithoutBatches = "2025-06-18"

// batch collects the answers to an array of messages. Guarded by conn.mu once its requests are with the session.
type batch struct {
	// open counts the requests without an answer.
	open    int
	answers [][]byte
}

// acceptBatch queues the messages of an array, in revisions with batches. Elements that are not messages are answered
// within the batch.
func (c *conn) acceptBatch(text frame.Text) *frame.Refusal {
	members, r := text.Members()
	if r != nil {
		return r
	}
	c.mu.Lock()
	revision := c.revision
	c.mu.Unlock()
	switch {
	case revision == "":
		return frame.Refuse(jsonrpc.CodeInvalidRequest, "initialize must come before batches")
	case revision >= firstWithoutBatches:
		return frame.Refuse(jsonrpc.CodeInvalidRequest, "protocol revision %s has no batches: send the messages one by one", revision)
	case len(members) == 0:
		return frame.Refuse(jsonrpc.CodeInvalidRequest, "the batch is empty")
	}
	b := new(batch)
	for _, member := range members {
		m, r := member.Decode()
		if r == nil {
			r = c.enqueue(m, b)
		}
		if r != nil {
			b.answers = append(b.answers, r.Encode())
		}
	}
	// The session has not seen the queue yet, so no answer can have come in between.
	if b.open == 0 && len(b.answers) > 0 {
		c.mu.Lock()
		defer c.mu.Unlock()
		if err := c.writeBatch(b); err != nil {
			c.log.Error("write failed", "error", err)
		}
	}
	return nil
}

// writeToBatch adds an answer to its batch and sends the batch when it is complete.
func (c *conn) writeToBatch(p *call, resp *jsonrpc.Response) error {
	b := p.batch
	b.open--
	if !p.cancelled {
		text, err := jsonrpc.EncodeMessage(resp)
		if err != nil {
			return err
		}
		b.answers = append(b.answers, text)
	}
	if b.open > 0 || len(b.answers) == 0 {
		return nil
	}
	return c.writeBatch(b)
}

func (c *conn) writeBatch(b *batch) error {
	return c.writeLine(slices.Concat([]byte{'['}, bytes.Join(b.answers, []byte{','}), []byte{']'}))
}
