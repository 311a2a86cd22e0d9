package frame

import (
	"errors"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// maxErrorBytes bounds the message of a JSON-RPC error: the SDK's quote the parameters they could not read, in full.
const maxErrorBytes = 400

// Coded returns an error of the session with a code, the given one where it has none, and with a bounded message. The SDK leaves the
// code out for requests out of order.
func Coded(err error, code int64) *jsonrpc.Error {
	wire := &jsonrpc.Error{Code: code, Message: err.Error()}
	if coded, ok := errors.AsType[*jsonrpc.Error](err); ok && coded.Code != 0 {
		wire.Code, wire.Data = coded.Code, coded.Data
	}
	if len(wire.Message) > maxErrorBytes {
		wire.Message = reasonFirst(wire.Message)
		wire.Message = strings.ToValidUTF8(wire.Message[:min(len(wire.Message), maxErrorBytes)], "") + " …"
	}
	return wire
}

// reasonFirst puts what the SDK says last, behind the parameters, before them.
func reasonFirst(message string) string {
	const quotes = `unmarshaling "`
	before, quoted, found := strings.Cut(message, quotes)
	end := strings.LastIndex(quoted, `": `)
	if !found || end < 0 {
		return message
	}
	return before + quoted[end+len(`": `):] + `; found "` + quoted[:end]
}
