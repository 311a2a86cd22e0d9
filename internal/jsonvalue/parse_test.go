package jsonvalue_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

func TestParsePlaces(t *testing.T) {
	t.Parallel()
	text := "{\n  \"é😀\": [1, true,\r\n\t{\"b\": null}],\n  \"c\": \"x\\ny\", \"d\" : -1.5e3\n}"
	root, problems := jsonvalue.Parse([]byte(text), 0, 0)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	for _, want := range []struct {
		pointer      string
		line, column int
		kind         jsonvalue.Kind
	}{
		{"", 1, 1, jsonvalue.Object},
		{"/é😀", 2, 9, jsonvalue.Array},
		{"/é😀/0", 2, 10, jsonvalue.Number},
		{"/é😀/1", 2, 13, jsonvalue.Bool},
		{"/é😀/2", 3, 2, jsonvalue.Object},
		{"/é😀/2/b", 3, 8, jsonvalue.Null},
		{"/c", 4, 8, jsonvalue.String},
		{"/d", 4, 22, jsonvalue.Number},
	} {
		n := root.Lookup(want.pointer)
		if n == nil {
			t.Errorf("%q: nothing there", want.pointer)
			continue
		}
		if n.Line != want.line || n.Column != want.column || n.Kind != want.kind {
			t.Errorf("%q: %v at %d:%d, want %v at %d:%d", want.pointer, n.Kind, n.Line, n.Column, want.kind, want.line, want.column)
		}
		if n.Kind == jsonvalue.Number && !strings.HasPrefix(text[n.Offset:], n.Text) {
			t.Errorf("%q: offset %d is not where %q stands", want.pointer, n.Offset, n.Text)
		}
	}
	if m := root.Members[2]; m.Name != "d" || m.Line != 4 || m.Column != 16 {
		t.Errorf("third member %q at %d:%d", m.Name, m.Line, m.Column)
	}
	if n := root.Get("d"); n.Text != "-1.5e3" || n.Num != -1500 {
		t.Errorf("number %q = %v", n.Text, n.Num)
	}
}

func TestParseProblems(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, text string
		want       []string // line:column kind pointer
		incomplete bool     // there is no node
	}{
		{"duplicate", "{\"a\":1,\n\"b\":{\"x\":1,\"x\":2}}", []string{`2:12 duplicate /b/x`}, false},
		{"triplicate", `{"a":1,"a":2,"a":3}`, []string{`1:8 duplicate /a`, `1:14 duplicate /a`}, false},
		{"duplicate by escape", `{"a":1,"\u0061":2}`, []string{`1:8 duplicate /a`}, false},
		{"proto", `[{"__proto__":1}]`, []string{`1:3 proto /0/__proto__`}, false},
		{"lone high surrogate", `["x\ud83d!"]`, []string{`1:4 surrogate /0`}, false},
		{"lone low surrogate", `{"a":"\uDE00"}`, []string{`1:7 surrogate /a`}, false},
		{"pair the wrong way round", `["\uDE00\uD83D"]`, []string{`1:3 surrogate /0`}, false},
		{"surrogate in a name", `{"\ud800":1}`, []string{"1:3 surrogate "}, false},
		{"invalid UTF-8", "[\"é\xff\", \"ok\"]", []string{`1:4 utf8 /0`}, false},
		{"both in one string", "[\"\xff\\ud800\"]", []string{`1:3 utf8 /0`, `1:4 surrogate /0`}, false},
		{"overflow", `{"n":[1e400,-1e400]}`, []string{`1:7 number /n/0`, `1:13 number /n/1`}, false},
		{"trailing", "{} \n x", []string{"2:2 trailing "}, false},
		{"byte order mark", "\uFEFF{\"a\":1,\"a\":1}", []string{`1:8 duplicate /a`}, false},
		{"escaped pointer", `{"a/b~c":{"x":1,"x":1}}`, []string{`1:17 duplicate /a~1b~0c/x`}, false},
		{"order of the text", `{"\ud800":1,"__proto__":"\udc00","a":1e999,"__proto__":1}`, []string{
			"1:3 surrogate ", `1:13 proto /__proto__`, `1:26 surrogate /__proto__`, `1:38 number /a`,
			`1:44 duplicate /__proto__`, `1:44 proto /__proto__`,
		}, false},

		{"empty", "", []string{"1:1 syntax "}, true},
		{"blank", " \n ", []string{"2:2 syntax "}, true},
		{"comment", "{\n// c\n}", []string{"2:1 syntax "}, true},
		{"trailing comma", `{"a":[1,]}`, []string{`1:9 syntax /a/1`}, true},
		{"trailing comma in object", `{"a":1,}`, []string{`1:8 syntax `}, true},
		{"single quotes", `{'a':1}`, []string{`1:2 syntax `}, true},
		{"bare name", `{a:1}`, []string{`1:2 syntax `}, true},
		{"NaN", `[NaN]`, []string{`1:2 syntax /0`}, true},
		{"plus", `+1`, []string{"1:1 syntax "}, true},
		{"leading zero", `[01]`, []string{`1:2 syntax /0`}, true},
		{"no digit after the point", `[1.]`, []string{`1:4 syntax /0`}, true},
		{"no digit in the exponent", `[1e+]`, []string{`1:5 syntax /0`}, true},
		{"minus alone", `-`, []string{"1:2 syntax "}, true},
		{"unknown escape", `["a\x"]`, []string{`1:4 syntax /0`}, true},
		{"short escape", `["\u12"]`, []string{`1:3 syntax /0`}, true},
		{"line break in a string", "[\"a\nb\"]", []string{`1:4 syntax /0`}, true},
		{"open string", `["a`, []string{`1:4 syntax /0`}, true},
		{"open array", `[1`, []string{"1:3 syntax "}, true},
		{"missing colon", `{"a" 1}`, []string{`1:6 syntax /a`}, true},
		{"word", `[tru]`, []string{`1:2 syntax /0`}, true},
		{"invalid UTF-8 outside", "[\xff]", []string{`1:2 syntax /0`}, true},
		{"after a problem", `{"a":1,"a":2`, []string{`1:8 duplicate /a`, "1:13 syntax "}, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			n, problems := jsonvalue.Parse([]byte(test.text), 0, 0)
			var got []string
			for _, p := range problems {
				got = append(got, fmt.Sprintf("%d:%d %s %s", p.Line, p.Column, p.Kind, p.Pointer))
				if p.Message == "" {
					t.Error("a problem without a message")
				}
			}
			if strings.Join(got, "\n") != strings.Join(test.want, "\n") {
				t.Errorf("problems\n%q, want\n%q\n%v", got, test.want, problems)
			}
			if (n == nil) != test.incomplete {
				t.Errorf("node %v", n)
			}
			_, err := jsonvalue.Decode([]byte(test.text))
			refused := test.incomplete || test.name == "trailing"
			if (err != nil) != refused {
				t.Errorf("Decode: %v", err)
			}
		})
	}
}

// TestWordsThatAreNoNumbers: a sentence that begins with I or N, as models write them, is not taken for one of the numbers
// that JSON lacks.
func TestWordsThatAreNoNumbers(t *testing.T) {
	t.Parallel()
	for text, number := range map[string]bool{"NaN": true, "[Infinity]": true, "I am sorry": false, "No.": false, "Inf": false, "N": false} {
		if _, err := jsonvalue.Decode([]byte(text)); err == nil || strings.Contains(err.Error(), "Infinity") != number {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestParseLimits(t *testing.T) {
	t.Parallel()
	nested := func(n int) []byte { return []byte(strings.Repeat("[", n) + strings.Repeat("]", n)) }
	if _, problems := jsonvalue.Parse(nested(512), 0, 0); len(problems) > 0 {
		t.Errorf("512 levels: %v", problems)
	}
	if n, problems := jsonvalue.Parse(nested(513), 0, 0); n != nil || len(problems) != 1 || problems[0].Kind != "depth" {
		t.Errorf("513 levels: %v", problems)
	}
	if n, problems := jsonvalue.Parse([]byte(`{"a":{}}`), 1, 0); n != nil || len(problems) != 1 || problems[0].Pointer != "/a" {
		t.Errorf("two levels of one: %v", problems)
	}
	if _, problems := jsonvalue.Parse([]byte(`"1234"`), 0, 6); len(problems) > 0 {
		t.Errorf("6 bytes: %v", problems)
	}
	if n, problems := jsonvalue.Parse([]byte(`"12345"`), 0, 6); n != nil || len(problems) != 1 || problems[0].Kind != "size" {
		t.Errorf("7 bytes: %v", problems)
	}
	many := []byte(`[` + strings.Repeat(`1e999,`, 1000) + `1e999`)
	if _, problems := jsonvalue.Parse(many, 0, 0); len(problems) != 100 || problems[99].Kind != "syntax" {
		t.Errorf("%d problems", len(problems))
	}
}

// TestParseManyMembers passes from looking through few members to looking up many.
func TestParseManyMembers(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteByte('{')
	for i := range 100 {
		fmt.Fprintf(&b, "%q:%d,", fmt.Sprint("name", i), i)
	}
	for _, again := range []string{"name3", "name15", "name16", "name17", "name99"} {
		_, problems := jsonvalue.Parse([]byte(b.String()+`"`+again+`":1}`), 0, 0)
		if len(problems) != 1 || problems[0].Kind != "duplicate" || problems[0].Pointer != "/"+again {
			t.Errorf("%s again: %v", again, problems)
		}
	}
	if _, problems := jsonvalue.Parse([]byte(b.String()+`"other":1}`), 0, 0); len(problems) > 0 {
		t.Error(problems)
	}
}

func TestNodeValue(t *testing.T) {
	t.Parallel()
	n, _ := jsonvalue.Parse([]byte(`{"a":[1,"x",true,null,-0],"b":1,"b":2,"big":1e999}`), 0, 0)
	want := map[string]any{"a": []any{1.0, "x", true, nil, 0.0}, "b": 2.0, "big": nil}
	if got := n.Value(); !jsonvalue.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if zero := n.Lookup("/a/4").Value().(float64); math.Signbit(zero) {
		t.Error("a negative zero")
	}
	if n.Get("b").Num != 2 || n.Get("none") != nil || n.Lookup("/a/0").Get("x") != nil {
		t.Error("Get")
	}
	var none *jsonvalue.Node
	if none.Value() != nil || none.Get("x") != nil || none.Lookup("/x") != nil {
		t.Error("a nil node has parts")
	}
}

func TestFromValue(t *testing.T) {
	t.Parallel()
	v := map[string]any{"b": []any{1.5, nil}, "10": "x", "9": true}
	n := jsonvalue.FromValue(v)
	if !jsonvalue.Equal(n.Value(), v) {
		t.Errorf("%v", n.Value())
	}
	if n.Members[0].Name != "9" || n.Members[1].Name != "10" || n.Line != 0 {
		t.Error("members are not in the protocol's order")
	}
	if n.Lookup("/b/0").Text != "1.5" {
		t.Error("a number without its text")
	}
	if n := jsonvalue.FromValue([]int{7}); n.Lookup("/0").Num != 7 {
		t.Error("a value not of the model")
	}
}

func TestLookup(t *testing.T) {
	t.Parallel()
	// The examples of RFC 6901, section 5.
	n, problems := jsonvalue.Parse([]byte(`{"foo":["bar","baz"],"":0,"a/b":1,"c%d":2,"e^f":3,"g|h":4,"i\\j":5,"k\"l":6," ":7,"m~n":8}`), 0, 0)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	for pointer, want := range map[string]string{
		"/foo": `["bar","baz"]`, "/foo/0": `"bar"`, "/": "0", "/a~1b": "1", "/c%d": "2", "/e^f": "3", "/g|h": "4",
		`/i\j`: "5", `/k"l`: "6", "/ ": "7", "/m~0n": "8",
	} {
		if got := string(jsonvalue.Canonical(n.Lookup(pointer).Value())); got != want {
			t.Errorf("%q: %s, want %s", pointer, got, want)
		}
	}
	for _, pointer := range []string{"foo", "/foo/2", "/foo/-", "/foo/01", "/foo/x", "/foo/0/x", "/none", "/foo/99999999999999999999"} {
		if n.Lookup(pointer) != nil {
			t.Errorf("%q: something is there", pointer)
		}
	}
	if got := jsonvalue.EscapePointer("a/b~1"); got != "a~1b~01" {
		t.Error(got)
	}
}
