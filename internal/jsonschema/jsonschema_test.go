package jsonschema_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/workflows-engine/workflows-engine/internal/jsonschema"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

func decode(t testing.TB, text string) any {
	t.Helper()
	v, err := jsonvalue.Decode([]byte(text))
	if err != nil {
		t.Fatalf("decoding %s: %v", text, err)
	}
	return v
}

func compile(t testing.TB, text string) *jsonschema.Schema {
	t.Helper()
	s, err := jsonschema.Compile(decode(t, text))
	if err != nil {
		t.Fatalf("compiling %s: %v", text, err)
	}
	return s
}

// TestVerdicts holds the cases in which the library beneath would decide otherwise than the protocol (spec: definition,
// 14.2), and the agreements worth keeping.
func TestVerdicts(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, schema, instance string
		valid                  bool
	}{
		{"format is not asserted without $schema", `{"format":"date-time"}`, `"nonsense"`, true},
		{"format is not asserted with $schema", `{"$schema":"https://json-schema.org/draft/2020-12/schema","format":"email"}`, `"x"`, true},
		{"nested format is not asserted", `{"properties":{"a":{"type":"string","format":"email"}}}`, `{"a":"x"}`, true},
		{"unknown format", `{"format":"no-such-format"}`, `"x"`, true},
		{"dialect with an empty fragment", `{"$schema":"https://json-schema.org/draft/2020-12/schema#","type":"string"}`, `1`, false},
		{"\\u in a pattern", `{"pattern":"^\\u00e9$"}`, `"é"`, true},
		{"\\u in a pattern, other character", `{"pattern":"^\\u00e9$"}`, `"e"`, false},
		{"surrogate pair in a pattern", `{"pattern":"^\\ud83d\\ude00$"}`, `"😀"`, true},
		{"\\u{} in a pattern", `{"pattern":"^\\u{1F600}$"}`, `"😀"`, true},
		{"script class", `{"pattern":"^\\p{Script=Greek}$"}`, `"α"`, true},
		{"escaped backslash before u", `{"pattern":"^\\\\u0041$"}`, `"\\u0041"`, true},
		{"patternProperties with \\u", `{"patternProperties":{"^\\u00e9":{"type":"string"}}}`, `{"é":1}`, false},
		{"pattern as a property name", `{"properties":{"pattern":{"type":"string"}}}`, `{"pattern":"("}`, true},
		{"pattern inside const is data", `{"const":{"pattern":"\\u00e9("}}`, `{"pattern":"\\u00e9("}`, true},
		{"const compares doubles", `{"const":9007199254740993}`, `9007199254740992`, true},
		{"maximum compares doubles", `{"maximum":9007199254740992}`, `9007199254740993`, true},
		{"const 1 and 1.0", `{"const":1}`, `1.0`, true},
		{"1.0 is an integer", `{"type":"integer"}`, `1.0`, true},
		{"1e21 is an integer", `{"type":"integer"}`, `1e21`, true},
		{"1.5 is none", `{"type":"integer"}`, `1.5`, false},
		{"uniqueItems 1 and 1.0", `{"uniqueItems":true}`, `[1,1.0]`, false},
		{"uniqueItems 1 and true", `{"uniqueItems":true}`, `[1,true]`, true},
		{"member order in const", `{"const":{"a":1,"b":2}}`, `{"b":2,"a":1}`, true},
		{"nullable beside a type", `{"type":"string","nullable":true}`, `null`, true},
		{"nullable false", `{"type":"string","nullable":false}`, `null`, false},
		{"required of an inherited JavaScript name", `{"required":["toString"]}`, `{}`, false},
		{"draft-04 id is ignored", `{"id":"x","type":"string"}`, `"a"`, true},
		{"unknown keywords", `{"reducer":"append","x-ui":{"enum":[]},"type":"array"}`, `[]`, true},
		{"regexProperties means nothing", `{"regexProperties":5,"type":"object"}`, `{"(":1}`, true},
		{"minLength counts code points", `{"minLength":2}`, `"😀"`, false},
		{"limit beyond every int", `{"minLength":1e300}`, `"abc"`, false},
		{"upper limit beyond every int", `{"maxItems":1e300}`, `[1]`, true},
		{"dependencies of older drafts", `{"dependencies":{"a":["b"]}}`, `{"a":1}`, false},
		{"items false", `{"prefixItems":[{}],"items":false}`, `[1,2]`, false},
		{"unevaluatedProperties", `{"allOf":[{"properties":{"a":{}}}],"unevaluatedProperties":false}`, `{"a":1,"b":2}`, false},
		{"anchor", `{"$defs":{"x":{"$anchor":"n","type":"number"}},"$ref":"#n"}`, `"a"`, false},
		{"own $id", `{"$id":"https://example.org/a","$defs":{"x":{"type":"number"}},"$ref":"https://example.org/a#/$defs/x"}`, `"a"`, false},
		{"subschema with $id", `{"$defs":{"x":{"$id":"other","type":"number"}},"$ref":"other"}`, `"a"`, false},
		{"reference to the meta-schema", `{"properties":{"s":{"$ref":"https://json-schema.org/draft/2020-12/schema"}}}`, `{"s":{"type":"objekt"}}`, false},
		{"recursive schema", `{"properties":{"next":{"$ref":"#"}},"additionalProperties":false}`, `{"next":{"next":{"x":1}}}`, false},
		{"reference into an unknown keyword", `{"x-shared":{"s":{"pattern":"\\u00e9"}},"$ref":"#/x-shared/s"}`, `"e"`, false},
		{"true", `true`, `1`, true},
		{"false", `false`, `1`, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			vs := compile(t, tt.schema).Validate(decode(t, tt.instance))
			if (len(vs) == 0) != tt.valid {
				t.Errorf("%s against %s: got %v, want valid=%v", tt.instance, tt.schema, vs, tt.valid)
			}
		})
	}
}

func TestCompileRefuses(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, schema, want string }{
		{"unknown dialect", `{"$schema":"https://example.org/s"}`, "at /$schema: unknown dialect"},
		{"a draft that never was", `{"$schema":"http://json-schema.org/draft-08/schema#"}`, "at /$schema: unknown dialect"},
		{"a draft without scheme", `{"$schema":"json-schema.org/draft-07/schema"}`, "at /$schema: unknown dialect"},
		{"dialect of another type", `{"$schema":5}`, "at /$schema: unknown dialect"},
		{"draft 4 with a number as exclusiveMinimum", `{"$schema":"http://json-schema.org/draft-04/schema#","minimum":0,"exclusiveMinimum":1}`, "at /exclusiveMinimum: must be boolean"},
		{"draft 4 with a boolean schema", `{"$schema":"http://json-schema.org/draft-04/schema#","properties":{"a":true}}`, "at /properties/a: must be object"},
		{"draft 7 with a bad pattern", `{"$schema":"http://json-schema.org/draft-07/schema#","pattern":"(["}`, "is not a regular expression"},
		{"draft 7 with a reference to nowhere", `{"$schema":"http://json-schema.org/draft-07/schema#","properties":{"a":{"$ref":"#/definitions/x"}}}`, "leads to nothing"},
		{"misspelt type", `{"properties":{"a":{"type":"objekt"}}}`, `at /properties/a/type: must be one of "array"`},
		{"required as a string", `{"required":"a"}`, "at /required: must be array, not string"},
		{"items as a list", `{"items":[{}]}`, "at /items: must be object or boolean"},
		{"boolean exclusiveMinimum", `{"exclusiveMinimum":true}`, "at /exclusiveMinimum: must be number"},
		{"empty enum", `{"properties":{"a/b":{"enum":[]}}}`, "at /properties/a~1b/enum: enum lists no value"},
		{"unclosed group", `{"patternProperties":{"(":{}}}`, "is not a regular expression"},
		{"half of a surrogate pair", `{"pattern":"\\ud800"}`, "half of a surrogate pair"},
		{"nullable without type", `{"nullable":true}`, "at /nullable: nullable needs a type beside it"},
		{"file reference", `{"$ref":"file:///etc/passwd"}`, "names another document, and none is ever loaded"},
		{"http reference", `{"properties":{"a":{"$ref":"http://127.0.0.1/x"}}}`, "at /properties/a/$ref: "},
		{"relative reference", `{"$ref":"other.json"}`, "names another document"},
		{"file reference with an $id below", `{"$defs":{"a":{"$id":"b"}},"$ref":"file:///etc/passwd"}`, "names another document"},
		{"reference to nowhere", `{"$ref":"#/$defs/x"}`, `at /$ref: "#/$defs/x" leads to nothing`},
		{"unknown anchor", `{"$ref":"#x"}`, `no $anchor in this schema is called "x"`},
		{"reference to itself", `{"$ref":"#"}`, "leads back to itself without end"},
		{"reference to data", `{"const":{"regexProperties":5},"$ref":"#/const"}`, "cannot be compiled"},
		{"null", `null`, "a schema is an object, or true or false"},
		{"list", `[]`, "a schema is an object, or true or false"},
		{"deep", strings.Repeat(`{"not":`, 600) + `{}` + strings.Repeat(`}`, 600), "nested deeper than 512 levels"},
		{"wide in booleans", `{"allOf":[` + strings.Repeat(`true,`, jsonschema.MaxSubschemas) + `{}]}`, "more than 5000 subschemas"},
		{"wide below a reference", `{"$ref":"#/x","x":{"allOf":[` + strings.Repeat(`{},`, jsonschema.MaxSubschemas) + `{}]}}`, "more than 5000 subschemas"},
		{"wide", `{"allOf":[` + strings.Repeat(`{},`, jsonschema.MaxSubschemas) + `{}]}`, "more than 5000 subschemas"},
		{"references that multiply", doubling(30), "multiply to more than 100000 checks"},
		{"several", `{"properties":{"a":{"enum":[]},"b":{"pattern":"("}}}`, "; and 1 more"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s, err := jsonschema.Compile(decode(t, tt.schema))
			if err == nil {
				t.Fatalf("compiled; want an error with %q (%v)", tt.want, s)
			}
			if !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %q, want %q in it", err, tt.want)
			}
		})
	}
}

// TestDrafts holds a keyword that each draft reads in its own way.
func TestDrafts(t *testing.T) {
	t.Parallel()
	const (
		draft4, draft6, draft7 = "http://json-schema.org/draft-04/schema#", "http://json-schema.org/draft-06/schema#", "http://json-schema.org/draft-07/schema"
		draft2019, draft2020   = "https://json-schema.org/draft/2019-09/schema", "https://json-schema.org/draft/2020-12/schema#"
	)
	tests := []struct {
		name, draft, schema string
		good, bad           []string
		message             string
	}{
		{"required", draft4, `"required":["a"]`, []string{`{"a":1}`}, []string{`{}`}, `must have the member "a"`},
		{"boolean exclusiveMinimum", draft4, `"minimum":5,"exclusiveMinimum":true`, []string{`6`}, []string{`5`}, "must be > 5"},
		{"const is no keyword yet", draft4, `"const":1`, []string{`2`}, nil, ""},
		{"const", draft6, `"const":1`, []string{`1`}, []string{`2`}, "must be 1"},
		{"an id as an anchor", draft4, `"definitions":{"x":{"id":"#x","type":"string"}},"properties":{"a":{"$ref":"#x"}}`, []string{`{"a":"s"}`}, []string{`{"a":1}`}, "must be string"},
		{"an $id as an anchor", draft7, `"definitions":{"x":{"$id":"#x","type":"string"}},"properties":{"a":{"$ref":"#x"}}`, []string{`{"a":"s"}`}, []string{`{"a":1}`}, "must be string"},
		{"keywords beside a $ref do nothing", draft7, `"definitions":{"x":{}},"properties":{"a":{"$ref":"#/definitions/x","type":"string"}}`, []string{`{"a":1}`}, nil, ""},
		{"keywords beside a $ref", draft2019, `"$defs":{"x":{}},"properties":{"a":{"$ref":"#/$defs/x","type":"string"}}`, []string{`{"a":"s"}`}, []string{`{"a":1}`}, "must be string"},
		{"items for all", draft7, `"items":{"type":"string"}`, []string{`[]`, `["a","b"]`}, []string{`["a",1]`}, "must be string"},
		{"items by place", draft7, `"items":[{"type":"string"}],"additionalItems":{"type":"number"}`, []string{`["a",1,2]`}, []string{`["a","b"]`, `[1]`}, "must be"},
		{"no further items", draft2019, `"items":[{}],"additionalItems":false`, []string{`[1]`}, []string{`[1,2]`}, "at most 1"},
		{"if", draft7, `"if":{"required":["a"]},"then":{"required":["b"]}`, []string{`{}`, `{"a":1,"b":1}`}, []string{`{"a":1}`}, `must have the member "b"`},
		{"if is no keyword yet", draft6, `"if":{"required":["a"]},"then":{"required":["b"]}`, []string{`{"a":1}`}, nil, ""},
		{"dependencies", draft7, `"dependencies":{"a":["b"]}`, []string{`{"a":1,"b":1}`}, []string{`{"a":1}`}, `must have the member "b"`},
		{"unevaluatedProperties", draft2019, `"allOf":[{"properties":{"a":{}}}],"unevaluatedProperties":false`, []string{`{"a":1}`}, []string{`{"b":1}`}, "unevaluated"},
		{"a recursive reference", draft2019, `"properties":{"next":{"$recursiveRef":"#"},"n":{"type":"number"}}`, []string{`{"next":{"n":1}}`}, []string{`{"next":{"n":"x"}}`}, "must be number"},
		{"prefixItems", draft2020, `"prefixItems":[{"type":"string"}],"items":false`, []string{`["a"]`}, []string{`["a",1]`}, "too long"},
		{"prefixItems is no keyword yet", draft7, `"prefixItems":[{"type":"string"}]`, []string{`[1]`}, nil, ""},
		{"an encoded text is not looked into", draft7, `"contentMediaType":"application/json","contentEncoding":"base64"`, []string{`"{"`}, nil, ""},
		{"a pattern that only the other engine runs", draft4, `"pattern":"a(?=b)"`, []string{`"ab"`}, []string{`"ac"`}, "must match the pattern"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := compile(t, `{"$schema":"`+tt.draft+`",`+tt.schema+`}`)
			if s.Older() != (tt.draft != draft2020) {
				t.Errorf("older is %v", s.Older())
			}
			for _, v := range tt.good {
				if vs := s.Validate(decode(t, v)); len(vs) > 0 {
					t.Errorf("%s: got %s", v, jsonschema.Text(vs))
				}
			}
			for _, v := range tt.bad {
				if vs := s.Validate(decode(t, v)); len(vs) == 0 || !strings.Contains(jsonschema.Text(vs), tt.message) {
					t.Errorf("%s: got %q, want %q in it", v, jsonschema.Text(vs), tt.message)
				}
			}
		})
	}
}

// TestFormats shows that a format is asserted where Options say so and nowhere else, in every draft.
func TestFormats(t *testing.T) {
	t.Parallel()
	for _, draft := range []string{
		"http://json-schema.org/draft-04/schema#", "http://json-schema.org/draft-07/schema#", "https://json-schema.org/draft/2019-09/schema", jsonschema.Dialect,
	} {
		for format, values := range map[string][2]string{
			"date-time": {"2026-01-31T10:00:00Z", "some day"}, "date": {"2026-01-31", "2026-02-31"}, "email": {"a@b.example", "a"},
			"uuid": {"f81d4fae-7dec-11d0-a765-00a0c91e6bf6", "f81d"}, "regex": {"a(?=b)", "(["}, "ipv4": {"127.0.0.1", "300.0.0.1"},
		} {
			raw := map[string]any{"$schema": draft, "properties": map[string]any{"v": map[string]any{"format": format}}}
			asserting, err := jsonschema.CompileWith(raw, jsonschema.Options{AssertFormat: true})
			if err != nil {
				t.Fatal(err)
			}
			silent, err := jsonschema.Compile(raw)
			if err != nil {
				t.Fatal(err)
			}
			good, bad := map[string]any{"v": values[0]}, map[string]any{"v": values[1]}
			vs := asserting.Validate(bad)
			if len(vs) != 1 || vs[0].InstancePath != "/v" || vs[0].Keyword != "format" || vs[0].Params["format"] != format {
				t.Errorf("%s in %s: %q: got %+v", format, draft, values[1], vs)
			}
			if vs := asserting.Validate(good); len(vs) > 0 || len(asserting.Unchecked()) > 0 {
				t.Errorf("%s in %s: %q: got %+v", format, draft, values[0], vs)
			}
			if vs := asserting.Validate(map[string]any{"v": 5.0}); len(vs) > 0 {
				t.Errorf("%s of a number: got %+v", format, vs)
			}
			if vs := silent.Validate(bad); len(vs) > 0 || len(silent.Unchecked()) != 1 || silent.Unchecked()[0].Pointer != "/properties/v/format" {
				t.Errorf("%s in %s is not asserted: got %+v, %+v", format, draft, vs, silent.Unchecked())
			}
		}
	}
	unknown, err := jsonschema.CompileWith(map[string]any{"format": "iban"}, jsonschema.Options{AssertFormat: true})
	if err != nil || len(unknown.Validate("x")) > 0 || len(unknown.Unchecked()) != 1 {
		t.Errorf("an unknown format: %v, %+v", err, unknown.Unchecked())
	}
}

// doubling returns a schema of n definitions that name their successor twice.
func doubling(n int) string {
	var b strings.Builder
	b.WriteString(`{"$ref":"#/$defs/d0","$defs":{`)
	for i := range n {
		fmt.Fprintf(&b, `"d%d":{"anyOf":[{"$ref":"#/$defs/d%d"},{"$ref":"#/$defs/d%d"}]},`, i, i+1, i+1)
	}
	fmt.Fprintf(&b, `"d%d":{"type":"string"}}}`, n)
	return b.String()
}

func TestValidateDescribes(t *testing.T) {
	t.Parallel()
	// want lists "<pointer> <keyword> <params> <schema path>", one line for each violation, in order.
	tests := []struct {
		name, schema, instance string
		want                   []string
	}{
		{
			"members that are missing, one each",
			`{"required":["b","a","c"]}`, `{"a":1}`,
			[]string{` required {"missingProperty":"b"} #/required`, ` required {"missingProperty":"c"} #/required`},
		},
		{
			"surplus members, one each",
			`{"properties":{"o":{"properties":{"a":{}},"patternProperties":{"^x":{}},"additionalProperties":false}}}`,
			`{"o":{"a":1,"x1":1,"z":1,"b":2}}`,
			[]string{
				`/o additionalProperties {"additionalProperty":"b"} #/properties/o/additionalProperties`,
				`/o additionalProperties {"additionalProperty":"z"} #/properties/o/additionalProperties`,
			},
		},
		{
			"pointers are escaped, not percent-encoded",
			`{"additionalProperties":{"type":"string"}}`, `{"a~/ b é%":1}`,
			[]string{`/a~0~1 b é% type {"type":"string"} #/additionalProperties/type`},
		},
		{
			"a percent sign that looks like an escape",
			`{"additionalProperties":false}`, `{"%41":1}`,
			[]string{` additionalProperties {"additionalProperty":"%41"} #/additionalProperties`},
		},
		{
			"elements in numeric order",
			`{"items":{"type":"string"}}`, `["a","a",1,"a","a","a","a","a","a","a",2]`,
			[]string{`/2 type {"type":"string"} #/items/type`, `/10 type {"type":"string"} #/items/type`},
		},
		{
			"alternatives before the keyword",
			`{"anyOf":[{"required":["a"]},{"required":["b"]}]}`, `{}`,
			[]string{
				` required {"missingProperty":"a"} #/anyOf/0/required`, ` required {"missingProperty":"b"} #/anyOf/1/required`,
				` anyOf {} #/anyOf`,
			},
		},
		{
			"no alternative", `{"oneOf":[{"type":"string"},{"type":"null"}]}`, `1`,
			[]string{
				` type {"type":"string"} #/oneOf/0/type`, ` type {"type":"null"} #/oneOf/1/type`,
				` oneOf {"passingSchemas":null} #/oneOf`,
			},
		},
		{
			"two alternatives", `{"oneOf":[{"type":"string"},{"type":"number"},{"minimum":1}]}`, `1`,
			[]string{` oneOf {"passingSchemas":[1,2]} #/oneOf`},
		},
		{
			"then", `{"if":{"required":["a"]},"then":{"required":["b"]}}`, `{"a":1}`,
			[]string{` required {"missingProperty":"b"} #/then/required`, ` if {"failingKeyword":"then"} #/then`},
		},
		{
			"through a reference", `{"$defs":{"n":{"minimum":3}},"properties":{"a":{"$ref":"#/$defs/n"}}}`, `{"a":2}`,
			[]string{`/a minimum {"comparison":">=","limit":3} #/$defs/n/minimum`},
		},
		{
			"limits", `{"properties":{"a":{"minItems":1},"b":{"maxLength":1},"c":{"exclusiveMaximum":1.5},"d":{"multipleOf":2},"e":{"minProperties":1}}}`,
			`{"a":[],"b":"ab","c":2,"d":3,"e":{}}`,
			[]string{
				`/a minItems {"limit":1} #/properties/a/minItems`, `/b maxLength {"limit":1} #/properties/b/maxLength`,
				`/c exclusiveMaximum {"comparison":"<","limit":1.5} #/properties/c/exclusiveMaximum`,
				`/d multipleOf {"multipleOf":2} #/properties/d/multipleOf`, `/e minProperties {"limit":1} #/properties/e/minProperties`,
			},
		},
		{
			"values", `{"properties":{"a":{"enum":[1,"x",{"b":null}]},"b":{"const":[1]},"c":{"pattern":"^a"},"d":{"type":["string","null"]}}}`,
			`{"a":2,"b":1,"c":"b","d":1}`,
			[]string{
				`/a enum {"allowedValues":[1,"x",{"b":null}]} #/properties/a/enum`, `/b const {"allowedValue":[1]} #/properties/b/const`,
				`/c pattern {"pattern":"^a"} #/properties/c/pattern`, `/d type {"type":["string","null"]} #/properties/d/type`,
			},
		},
		{
			"lists", `{"properties":{"a":{"uniqueItems":true},"b":{"contains":{"type":"string"}},"c":{"contains":true,"maxContains":1},"d":{"prefixItems":[true],"items":false}}}`,
			`{"a":[3,1,2,1],"b":[1,2],"c":[1,2],"d":[1,2]}`,
			[]string{
				`/a uniqueItems {"i":1,"j":3} #/properties/a/uniqueItems`,
				`/b contains {"minContains":1} #/properties/b/minContains`,
				`/c contains {"maxContains":1,"minContains":1} #/properties/c/maxContains`,
				`/d/1 items {} #/properties/d/items`,
			},
		},
		{
			"member names", `{"properties":{"o":{"propertyNames":{"pattern":"^[a-z]$"}}}}`, `{"o":{"A/":1}}`,
			[]string{`/o propertyNames {"propertyName":"A/"} #/properties/o/propertyNames/pattern`},
		},
		{
			"members that others need", `{"dependentRequired":{"a/x":["b","c"]}}`, `{"a/x":1,"c":1}`,
			[]string{` dependentRequired {"deps":"b, c","depsCount":2,"missingProperty":"b","property":"a/x"} #/dependentRequired/a~1x/0`},
		},
		{
			"unevaluated members", `{"properties":{"o":{"unevaluatedProperties":false}}}`, `{"o":{"x":1}}`,
			[]string{`/o unevaluatedProperties {"unevaluatedProperty":"x"} #/properties/o/unevaluatedProperties`},
		},
		{
			"false", `{"properties":{"items":false,"unevaluatedProperties":false}}`, `{"items":1,"unevaluatedProperties":1}`,
			[]string{
				`/items false schema {} #/properties/items`, `/unevaluatedProperties false schema {} #/properties/unevaluatedProperties`,
			},
		},
		{"not", `{"not":{"type":"number"}}`, `1`, []string{` not {} #/not`}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := compile(t, tt.schema)
			instance := decode(t, tt.instance)
			var got []string
			for _, v := range s.Validate(instance) {
				got = append(got, v.InstancePath+" "+v.Keyword+" "+string(jsonvalue.Canonical(v.Params))+" "+v.SchemaPath)
				if v.Message == "" || strings.Contains(v.Message, "breaks the keyword") {
					t.Errorf("%s has the message %q", v.Keyword, v.Message)
				}
			}
			if g, w := strings.Join(got, "\n"), strings.Join(tt.want, "\n"); g != w {
				t.Errorf("got\n%s\nwant\n%s", g, w)
			}
		})
	}
}

// TestContractFragment holds the one wording that conformance vectors look for (spec: definition, 6.2).
func TestContractFragment(t *testing.T) {
	t.Parallel()
	vs := compile(t, `{"additionalProperties":false}`).Validate(map[string]any{"extensions": nil})
	if len(vs) != 1 || vs[0].InstancePath != "" || !strings.Contains(vs[0].Message, "must NOT have additional properties") {
		t.Fatalf("got %+v", vs)
	}
	if got, want := jsonschema.Text(vs), "/ "+vs[0].Message; got != want {
		t.Errorf("Text: got %q, want %q", got, want)
	}
}

// TestValidateOutsideTheModel shows that values which are no plain JSON are answered and not crashed on.
func TestValidateOutsideTheModel(t *testing.T) {
	t.Parallel()
	s := compile(t, `{"properties":{"a":{"type":"integer","minimum":1,"enum":[1]}},"type":"object"}`)
	nan := 0.0
	nan /= nan
	for _, v := range []any{map[string]any{"a": nan}, map[string]any{"a": struct{}{}}, map[string]string{}, []int{1}} {
		if vs := s.Validate(v); len(vs) == 0 {
			t.Errorf("%#v is taken as valid", v)
		}
	}
}

func FuzzSchema(f *testing.F) {
	for _, s := range [][2]string{
		{`{"type":"object","properties":{"a":{"$ref":"#"}}}`, `{"a":{"a":1}}`},
		{`{"pattern":"\\ud800\\u{110000}\\p{Script=Greek}\\c"}`, `"x"`},
		{`{"$ref":"#/$defs/a","$defs":{"a":{"$dynamicRef":"#x","$dynamicAnchor":"x"}}}`, `1`},
		{`{"$id":"%","$anchor":"","$vocabulary":{"a":true}}`, `{}`},
		{`{"regexProperties":1,"dependencies":{"a":[1]},"nullable":1,"minLength":-1}`, `{}`},
		{`{"oneOf":[{"not":{}},{"if":{},"then":false}],"unevaluatedItems":false}`, `[1]`},
	} {
		f.Add(s[0], s[1])
	}
	f.Fuzz(func(t *testing.T, schema, instance string) {
		raw, err := jsonvalue.Decode([]byte(schema))
		if err != nil {
			return
		}
		before := string(jsonvalue.Canonical(raw))
		s, err := jsonschema.Compile(raw)
		if after := string(jsonvalue.Canonical(raw)); before != after {
			t.Fatalf("the schema was changed: %s", after)
		}
		if err != nil {
			if err.Error() == "" {
				t.Fatal("an error without a text")
			}
			return
		}
		v, err := jsonvalue.Decode([]byte(instance))
		if err != nil {
			return
		}
		first, second := s.Validate(v), s.Validate(v)
		if a, b := jsonschema.Text(first), jsonschema.Text(second); a != b {
			t.Fatalf("two validations differ:\n%s\n%s", a, b)
		}
	})
}

// TestLongEnum: a violation lists the first values of a long enum, and how many there are; so it does with a large const.
func TestLongEnum(t *testing.T) {
	t.Parallel()
	for schema, want := range map[string]string{
		`{"enum":[` + strings.Repeat("1,", 99) + `1]}`:              `{"allowedValues":[` + strings.Repeat("1,", 99) + `1]}`,
		`{"enum":[` + strings.Repeat("1,", 50_000) + `1]}`:          `{"allowedCount":50001,"allowedValues":[` + strings.Repeat("1,", 99) + `1]}`,
		`{"enum":["` + strings.Repeat("x", 5000) + `",1]}`:          `{"allowedCount":2,"allowedValues":[]}`,
		`{"const":"` + strings.Repeat("x", 5000) + `"}`:             `{"allowedBytes":5002}`,
		`{"enum":["a","` + strings.Repeat("x", 3000) + `",{},[2]]}`: `{"allowedValues":["a","` + strings.Repeat("x", 3000) + `",{},[2]]}`,
	} {
		vs := compile(t, schema).Validate("none")
		if got := string(jsonvalue.Canonical(vs[0].Params)); got != want || len(vs[0].Message) > 2000 {
			t.Errorf("%.100s…: got %.200s with %d bytes in words, want %.200s", schema, got, len(vs[0].Message), want)
		}
	}
}
