package frame

import (
	"slices"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// The messages of a connection are read one by one, so what reading one takes is what the next one waits. A large message is therefore
// not decoded here: the arguments of its tool call are taken out, which needs no more than finding where they end, and are decoded by
// whoever handles the call.

// Arguments is the Extra of a tool call whose arguments have been taken out: their text, which may be neither JSON nor UTF-8. In the
// params stands an empty object instead.
type Arguments []byte

const (
	// largeValue is the length from which on arguments are taken out.
	largeValue = 64 << 10
	// MaxEnvelope is the most that a message may have besides the arguments of a tool call, and a batch as a whole.
	MaxEnvelope = 1 << 20
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

// decode reads one JSON object as a message. value is where its arguments stand, if it has large ones, or deep ones, which the SDK's
// reader refuses without saying why. Both results are nil for a malformed response, which must not be answered.
func decode(text []byte, value span, deep bool) (jsonrpc.Message, *Refusal) {
	if value.bytes() <= largeValue && !deep {
		return decodeText(text, cut{})
	}
	rest := slices.Concat(text[:value.start], []byte("{}"), text[value.end:])
	arguments := jsonvalue.MemberText(jsonvalue.MemberText(rest, "params"), "arguments")
	if len(arguments) == 0 || &arguments[0] != &rest[value.start] { // what is large is something else
		if len(text) > MaxEnvelope {
			r := notArguments()
			r.ID = findOuterID(text[:headBytes], text[len(text)-tailBytes:])
			return nil, r
		}
		return decodeText(text, cut{})
	}
	m, r := decodeText(rest, cut{value.start, value.bytes()})
	req, isRequest := m.(*jsonrpc.Request)
	if r != nil || !isRequest {
		return m, r
	}
	if req.Method != "tools/call" {
		r := Refuse(jsonrpc.CodeInvalidParams, "the parameters of %q have %d bytes; up to %d are read", req.Method, value.bytes(), largeValue)
		if value.bytes() <= largeValue {
			r = Refuse(jsonrpc.CodeInvalidParams, "the parameters of %q are nested more than %d levels deep", req.Method, deepMessage)
		}
		r.ID = req.ID
		return nil, r
	}
	req.Extra = Arguments(text[value.start:value.end])
	return req, nil
}

// notArguments refuses a message that is large and no tool call.
func notArguments() *Refusal {
	return Refuse(jsonrpc.CodeInvalidRequest, "the message has more than %d bytes besides the arguments of a tool call", MaxEnvelope)
}
