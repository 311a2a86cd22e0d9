package document_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/document"
)

const schema = `{
  "type": "object", "additionalProperties": false, "required": ["name"],
  "properties": {
    "name": {"type": "string", "pattern": "\\S", "minLength": 1, "errorMessage": "must not be blank"},
    "colour": {"enum": ["red", "green"]},
    "size": {"type": "integer", "minimum": 1, "maximum": 9},
    "tags": {"type": "array", "uniqueItems": true, "items": {"type": "string"}},
    "limits": {"type": "object", "propertyNames": {"pattern": "^[a-z]+$"}, "additionalProperties": {"type": "number"}},
    "old": {"type": "string"}, "new": {"type": "string"},
    "key": {"errorMessage": "must have either env or file", "anyOf": [
      {"type": "object", "additionalProperties": false, "required": ["env"], "properties": {"env": {"type": "string"}, "trim": {"type": "boolean"}}},
      {"type": "object", "additionalProperties": false, "required": ["file"], "properties": {"file": {"type": "string"}}}]},
    "auth": {"type": "object", "required": ["type"], "properties": {"type": {"enum": ["none", "basic"]}}, "anyOf": [
      {"additionalProperties": false, "properties": {"type": {"const": "none"}}},
      {"additionalProperties": false, "required": ["user"], "properties": {"type": {"const": "basic"}, "user": {"type": "string"}}}]}
  },
  "dependentRequired": {"old": ["new"]}
}`

var kind = document.Kind{Schema: func() []byte { return []byte(schema) }, Code: problem.UsageError, Syntax: problem.ManifestSyntax, MaxBytes: 400}

type file struct {
	Name  string             `json:"name"`
	Size  int                `json:"size"`
	Limit map[string]float64 `json:"limits"`
}

// Each text has one mistake, or the mistakes of its lines: "line:column keyword pointer: message; hint".
func TestRead(t *testing.T) {
	t.Parallel()
	with := func(fields string) string { return "{\"name\":\"n\",\n" + fields + "}" }
	for _, c := range []struct{ text, want string }{
		{with(`"size":9,"colour":"red","tags":["a","b"],"limits":{"a":1},"key":{"file":"x"},"auth":{"type":"basic","user":"u"},"old":"o","new":"n"`), ""},
		{`{`, "1:2 parse : expected a field name in double quotes, found the end of the text"},
		{`[]`, "1:1 type : must be object, not array"},
		{`{}`, `1:1 required : missing field "name"`},
		{`{"nmae":"x"}`, `1:2 additionalProperties /nmae: unknown field "nmae"; did you mean "name"?`},
		{`{"name":""}`, `1:9 minLength /name: must not be blank`},
		{`{"name":"a","name":"b"}`, `1:13 parse /name: duplicate field "name", first at line 1, column 2`},
		{`{"name":"a","name":"","size":0,"size":"x"}`, `1:13 parse /name: duplicate field "name", first at line 1, column 2
1:20 minLength /name: must not be blank
1:32 parse /size: duplicate field "size", first at line 1, column 23
1:39 type /size: must be integer, not string`},
		{with(`"x":1`), `2:1 additionalProperties /x: unknown field "x"; Known fields: name, colour, size, tags, limits, old, new, key, auth.`},
		{with(`"colour":"gren"`), `2:10 enum /colour: must be one of "red", "green", not "gren"; did you mean "green"?`},
		{with(`"size":0`), `2:8 minimum /size: must be from 1 to 9, not 0`},
		{with(`"size":1.5`), `2:8 type /size: must be integer, not number`},
		{with(`"tags":["a","b","a"]`), `2:17 uniqueItems /tags/2: must not equal /tags/0; Leave one of them out.`},
		{with(`"limits":{"A":1}`), `2:11 propertyNames /limits/A: must not have a member named "A": the name must match the pattern "^[a-z]+$"`},
		{with(`"limits":{"a":"1","b":true}`), "2:15 type /limits/a: must be number, not string\n2:23 type /limits/b: must be number, not boolean"},
		{with(`"old":"o"`), `2:1 dependentRequired /old: needs the field "new" beside it`},
		{with(`"key":{}`), `2:7 anyOf /key: must have either env or file`},
		{with(`"key":{"env":"a","file":"b"}`), `2:7 anyOf /key: must have either env or file`},
		{with(`"key":{"env":"a","trm":true}`), `2:18 additionalProperties /key/trm: unknown field "trm"; did you mean "trim"?`},
		{with(`"auth":{"type":"bsic","user":"u"}`), `2:16 enum /auth/type: must be one of "none", "basic", not "bsic"; did you mean "basic"?`},
		{with(`"auth":{"type":"none","user":"u"}`), `2:23 additionalProperties /auth/user: unknown field "user"; Known fields: type.`},
		{with(`"auth":{"type":"basic"}`), `2:8 required /auth: missing field "user"`},
		{`{"name":"` + strings.Repeat("x", 400) + `"}`, "1:1 parse : the text has more than 400 bytes"},
	} {
		var into file
		d := kind.Read([]byte(c.text), &into)
		var got []string
		for _, f := range d.Findings() {
			line := fmt.Sprintf("%d:%d %s %s: %s", f.At.Line, f.At.Column, f.Keyword, f.At.Pointer, f.Message)
			if f.Hint != "" {
				line += "; " + f.Hint
			}
			got = append(got, line)
		}
		if text := strings.Join(got, "\n"); text != c.want {
			t.Errorf("%s\ngot  %s\nwant %s", c.text, text, c.want)
		}
		if d.Valid() && !d.Decoded() || d.Decoded() && d.Valid() && into.Name == "" {
			t.Errorf("%s: valid %t, read %+v", c.text, d.Valid(), into)
		}
	}
}

func TestCodes(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]problem.Code{`{`: problem.ManifestSyntax, `{"name":"a","name":"b"}`: problem.UsageError, `{}`: problem.UsageError} {
		if got := kind.Read([]byte(text), new(file)).Findings()[0].Code; got != want {
			t.Errorf("%s: code %s, want %s", text, got, want)
		}
	}
}

// A value of a wrong type is left out, the others are decoded: a caller finds their mistakes as well. The fields of an object that lacks
// another one, or makes no choice, are checked too.
func TestWrongTypes(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]struct {
		broken string // not intact
		size   int
		limits string
	}{
		`{"name":"n","size":"x","limits":{"a":1,"b":true}}`:  {"/size /limits/b", 0, "map[a:1 b:0]"},
		`{"name":5,"size":3,"limits":[]}`:                    {"/name /limits /limits/a", 3, "map[]"},
		`{"name":"n","size":3,"limits":{"a":true},"x":1}`:    {"/limits/a /x", 3, "map[a:0]"},
		`{"size":3,"tags":["a",[]]}`:                         {"/name /tags/1", 3, "map[]"},
		`{"nmae":"n","size":3}`:                              {"/name /nmae", 3, "map[]"},
		`{"name":"n","siez":3}`:                              {"/size /siez", 0, "map[]"},
		`{"name":"n","size":3,"key":{"env":"a","file":"b"}}`: {"/key", 3, "map[]"},
		`[]`: {"/name /size", 0, "map[]"},
	} {
		var into file
		d := kind.Read([]byte(text), &into)
		if !d.Decoded() || d.Valid() || into.Size != want.size || fmt.Sprint(into.Limit) != want.limits {
			t.Errorf("%s: decoded %t, %+v, %v", text, d.Decoded(), into, d.Findings())
		}
		for _, at := range strings.Fields(want.broken) {
			if d.Intact(at) {
				t.Errorf("%s: %s counts as intact", text, at)
			}
		}
		whole := !strings.HasPrefix(text, "[")
		if d.Intact("/colour") != whole || d.Intact("/key/env") != whole {
			t.Errorf("%s: a value beside the mistake is not checked, %v", text, d.Findings())
		}
	}
}

// Mistakes that the schema does not see have the places of values and of names.
func TestFail(t *testing.T) {
	t.Parallel()
	d := kind.Read([]byte("{\"name\":\"n\",\n\"limits\":{\"b\":1,\n \"a\":2}}"), new(file))
	if names := fmt.Sprint(d.Names("/limits")); names != "[b a]" || !d.Has("/limits/a") || d.Has("/limits/c") || !d.Valid() {
		t.Error(names)
	}
	d.Fail(document.At("limits", "a"), "profile", "too %s", "much")
	d.FailName("/limits/a", "profile", "odd")
	d.FailWith("/name", problem.New(problem.UsageError, "taken").WithHint("Choose another."))
	d.Fail("/gone/1", "profile", "gone")
	var got []string
	for _, f := range d.Findings() {
		got = append(got, fmt.Sprintf("%d:%d %s %s", f.At.Line, f.At.Column, f.Message, f.Hint))
	}
	if text := strings.Join(got, "; "); text != "1:1 gone ; 1:9 taken Choose another.; 3:2 odd ; 3:6 too much " || d.Valid() {
		t.Error(text)
	}
	// A value that breaks the schema has one finding; its neighbours and the value around them have their own.
	var into file
	d = kind.Read([]byte("{\"name\":\"n\",\n\"size\":0,\n\"limits\":{\"a\":2}}"), &into)
	d.Fail("/size", "profile", "again")
	d.Fail("", "profile", "around")
	d.Fail("/limits/a", "profile", "too much")
	if fs := d.Findings(); !d.Decoded() || into.Size != 0 || into.Limit["a"] != 2 || len(fs) != 3 || fs[0].Message != "around" || fs[2].Message != "too much" {
		t.Errorf("%v", fs)
	}
	if d.Intact("/size") || d.Intact("") || !d.Intact("/limits/a") {
		t.Error("a value that breaks the schema counts as intact, or its neighbour does not")
	}
	if at := document.At("a/b", 3, "~"); at != "/a~1b/3/~0" {
		t.Error(at)
	}
}
