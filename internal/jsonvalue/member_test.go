package jsonvalue_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// memberTexts are objects with members of every form, and what is none.
var memberTexts = []string{
	`{}`, `[]`, `null`, `"a"`, `{"a":1}`, ` { "a" : [ 1 , { "b" : "]" } ] , "b" : "\\" , "c":"\\\"" , "d":{}}`,
	`{"a":{"b":"}"},"b":"a\\\\\"b"}`, `{"a":1,"a":[2]}`, `{"\u0061":true,"":false}`, "{\"\xff\":1}", `{"a":"\ud800","\ud800":-1e5 }`,
	`{`, `{"a`, `{"a"`, `{"a":`, `{"a":"`, `{"a":}`, `{"a":1,`, `{"a":]}`, `{"a":"\`,
}

func TestMemberText(t *testing.T) {
	t.Parallel()
	for _, text := range memberTexts {
		checkMemberText(t, []byte(text))
	}
}

func FuzzMemberText(f *testing.F) {
	for _, text := range memberTexts {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) { checkMemberText(t, text) })
}

// checkMemberText holds MemberText against the standard library's reader.
func checkMemberText(t *testing.T, text []byte) {
	t.Helper()
	var want map[string]json.RawMessage
	if json.Unmarshal(text, &want) != nil {
		jsonvalue.MemberText(text, "a") // must come back
		return
	}
	for name, value := range want {
		if got := jsonvalue.MemberText(text, name); !bytes.Equal(got, value) {
			t.Errorf("%s: member %q is %s, want %s", text, name, got, value)
		}
	}
	if _, there := want["no such member"]; !there {
		if got := jsonvalue.MemberText(text, "no such member"); got != nil {
			t.Errorf("%s: %s", text, got)
		}
	}
}
