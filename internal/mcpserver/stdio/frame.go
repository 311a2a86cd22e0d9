package stdio

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

type id = jsonrpc.ID

// refusal says why a text is no message that can be passed on. id is invalid where none could be made out; the answer
// then carries null.
type refusal struct {
	code    int64
	message string
	id      id
}

func refuse(code int64, format string, args ...any) *refusal {
	return &refusal{code: code, message: fmt.Sprintf(format, args...)}
}

// decodeText is decode for a text from which something may have been taken out.
func decodeText(text []byte, out cut) (jsonrpc.Message, *refusal) {
	if at := jsonvalue.InvalidUTF8(text); at >= 0 {
		r := refuse(jsonrpc.CodeParseError, "the message is not valid UTF-8 (byte %d)", out.original(int64(at)+1))
		r.id = findID(bytes.ToValidUTF8(text, []byte("\uFFFD")))
		return nil, r
	}
	// A map, because the names of a struct would match in any letter case.
	var members map[string]json.RawMessage
	if err := json.Unmarshal(text, &members); err != nil {
		return nil, explain(text, err, out)
	}
	if members == nil {
		return nil, refuse(jsonrpc.CodeInvalidRequest, "expected a JSON object, found null")
	}
	if _, isRequest := members["method"]; !isRequest && (members["result"] != nil || members["error"] != nil) {
		m, _ := jsonrpc.DecodeMessage(text) // nil if it cannot be read
		return m, nil
	}
	return decodeRequest(members)
}

func decodeRequest(members map[string]json.RawMessage) (jsonrpc.Message, *refusal) {
	req := &jsonrpc.Request{Params: members["params"]}
	rawID, hasID := members["id"]
	var problem string
	if hasID {
		req.ID, problem = parseID(rawID)
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
	}
	if problem != "" {
		r := refuse(jsonrpc.CodeInvalidRequest, "%s", problem)
		r.id = req.ID
		return nil, r
	}
	return req, nil
}

// maxInteger is the greatest integer up to which every integer is a double; ids beyond would come back changed.
const maxInteger = 1 << 53

func parseID(raw json.RawMessage) (id, string) {
	var v any
	if json.Unmarshal(raw, &v) == nil && v != nil {
		number, isNumber := v.(float64)
		made, err := jsonrpc.MakeID(v)
		if err == nil && (!isNumber || number == math.Trunc(number) && math.Abs(number) <= maxInteger) {
			return made, ""
		}
	}
	return id{}, `"id" must be a string or an integer`
}

// explain turns what the JSON reader says into a refusal.
func explain(text []byte, err error, out cut) *refusal {
	if mismatch, ok := errors.AsType[*json.UnmarshalTypeError](err); ok && mismatch.Field == "" {
		return refuse(jsonrpc.CodeInvalidRequest, "expected a JSON object, found %s", mismatch.Value)
	}
	if isHeader(text) {
		return refuse(jsonrpc.CodeParseError, "messages are separated by line ends here, not by Content-Length headers")
	}
	r := refuse(jsonrpc.CodeParseError, "the line is not JSON: %v", err)
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		r.message = fmt.Sprintf("the line is not JSON: byte %d: %v", out.original(syntax.Offset), syntax)
	}
	r.id = findID(text)
	return r
}

// isHeader recognises the framing of the Language Server Protocol, which some hosts can be set to by mistake.
func isHeader(text []byte) bool {
	name, _, ok := bytes.Cut(text, []byte(":"))
	return ok && bytes.HasPrefix(bytes.ToLower(name), []byte("content-"))
}

// findOuterID looks for an id at the beginning and at the end of an object whose middle is lost.
func findOuterID(head, tail []byte) id {
	if found := findID(head); found.IsValid() {
		return found
	}
	return findLastID(tail)
}

// findID looks for the member "id" at the top level of an object that may be cut off or broken further on.
func findID(text []byte) id {
	d := json.NewDecoder(bytes.NewReader(text))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return id{}
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return id{}
		}
		var value json.RawMessage
		if d.Decode(&value) != nil {
			return id{}
		}
		if name == "id" {
			found, _ := parseID(value)
			return found
		}
	}
	return id{}
}

// findLastID looks for the member "id" right before the end of an object whose beginning is lost. Inside a string its
// quotes would be escaped, and inside a nested object another brace would follow, so what is found is the message's id.
func findLastID(tail []byte) id {
	body, ok := bytes.CutSuffix(tail, []byte("}"))
	if !ok {
		return id{}
	}
	at := bytes.LastIndex(body, []byte(`"id"`))
	if at < 1 || !bytes.ContainsRune([]byte("{, \t"), rune(body[at-1])) {
		return id{}
	}
	value, ok := bytes.CutPrefix(bytes.TrimSpace(body[at+len(`"id"`):]), []byte(":"))
	if !ok {
		return id{}
	}
	found, _ := parseID(bytes.TrimSpace(value))
	return found
}

// encodeRefusal is the JSON-RPC error that answers a refusal.
func encodeRefusal(r *refusal) []byte {
	message, _ := json.Marshal(r.message) // a string always has a JSON form
	return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":%s}}`, encodeID(r.id), r.code, message)
}

func encodeID(i id) []byte {
	text, err := json.Marshal(i.Raw())
	if err != nil {
		return []byte("null")
	}
	return text
}
