package jsonvalue_test

import (
	"bytes"
	"encoding/json"
	"math"
	"runtime"
	"strings"
	"testing"

	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
	"github.com/workflows-engine/workflows-engine/internal/soak"
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

// TestDecodedBytes holds the estimate against what decoding allocates.
func TestDecodedBytes(t *testing.T) { // not parallel: it counts what the process allocates
	for _, element := range []string{"1", "1.5", `"a"`, "[]", "{}", `{"":0}`, `{"a":1,"b":[1,2]}`, `"{[,"`} {
		text := []byte("[" + strings.Repeat(element+",", 100_000) + "1]")
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		v, err := jsonvalue.Decode(text)
		runtime.GC()
		runtime.ReadMemStats(&after)
		runtime.KeepAlive(v)
		kept, estimate := int(after.HeapAlloc)-int(before.HeapAlloc), jsonvalue.DecodedBytes(text, math.MaxInt)
		if err != nil || !soak.UnderRace && kept > estimate+estimate/4 {
			t.Errorf("%s: %d bytes, estimate %d, %v", element, kept, estimate, err)
		}
		t.Logf("%s: %d bytes, estimate %d", element, kept, estimate)
	}
}
