package jsonschema_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/internal/jsonschema"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

func compiled(t *testing.T, schema string) *jsonschema.Schema {
	t.Helper()
	raw, err := jsonvalue.Decode([]byte(schema))
	if err != nil {
		t.Fatal(err)
	}
	s, err := jsonschema.Compile(raw)
	if err != nil {
		t.Fatalf("%s: %v", schema, err)
	}
	return s
}

// TestPatternsBeyondRE2: patterns with look-around, back-references and long repeats are those of the protocol.
func TestPatternsBeyondRE2(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		schema string
		// valid and invalid are JSON values.
		valid, invalid []string
	}{
		{`{"pattern":"^(?=.*\\d).{4,}$"}`, []string{`"abc1"`, `7`}, []string{`"abcd"`, `"ab1"`}},
		{`{"pattern":"^[A-Z]{1,2000}$"}`, []string{`"A"`, `"` + strings.Repeat("Z", 2000) + `"`}, []string{`""`, `"` + strings.Repeat("Z", 2001) + `"`}},
		{`{"pattern":"(?<=é)b"}`, []string{`"aéb"`}, []string{`"ab"`}},
		{`{"pattern":"^(?<c>.)\\k<c>$"}`, []string{`"éé"`, `"😀😀"`}, []string{`"ab"`}},
		{`{"pattern":"^(?!\\u00e9)[\\w\\-]+$"}`, []string{`"a-b"`}, []string{`"éa"`, `"aé"`}},
		{`{"pattern":"^(?=[^]*b)\\p{Script=Greek}"}`, []string{`"α\nb"`}, []string{`"ab"`, `"α"`}},
		{`{"type":"object","patternProperties":{"^(?!_)":{"type":"string"}},"additionalProperties":false}`,
			[]string{`{"a":"x"}`, `{}`}, []string{`{"_a":"x"}`, `{"a":1}`}},
		{`{"properties":{"_n":{"type":"number"}},"patternProperties":{"^(?!_)":{"type":"string"},"^_?x":{"type":"string","minLength":2}},"additionalProperties":{"type":"boolean"}}`,
			[]string{`{"_n":1,"a":"x","_b":true,"_x":"xx","x":"xx"}`}, []string{`{"_n":"1"}`, `{"_b":1}`, `{"x":"x"}`, `{"x":1}`}},
		{`{"allOf":[{"patternProperties":{"^(?!_)":{}}}],"unevaluatedProperties":false}`, []string{`{"a":1}`}, []string{`{"_a":1}`}},
		{`{"patternProperties":{"(?=^$)":{"type":"string"}}}`, []string{`{"":"x"}`}, []string{`{"":1}`}},
		{`{"propertyNames":{"pattern":"^(?!x)"}}`, []string{`{"a":1}`}, []string{`{"x":1}`}},
		// What Go's engine runs, but reads otherwise.
		{`{"pattern":"^\\s$"}`, []string{`"\u00a0"`, `"\u000b"`, `"\ufeff"`, `" "`}, []string{`"a"`, `"\u180e"`}},
		{`{"pattern":"^[\\S]$"}`, []string{`"a"`, `"é"`}, []string{`"\u00a0"`, `" "`}},
		{`{"pattern":"^.$"}`, []string{`"a"`, `"😀"`}, []string{`"\n"`, `"\r"`, `"\u2028"`}},
		{`{"pattern":"^[.]$"}`, []string{`"."`}, []string{`"a"`}},
	} {
		s := compiled(t, c.schema)
		for i, value := range append(c.valid, c.invalid...) {
			v, err := jsonvalue.Decode([]byte(value))
			if err != nil {
				t.Fatal(err)
			}
			if got := s.Validate(v); (len(got) == 0) != (i < len(c.valid)) {
				t.Errorf("%s: %s: %v", c.schema, value, got)
			}
		}
	}
}

// TestPatternViolationsSayThePattern: messages and places have the pattern as its author wrote it.
func TestPatternViolationsSayThePattern(t *testing.T) {
	t.Parallel()
	s := compiled(t, `{"properties":{"a":{"pattern":"^(?=.\\s)x/"}},"patternProperties":{"^(?!a)/":{"type":"string"}},"additionalProperties":false}`)
	var got []string
	for _, v := range s.Validate(map[string]any{"a": "y", "/": 1.0, "c": 1.0}) {
		got = append(got, fmt.Sprint(v.InstancePath, " ", v.SchemaPath, " ", v.Message, " ", v.Params))
	}
	want := []string{
		` #/additionalProperties must NOT have additional properties: "c" is not allowed here map[additionalProperty:c]`,
		`/~1 #/patternProperties/^(?!a)~1/type must be string, not number map[type:string]`,
		`/a #/properties/a/pattern must match the pattern "^(?=.\\s)x/" map[pattern:^(?=.\s)x/]`,
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("violations:\n%s", strings.Join(got, "\n"))
	}
}

// TestPatternsEnd: patterns that take for ever in other engines end soon here, with the same verdict in every try.
func TestPatternsEnd(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ schema, text, says string }{
		{`{"pattern":"^(?=a)(?:ab|a|b)*$"}`, strings.Repeat("ab", 60) + "!", "may take too many steps"},
		{`{"items":{"pattern":"(a*)(a*)(a*)\\1\\2\\3b"}}`, strings.Repeat("a", 100), "may take too many steps"},
		{`{"pattern":"(?=x)(a{1,30}){1,30}$"}`, strings.Repeat("a", 3000), "may take too many steps"},
		{`{"items":{"pattern":"(?=x)y"}}`, strings.Repeat("a", 3000), "must match the pattern"},
	} {
		s := compiled(t, c.schema)
		var v any = c.text
		if strings.Contains(c.schema, "items") {
			list := make([]any, 200)
			for i := range list {
				list[i] = c.text
			}
			v = list
		}
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				began := time.Now()
				got := s.Validate(v)
				if took := time.Since(began); len(got) == 0 || !strings.Contains(got[0].Message, c.says) || took > 20*time.Second {
					t.Errorf("%s: %v after %v", c.schema, got[:min(1, len(got))], took)
				}
			})
		}
		all.Wait()
	}
}
