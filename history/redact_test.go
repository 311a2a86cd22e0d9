package history_test

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

func TestW05_RedactionOnTheWayOut(t *testing.T) {
	t.Parallel()
	cases := []struct{ raw, want string }{
		{`{"executionId":"x","b":1,"a":[true,null]}`, `{"executionId":"x","b":1,"a":[true,null]}`},
		{`{"token":"abc"}`, `{"token":"[REDACTED]"}`},
		{`{"b":{"apiKey":{"deep":[1,"}"]}},"PassWord":7,"a":1}`, `{"b":{"apiKey":"[REDACTED]"},"PassWord":"[REDACTED]","a":1}`},
		{`[{"secret":null},{"secret":false},{"x":"secret"}]`, `[{"secret":"[REDACTED]"},{"secret":"[REDACTED]"},{"x":"secret"}]`},
		{`{"api_key":1,"tokens":2,"client_secret":3,"access_token":4,"authorization":5,"passwd":6}`,
			`{"api_key":1,"tokens":2,"client_secret":3,"access_token":4,"authorization":5,"passwd":6}`},
		{` { "to\u006ben" : -1.5e+3 , "n" : 1.50 } `, ` { "to\u006ben" : "[REDACTED]" , "n" : 1.50 } `},
		{`{"a\\\"":"\\","token":"\"}"}`, `{"a\\\"":"\\","token":"[REDACTED]"}`},
		{`{}`, `{}`}, {`[]`, `[]`}, {`"token"`, `"token"`}, {`3`, `3`},
		{`{"token":`, `"[REDACTED]"`},
		{``, `"[REDACTED]"`},
	}
	for _, c := range cases {
		if got := string(history.Redact([]byte(c.raw))); got != c.want {
			t.Errorf("%s\n got %s\nwant %s", c.raw, got, c.want)
		}
		v, err := jsonvalue.Decode([]byte(c.raw))
		if err != nil {
			continue
		}
		before := string(jsonvalue.Canonical(v))
		want, _ := jsonvalue.Decode([]byte(c.want))
		if got := history.RedactValue(v); !reflect.DeepEqual(got, want) {
			t.Errorf("value of %s: got %v, want %v", c.raw, got, want)
		}
		if after := string(jsonvalue.Canonical(v)); after != before {
			t.Errorf("RedactValue changed %s to %s", before, after)
		}
	}
}

// FuzzRedact: the two ways to redact agree, and the text stays JSON.
func FuzzRedact(f *testing.F) {
	f.Add([]byte(`{"token":{"a":[1,2]},"b":"x"}`))
	f.Add([]byte(` [ { "pass\u0077ord" : "" } , -0.0 ] `))
	f.Add([]byte("{\"secret\"\t:\n[]}"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		got := history.Redact(raw)
		if !json.Valid(got) {
			t.Fatalf("%q became %q", raw, got)
		}
		v, err := jsonvalue.Decode(raw)
		if err != nil || !json.Valid(raw) {
			return
		}
		shown, err := jsonvalue.Decode(got)
		if err != nil {
			t.Fatal(err)
		}
		if !jsonvalue.Equal(shown, history.RedactValue(v)) {
			t.Fatalf("%q: text gives %q, value %v", raw, got, history.RedactValue(v))
		}
	})
}
