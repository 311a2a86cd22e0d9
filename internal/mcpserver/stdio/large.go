package stdio

import (
	"slices"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// The messages of a connection are read one by one, so what reading one takes is what the next one waits. A large message is therefore
// not decoded here: the arguments of its tool call are taken out, which needs no more than finding where they end, and are decoded by
// whoever handles the call.

// Arguments is the Extra of a tool call whose arguments have been taken out: their text, which may be no JSON. In the params stands an
// empty object instead.
type Arguments []byte

const (
	// largeMessage is the length from which on arguments are taken out.
	largeMessage = 64 << 10
	// maxEnvelope is the most that a message may have besides the arguments of a tool call.
	maxEnvelope = 1 << 20
)

// cut is what has been taken out of a message: so many bytes, which began at an offset.
type cut struct{ offset, bytes int }

// original returns the offset in the message of an offset in what is left of it.
func (c cut) original(offset int64) int64 {
	if c.bytes > 0 && offset > int64(c.offset) {
		offset += int64(c.bytes - len("{}"))
	}
	return offset
}

// decodeLarge is decode for a large message.
func decodeLarge(text []byte) (jsonrpc.Message, *refusal) {
	if !utf8.Valid(text) {
		return nil, notUTF8(text)
	}
	start, end := jsonvalue.MemberSpan(text, "params", "arguments")
	if len(text)-(end-start) > maxEnvelope {
		r := refuse(jsonrpc.CodeInvalidRequest, "the message has %d bytes besides the arguments of a tool call; up to %d are read", len(text)-(end-start), maxEnvelope)
		r.id = findOuterID(text[:headBytes], text[len(text)-tailBytes:])
		return nil, r
	}
	if end-start <= largeMessage {
		return decodeText(text, cut{})
	}
	m, r := decodeText(slices.Concat(text[:start], []byte("{}"), text[end:]), cut{start, end - start})
	req, isRequest := m.(*jsonrpc.Request)
	if r != nil || !isRequest {
		return m, r
	}
	if req.Method != "tools/call" {
		r := refuse(jsonrpc.CodeInvalidParams, "the parameters of %q have %d bytes; up to %d are read", req.Method, end-start, largeMessage)
		r.id = req.ID
		return nil, r
	}
	req.Extra = Arguments(text[start:end])
	return req, nil
}
