// Package frame reads MCP messages one by one: a text that is not a message becomes a JSON-RPC error, with the sender's
// id if that can be found. All transports of the server use it.
package frame

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// Refusal is the error of a text that is not a valid message. ID is invalid if the text has no id; the answer's id is
// then null.
type Refusal struct {
	Code    int64
	Message string
	ID      jsonrpc.ID
	tooLong bool
}

// Refuse makes the error for a message without an id.
func Refuse(code int64, format string, args ...any) *Refusal {
	return &Refusal{Code: code, Message: fmt.Sprintf(format, args...)}
}

// decodeText is decode for a text without its large arguments.
func decodeText(text []byte, out cut) (jsonrpc.Message, *Refusal) {
	if at := jsonvalue.InvalidUTF8(text); at >= 0 {
		r := Refuse(jsonrpc.CodeParseError, "the message is not valid UTF-8 (byte %d)", out.original(int64(at)+1))
		r.ID = findID(bytes.ToValidUTF8(text, []byte("\uFFFD")))
		return nil, r
	}
	// A map, because the names of a struct would match in any letter case.
	var members map[string]json.RawMessage
	if err := json.Unmarshal(text, &members); err != nil {
		return nil, explain(text, err, out)
	}
	if members == nil {
		return nil, Refuse(jsonrpc.CodeInvalidRequest, "expected a JSON object, found null")
	}
	if _, isRequest := members["method"]; !isRequest && (members["result"] != nil || members["error"] != nil) {
		m, _ := jsonrpc.DecodeMessage(text) // nil if it cannot be read
		return m, nil
	}
	return decodeRequest(members)
}

func decodeRequest(members map[string]json.RawMessage) (jsonrpc.Message, *Refusal) {
	req := &jsonrpc.Request{Params: members["params"]}
	rawID, hasID := members["id"]
	var problem string
	if hasID {
		req.ID, problem = ParseID(rawID)
	}
	var version string
	switch {
	case problem != "":
	case json.Unmarshal(members["jsonrpc"], &version) != nil || version != "2.0":
		problem = `"jsonrpc" must be "2.0"`
	case members["method"] == nil:
		problem = `"method" is missing`
	case members["method"][0] != '"' || json.Unmarshal(members["method"], &req.Method) != nil:
		problem = `"method" must be a string`
	case hasID && strings.HasPrefix(req.Method, "notifications/"):
		// The SDK would let a notification with an id cancel a request.
		problem = fmt.Sprintf("%q is a notification, which has no id", req.Method)
	}
	if problem != "" {
		r := Refuse(jsonrpc.CodeInvalidRequest, "%s", problem)
		r.ID = req.ID
		return nil, r
	}
	if req.IsCall() && req.Method == "initialize" {
		if err := readInitialize(req.Params); err != nil {
			r := Refuse(jsonrpc.CodeInvalidParams, "the parameters of %q cannot be read: %v", req.Method, err)
			r.ID = req.ID
			return nil, r
		}
	}
	return req, nil
}

// readInitialize checks the parameters of initialize. The SDK rejects only those without a code.
func readInitialize(text json.RawMessage) error {
	var params *mcp.InitializeParams
	if len(text) > 0 {
		if err := json.Unmarshal(text, &params); err != nil {
			return err
		}
	}
	if params == nil {
		return errors.New("missing")
	}
	return nil
}

// maxInteger is the largest id: beyond it a double changes integers.
const maxInteger = 1 << 53

// ParseID reads the id of a request. The text is the error, or "".
func ParseID(raw json.RawMessage) (jsonrpc.ID, string) {
	var v any
	if json.Unmarshal(raw, &v) == nil && v != nil {
		number, isNumber := v.(float64)
		made, err := jsonrpc.MakeID(v)
		if err == nil && (!isNumber || number == math.Trunc(number) && math.Abs(number) <= maxInteger) {
			return made, ""
		}
	}
	return jsonrpc.ID{}, `"id" must be a string or an integer`
}

// explain turns an error of the JSON reader into a refusal.
func explain(text []byte, err error, out cut) *Refusal {
	if mismatch, ok := errors.AsType[*json.UnmarshalTypeError](err); ok && mismatch.Field == "" {
		return Refuse(jsonrpc.CodeInvalidRequest, "expected a JSON object, found %s", mismatch.Value)
	}
	if isHeader(text) {
		return Refuse(jsonrpc.CodeParseError, "messages are separated by line ends here, not by Content-Length headers")
	}
	r := Refuse(jsonrpc.CodeParseError, "the message is not JSON: %v", err)
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		r.Message = fmt.Sprintf("the message is not JSON: byte %d: %v", out.original(syntax.Offset), syntax)
	}
	r.ID = findID(text)
	return r
}

// isHeader recognises the framing of the Language Server Protocol, which some hosts can be set to by mistake.
func isHeader(text []byte) bool {
	name, _, ok := bytes.Cut(text, []byte(":"))
	return ok && bytes.HasPrefix(bytes.ToLower(name), []byte("content-"))
}

// findOuterID looks for an id at the beginning and at the end of an object whose middle is lost.
func findOuterID(head, tail []byte) jsonrpc.ID {
	if found := findID(head); found.IsValid() {
		return found
	}
	return findLastID(tail)
}

// findID looks for the field "id" at the top level of an object that may be cut off or broken later.
func findID(text []byte) jsonrpc.ID {
	d := json.NewDecoder(bytes.NewReader(text))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return jsonrpc.ID{}
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return jsonrpc.ID{}
		}
		var value json.RawMessage
		if d.Decode(&value) != nil {
			return jsonrpc.ID{}
		}
		if name == "id" {
			found, _ := ParseID(value)
			return found
		}
	}
	return jsonrpc.ID{}
}

// findLastID finds the field "id" right before the end of an object whose beginning is lost. Inside a string its quotes
// would be escaped, and inside a nested object another brace would follow.
func findLastID(tail []byte) jsonrpc.ID {
	body, ok := bytes.CutSuffix(tail, []byte("}"))
	if !ok {
		return jsonrpc.ID{}
	}
	at := bytes.LastIndex(body, []byte(`"id"`))
	if at < 1 || !bytes.ContainsRune([]byte("{, \t"), rune(body[at-1])) {
		return jsonrpc.ID{}
	}
	value, ok := bytes.CutPrefix(bytes.TrimSpace(body[at+len(`"id"`):]), []byte(":"))
	if !ok {
		return jsonrpc.ID{}
	}
	found, _ := ParseID(bytes.TrimSpace(value))
	return found
}

// Encode returns the JSON-RPC error that answers a refusal.
func (r *Refusal) Encode() []byte {
	message, _ := json.Marshal(r.Message) // a string always has a JSON form
	return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":%s}}`, EncodeID(r.ID), r.Code, message)
}

// EncodeID returns the JSON form of an id, null for an invalid one.
func EncodeID(i jsonrpc.ID) []byte {
	text, err := json.Marshal(i.Raw())
	if err != nil {
		return []byte("null")
	}
	return text
}

// maxErrorBytes bounds the message of a JSON-RPC error: the SDK's quote the parameters they could not read, in full.
const maxErrorBytes = 400

// Coded returns an error of the session with a code, code if it has none, and with a bounded message. The SDK sends
// requests out of order without a code.
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

// reasonFirst moves the reason, which the SDK writes last, before the parameters.
func reasonFirst(message string) string {
	const quotes = `unmarshaling "`
	before, quoted, found := strings.Cut(message, quotes)
	end := strings.LastIndex(quoted, `": `)
	if !found || end < 0 {
		return message
	}
	return before + quoted[end+len(`": `):] + `; found "` + quoted[:end]
}

// Messages are read one by one, so each waits for the one before. A large message is therefore not decoded here: the
// arguments of its tool call are cut out, which only needs their end, and decoded by the call's handler.

// Arguments is the Extra of a tool call whose arguments were cut out: their text, which may be neither JSON nor UTF-8.
// The params hold an empty object instead.
type Arguments []byte

const (
	// largeValue is the size, in bytes, from which arguments are cut out.
	largeValue = 64 << 10
	// MaxEnvelope is the largest size, in bytes, of a message without the arguments of a tool call, and of a whole batch.
	MaxEnvelope = 1 << 20
)

// cut is the part that was cut out of a message.
type cut struct{ offset, bytes int }

// original returns the offset in the message of an offset in the rest.
func (c cut) original(offset int64) int64 {
	if c.bytes > 0 && offset > int64(c.offset) {
		offset += int64(c.bytes - len("{}"))
	}
	return offset
}

// decode reads one JSON object as a message. value is the place of its arguments if they are large, or deep: the SDK
// rejects deep ones without a reason. Both results are nil for a malformed response, which must not be answered.
func decode(text []byte, value span, deep bool) (jsonrpc.Message, *Refusal) {
	if value.bytes() <= largeValue && !deep {
		return decodeText(text, cut{})
	}
	rest := slices.Concat(text[:value.start], []byte("{}"), text[value.end:])
	arguments := jsonvalue.MemberText(jsonvalue.MemberText(rest, "params"), "arguments")
	if len(arguments) == 0 || &arguments[0] != &rest[value.start] { // another value is large
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
		r := Refuse(jsonrpc.CodeInvalidParams, "the parameters of %q have %d bytes, at most %d are allowed", req.Method, value.bytes(), largeValue)
		if value.bytes() <= largeValue {
			r = Refuse(jsonrpc.CodeInvalidParams, "the parameters of %q are nested more than %d levels deep", req.Method, deepMessage)
		}
		r.ID = req.ID
		return nil, r
	}
	req.Extra = Arguments(text[value.start:value.end])
	return req, nil
}

// notArguments rejects a large message that is not a tool call.
func notArguments() *Refusal {
	return Refuse(jsonrpc.CodeInvalidRequest, "the message exceeds %d bytes besides the arguments of a tool call", MaxEnvelope)
}
