package frame

import (
	"encoding/json"
	"strings"
	"testing"
)

var scanned = []string{
	`{"params":{"name":"t","arguments":{"a":[1,{"b":"}"}]},"_meta":{}},"id":1}`, `{"params":{"arguments":"{\"a\":\"\\\\\\\"\"}"}}`, ` { "a" : { "b" : [ 1 , 2 ] , "c":3 } } `,
	`{"a":{"b":1},"c":{"b":"longer"}}`, `{"a":{"b":{}},"b":[1,2,3],"c":"text"}`, `{"a":{"\"":",:{"}}`, `{"a":{"b":"\\"},"c":"\\\""}`, `{"a":[{"b":1}]}`, `{}`, `{"a":{}}`, "{\"a\":{\"b\":\"\xff\"}}",
	`{"a":{"b":[1,2`, `{"a":{"b":"x`, `{"a":{"b":   `, `}]}{"a":`, `"`, `\`, `:`, `[{"a":{"b":1}}]`,
}

// scanOf scans a text that arrives in pieces of a size.
func scanOf(text string, size int) scan {
	s := scan{kind: outside}
	for len(text) > 0 {
		n := min(size, len(text))
		s.add([]byte(text[:n]))
		text = text[n:]
	}
	return s
}

// checkScan holds a scan against the standard library's reader: of an object, a value two levels deep is found that is not shorter than any
// other, whatever the pieces are in which the text arrives.
func checkScan(t *testing.T, text string) {
	t.Helper()
	s := scanOf(text, len(text)+1)
	if s.read != len(text) || s.besides() < 0 || s.besides() > len(text) {
		t.Errorf("%q: %+v, besides %d", text, s, s.besides())
	}
	whole := s
	found := whole.value([]byte(text))
	for size := 1; size < 5; size++ {
		if other := scanOf(text, size); other != s {
			t.Errorf("%q in pieces of %d bytes: %+v, want %+v", text, size, other, s)
		}
	}
	var outer map[string]json.RawMessage
	if json.Unmarshal([]byte(text), &outer) != nil || outer == nil {
		return
	}
	if s.depth != 0 || found.bytes() > 0 && !json.Valid([]byte(text[found.start:found.end])) {
		t.Errorf("%q: found %+v at a depth of %d", text, found, s.depth)
	}
	for _, member := range outer {
		var inner map[string]json.RawMessage
		if json.Unmarshal(member, &inner) != nil {
			continue
		}
		for name, value := range inner {
			if len(value) > found.bytes() {
				t.Errorf("%q: found %q, but %q is %q", text, text[found.start:found.end], name, value)
			}
		}
	}
}

func TestScan(t *testing.T) {
	t.Parallel()
	for _, text := range scanned {
		checkScan(t, text)
	}
	deep := strings.Repeat("[", 300) + `"[[["` + strings.Repeat("]", 200)
	if s := scanOf(deep, 7); s.depth != 100 {
		t.Errorf("a depth of %d", s.depth)
	}
}

func FuzzScan(f *testing.F) {
	for _, text := range scanned {
		f.Add(text)
	}
	f.Fuzz(checkScan)
}

// BenchmarkScan measures texts of 1 MB. Random ones are the slowest: the processor cannot foresee them.
func BenchmarkScan(b *testing.B) {
	random := make([]byte, 1<<20)
	seed := uint32(1)
	for i := range random {
		seed = seed*1664525 + 1013904223
		random[i] = `{}[]":,\a`[seed>>24%9]
	}
	for name, text := range map[string]string{
		"text": strings.Repeat("x", 1<<20), "numbers": strings.Repeat("1,", 1<<19), "objects": strings.Repeat(`{"":0},`, 1<<20/7), "escapes": strings.Repeat(`\"`, 1<<19), "random": string(random),
	} {
		line := []byte(`{"params":{"arguments":["` + text)
		if name != "text" && name != "escapes" {
			line = []byte(`{"params":{"arguments":[` + text)
		}
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(line)))
			for b.Loop() {
				s := scan{kind: outside}
				s.add(line)
			}
		})
	}
}
