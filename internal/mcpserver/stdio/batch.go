package stdio

import (
	"bytes"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/workflows-engine/workflows-engine/internal/mcpserver/frame"
)

// firstWithoutBatches is the first protocol revision that has no batches any more.
const firstWithoutBatches = "2025-06-18"

// batch collects the answers to an array of messages. Guarded by conn.mu once its requests are with the session.
type batch struct {
	// open counts the requests without an answer.
	open    int
	answers [][]byte
}

// acceptBatch takes an array of messages apart, in revisions that have them. Members that are no message are answered
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
		return frame.Refuse(jsonrpc.CodeInvalidRequest, "batches come after initialize")
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
			c.log.Error("writing failed", "error", err)
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
