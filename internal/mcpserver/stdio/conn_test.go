package stdio

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// TestEncode: messages are written as the SDK writes them.
func TestEncode(t *testing.T) {
	t.Parallel()
	var messages []jsonrpc.Message
	for _, v := range []any{1.0, "a\"b"} {
		id, err := jsonrpc.MakeID(v)
		if err != nil {
			t.Fatal(err)
		}
		for _, result := range []string{`{}`, `{"a":"b\n","c":["<"]}`, "{\"a\":\n1}"} {
			messages = append(messages, &jsonrpc.Response{ID: id, Result: json.RawMessage(result)})
		}
		messages = append(messages, &jsonrpc.Response{ID: id, Error: errors.New("no")}, &jsonrpc.Request{ID: id, Method: "m", Params: json.RawMessage(`{}`)})
	}
	for _, m := range messages {
		want, err := jsonrpc.EncodeMessage(m)
		if err != nil {
			t.Fatal(err)
		}
		got, err := encode(m)
		if err != nil || string(got) != string(want) {
			t.Errorf("%s, %v, want %s", got, err, want)
		}
	}
}
