package jsonschema

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	lib "github.com/santhosh-tekuri/jsonschema/v5"

	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
	"github.com/workflows-engine/workflows-engine/internal/soak"
)

func repeated(n int, text string) string { return strings.TrimSuffix(strings.Repeat(text+",", n), ",") }

func counted(n int, text string) string {
	parts := make([]string, n)
	for i := range parts {
		parts[i] = strings.ReplaceAll(text, "#", fmt.Sprint(i))
	}
	return strings.Join(parts, ",")
}

func decoded(t testing.TB, text string) any {
	t.Helper()
	v, err := jsonvalue.Decode([]byte(text))
	if err != nil {
		t.Fatalf("%v: %.100s", err, text)
	}
	return v
}

// tenMembers is the schema of an ordinary object, and tenMembersValue one that holds.
const (
	tenMembers = `{"type":"object","required":["a","b","c","d"],"additionalProperties":false,"properties":{"a":{"type":"string","minLength":1},"b":{"type":"integer","minimum":0},
"c":{"type":"boolean"},"d":{"enum":["x","y","z"]},"e":{"type":["string","null"]},"f":{"type":"number","maximum":1e9},"g":{"type":"string","pattern":"^[a-z]+$"},
"h":{"type":"array","items":{"type":"string"}},"i":{"oneOf":[{"type":"string"},{"type":"integer"}]},"j":{"const":1}}}`
	tenMembersValue = `{"a":"text","b":#,"c":true,"d":"y","e":null,"f":0.5,"g":"abc","h":["u","v"],"i":"w","j":1}`
)

type priced struct {
	name, schema, value string
	valid, refused      bool
}

// large are ordinary values, which pass, and those of attacks, whose checks end soon: because they are refused, or take little.
func large() []priced {
	partitions := make([]string, 1000) // lists of two texts with the same characters
	for i := range partitions {
		partitions[i] = `["` + strings.Repeat(`\u0003`, i) + `","` + strings.Repeat(`\u0003`, 1000-i) + `"]`
	}
	return []priced{
		{"20,000 objects of ten members", `{"type":"object","properties":{"list":{"type":"array","items":` + tenMembers + `}}}`, `{"list":[` + counted(20_000, tenMembersValue) + `]}`, true, false},
		{"20,000 objects by name", `{"additionalProperties":` + tenMembers + `}`, `{` + counted(20_000, `"n#":`+tenMembersValue) + `}`, true, false},
		{"250 codes over 100,000 texts", `{"items":{"enum":[` + counted(250, `"code#"`) + `]}}`, `[` + repeated(100_000, `"code249"`) + `]`, true, false},
		{"250 codes over 100,000 numbers", `{"items":{"enum":[` + counted(250, `#`) + `]}}`, `[` + repeated(100_000, `249`) + `]`, true, false},
		{"100,000 texts with a pattern", `{"items":{"type":"string","pattern":"^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$"}}`, `[` + repeated(100_000, `"01234567-89ab-cdef-0123-456789abcdef"`) + `]`, true, false},
		{"100,000 addresses", `{"items":{"type":"string","pattern":"^[^@ ]+@[^@ ]+\\.[a-z]{2,}$"}}`, `[` + repeated(100_000, `"some.one@example.org"`) + `]`, true, false},
		{"500,000 integers", `{"items":{"type":"integer","minimum":0}}`, `[` + counted(500_000, `#`) + `]`, true, false},
		{"a tree of 30,000 nodes", `{"type":"object","properties":{"v":{"type":"integer","minimum":0},"l":{"$ref":"#"},"r":{"$ref":"#"}}}`, tree(14), true, false},
		{"30,000 numbers with an anyOf of 20", `{"items":{"anyOf":[` + counted(20, `{"type":"string"}`) + `,{"type":"number"}]}}`, `[` + counted(30_000, `#`) + `]`, true, false},
		{"250,000 integers that are unique", `{"uniqueItems":true}`, `[` + counted(250_000, `#`) + `]`, true, false},
		{"2,000 unique lists that begin alike", `{"uniqueItems":true}`, `[` + counted(2000, `[`+repeated(400, "0")+`,#]`) + `]`, true, false},
		{"unique lists of one hash", `{"uniqueItems":true}`, `[` + strings.Join(partitions, ",") + `]`, true, false},
		{"an enum of 2,000 lists over 4,000", `{"items":{"enum":[` + counted(4000, `[#,#,#,#,#]`) + `]}}`, `[` + repeated(4000, `[-1,-1,-1,-1,-1]`) + `]`, false, false},
		{"an enum of 50,000 texts over 200,000", `{"items":{"enum":[` + counted(50_000, `"k#"`) + `]}}`, `[` + repeated(200_000, `"z"`) + `]`, false, false},
		{"5,000 required names of 5,000 objects", `{"items":{"required":[` + counted(5000, `"k#"`) + `]}}`, `[` + repeated(5000, `{}`) + `]`, false, false},
		{"5,000 names that are not required of 20,000 objects", `{"items":{"not":{"required":[` + counted(5000, `"k#"`) + `]}}}`, `[` + repeated(20_000, `{}`) + `]`, true, false},
		{"150 that fail at 20,000 elements", `{"items":{"allOf":[` + repeated(50, `{"type":"string","minLength":2},{"type":"null"},{"const":1}`) + `]}}`, `[` + repeated(20_000, `{}`) + `]`, false, true},
		{"contains 900 times 900", `{"items":{"contains":{"const":1}}}`, `[` + repeated(900, `[`+repeated(900, "0")+`]`) + `]`, false, false},
		{"300 patterns of 700 members", `{"patternProperties":{` + counted(300, `"^(a|b#)":{}`) + `}}`, `{` + counted(700, `"a#":1`) + `}`, true, false},
		{"300 patterns of 700 lists", `{"patternProperties":{` + counted(300, `"^(a|b#)":{"items":{"minimum":1}}`) + `}}`, `{` + counted(700, `"a#":[`+repeated(20, "1")+`]`) + `}`, true, true},
		{"a wide pattern over long texts", `{"items":{"pattern":"(x+x+){1,20}y"}}`, `[` + repeated(100, `"`+strings.Repeat("x", 20_000)+`"`) + `]`, false, true},
		{"elements below a long name", `{"additionalProperties":{"items":{"type":"number"}}}`, `{"` + strings.Repeat("k", 100_000) + `":[` + repeated(100_000, "0") + `]}`, true, true},
		{"elements that fail below a long name", `{"additionalProperties":{"items":{"type":"string"}}}`, `{"` + strings.Repeat("k", 100_000) + `":[` + repeated(1000, "0") + `]}`, false, false},
		{"200 nested allOf of a million elements", strings.Repeat(`{"allOf":[`, 200) + `{}` + strings.Repeat(`]}`, 200), `[` + repeated(1_000_000, "0") + `]`, true, true},
		{"2,000 lists by name that fail", `{"properties":{` + counted(2000, `"p#":{"items":{"type":"string"}}`) + `}}`, `{` + counted(2000, `"p#":[`+repeated(300, "0")+`]`) + `}`, false, true},
		{"a member without a definition in each of 100 allOf", `{"items":{"allOf":[` + repeated(100, `{"unevaluatedProperties":false}`) + `]}}`, `[` + repeated(3000, `{"a":1,"b":1,"c":1}`) + `]`, false, true},
		{"5,000 others for one member", `{"items":{"dependentRequired":{"a":[` + counted(5000, `"k#"`) + `]}}}`, `[` + repeated(5000, `{"a":1}`) + `]`, false, true},
		{"multiples of a tiny number", `{"items":{"allOf":[` + counted(20, `{"multipleOf":1e-300}`) + `]}}`, `[` + repeated(20_000, "1e300") + `]`, true, true},
	}
}

func tree(depth int) string {
	if depth == 0 {
		return `{"v":1}`
	}
	below := tree(depth - 1)
	return `{"v":2,"l":` + below + `,"r":` + below + `}`
}

func compiled(t testing.TB, schema string) *Schema {
	t.Helper()
	s, err := Compile(decoded(t, schema))
	if err != nil {
		t.Fatalf("%v: %.100s", err, schema)
	}
	return s
}

// TestLargeValues tries every third in the short form: the check of a large value ends soon. What is ordinary passes; what would take too much is refused before it begins.
func TestLargeValues(t *testing.T) {
	all := large()
	every := soak.Size(3, 9, 1)
	for i := 0; i < len(all); i += every {
		tt := all[i]
		t.Run(tt.name, func(t *testing.T) {
			vs := compiled(t, tt.schema).Validate(decoded(t, tt.value))
			refused := len(vs) == 1 && vs[0].Keyword == "limit"
			if refused != tt.refused || !refused && (len(vs) == 0) != tt.valid || len(vs) > MaxViolations {
				t.Errorf("refused: %t, want %t; %d violations, want valid: %t: %.300s", refused, tt.refused, len(vs), tt.valid, Text(vs))
			}
		})
	}
}

// BenchmarkPrice tells how long a step takes, of what passes: it must be 10 to 20 ns, and never much more.
func BenchmarkPrice(b *testing.B) {
	for _, tt := range large() {
		s, v := compiled(b, tt.schema), decoded(b, tt.value)
		w := walk{prices: s.prices, left: MaxCheck}
		errs := w.visit(s.root, v, at{})
		b.Run(tt.name+"/walk", func(b *testing.B) {
			for b.Loop() {
				s.prices.check(s.root, v)
			}
		})
		if tt.refused {
			continue
		}
		b.Run(tt.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_ = s.root.Validate(v)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(MaxCheck-w.left), "ns/step")
			b.ReportMetric(float64(MaxCheck-w.left)/1e6, "Msteps")
			b.ReportMetric(float64(errs)/1e6, "MB-of-errors")
		})
	}
}

// visits counts what reaches the end of a schema of the library.
type visits struct{ n *int }

func (c visits) Validate(lib.ValidationContext, any) error { *c.n++; return nil }

// TestPriceIsABound: whatever schema and value, no check visits more, and keeps more errors, than it was counted to.
func TestPriceIsABound(t *testing.T) {
	t.Parallel()
	rounds := 500
	if os.Getenv("SOAK") != "" {
		rounds *= 20
	}
	r := rand.New(rand.NewPCG(1, 2))
	failed, refused := 0, 0
	for range rounds {
		raw := map[string]any{"$defs": map[string]any{"a": randomSchema(r, 3), "b": randomSchema(r, 2)}, "allOf": []any{randomSchema(r, 4)}}
		if draft := []any{"http://json-schema.org/draft-07/schema#", "https://json-schema.org/draft/2019-09/schema"}[r.IntN(2)]; r.IntN(3) == 0 {
			toOlder(raw)
			raw["$schema"] = draft
		}
		s, err := CompileWith(raw, Options{AssertFormat: true})
		if err != nil {
			refused++ // a circle of references
			continue
		}
		n := 0
		for _, sub := range s.places {
			extend(sub, "visits", visits{&n})
		}
		v := randomValue(r, 5)
		w := walk{prices: s.prices, left: MaxCheck}
		errs := w.visit(s.root, v, at{})
		err = s.root.Validate(v)
		steps, bytes := MaxCheck-w.left, 0
		if ve, ok := err.(*lib.ValidationError); ok {
			failed++
			for _, c := range ve.Causes { // what the library adds at the top is not counted
				bytes += weigh(c)
			}
		}
		if n*visitSteps > steps || bytes > 2*errs || w.over != nil || len(w.scope) > 0 {
			t.Fatalf("%d visits counted as %d steps, %d bytes of errors as %d, over: %v\n%s\n%s", n, steps, bytes, errs, w.over, jsonvalue.Canonical(raw), jsonvalue.Canonical(v))
		}
		if most := s.prices.most.steps * jsonvalue.Size(v, 0); steps > 2*most {
			t.Fatalf("%d steps are more than %d for the size of the value\n%s\n%s", steps, most, jsonvalue.Canonical(raw), jsonvalue.Canonical(v))
		}
	}
	if failed < rounds/10 || failed+refused > rounds*9/10 {
		t.Errorf("of %d rounds %d fail and %d do not compile: the test sees too little", rounds, failed, refused)
	}
}

func randomSchema(r *rand.Rand, depth int) any {
	s := map[string]any{}
	if depth == 0 {
		return r.IntN(4) > 0
	}
	sub := func() any { return randomSchema(r, depth-1) }
	subs := func() any { return []any{sub(), sub()} }
	named := func() any { return map[string]any{"a": sub(), "bb": sub()} }
	for range 1 + r.IntN(3) {
		switch r.IntN(27) {
		case 0:
			s["type"] = []any{"object", "array", "string", "integer", "null"}[r.IntN(5)]
		case 1:
			s["type"] = []any{"object", "array"}
		case 2, 3:
			s["properties"] = named()
		case 4, 5:
			s["items"] = sub()
		case 6:
			s["prefixItems"] = subs()
		case 7:
			s["contains"] = sub()
		case 8:
			s["additionalProperties"] = sub()
		case 9:
			s["patternProperties"] = map[string]any{"^a": sub(), "(?=b)": sub(), "c$": sub()}
		case 10:
			s["propertyNames"] = sub()
		case 11:
			s["unevaluatedProperties"] = sub()
		case 12:
			s["unevaluatedItems"] = sub()
		case 13:
			s["dependentSchemas"] = named()
		case 14:
			s["dependentRequired"] = map[string]any{"a": []any{"bb", "x"}}
		case 15:
			s["required"] = []any{"a", "c"}
		case 16:
			s["enum"] = []any{"a", 1.0, []any{}, nil}
		case 17:
			s["const"] = map[string]any{}
		case 18:
			s["allOf"] = subs()
		case 19:
			s["anyOf"] = subs()
		case 20:
			s["oneOf"] = subs()
		case 21:
			s["not"] = sub()
		case 22:
			s["if"], s["then"], s["else"] = sub(), sub(), sub()
		case 23:
			s["pattern"], s["minLength"], s["minimum"], s["multipleOf"] = "^a+$", 2.0, 1.0, 3.0
		case 24:
			s["$ref"] = []any{"#/$defs/a", "#/$defs/b", "#"}[r.IntN(3)]
		case 25:
			s["uniqueItems"], s["minItems"], s["maxProperties"] = true, 2.0, 1.0
		case 26:
			s["format"] = []any{"date-time", "email", "regex", "uuid"}[r.IntN(4)]
		}
	}
	return s
}

// toOlder writes the items of a schema as drafts before 2020-12 do.
func toOlder(v any) {
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			toOlder(e)
		}
	case map[string]any:
		for _, e := range v {
			toOlder(e)
		}
		if prefix, ok := v["prefixItems"].([]any); ok {
			if rest, ok := v["items"]; ok {
				v["additionalItems"] = rest
			}
			v["items"] = prefix
			delete(v, "prefixItems")
		}
	}
}

func randomValue(r *rand.Rand, depth int) any {
	kind := r.IntN(10)
	if depth == 0 {
		kind %= 4
	}
	switch kind {
	case 0:
		return nil
	case 1:
		return float64(r.IntN(5)) / 2
	case 2:
		return strings.Repeat("a", r.IntN(4))
	case 3:
		return r.IntN(2) == 0
	case 4, 5, 6:
		list := make([]any, r.IntN(6))
		for i := range list {
			list[i] = randomValue(r, depth-1)
		}
		return list
	}
	object := map[string]any{}
	for _, name := range []string{"a", "bb", "c", "", "ä/~"} {
		if r.IntN(2) == 0 {
			object[name] = randomValue(r, depth-1)
		}
	}
	return object
}
