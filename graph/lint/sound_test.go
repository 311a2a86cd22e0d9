package lint_test

import (
	"testing"
	"time"

	"github.com/itchyny/gojq"

	"github.com/workflows-engine/workflows-engine/graph/expr"
	"github.com/workflows-engine/workflows-engine/graph/lint"
	"github.com/workflows-engine/workflows-engine/internal/jsonschema"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

const soundSchema = `{"type":"object","properties":{
	"n":{"type":"integer"},"s":{"enum":["a","b"]},"b":{"type":"boolean"},"t":{"type":["string","null"]},
	"l":{"type":"array","items":{"$ref":"#/$defs/item"}},"m":{"type":"array","items":{"type":"number"}},
	"o":{"type":"object","properties":{"x":{"type":"number"},"y":{"anyOf":[{"type":"string"},{"type":"array","items":{"type":"boolean"}}]}},
		"additionalProperties":false},
	"w":{"allOf":[{"type":"object","properties":{"p":{"type":"number"}}},{"properties":{"q":{"const":"k"}}}]},
	"open":{},"r":{"type":"object","additionalProperties":{"type":"string"}}},
	"$defs":{"item":{"type":"object","properties":{"price":{"type":"number"},
		"tags":{"type":"array","items":{"type":"string"}},"inner":{"$ref":"#/$defs/item"}}}}}`

var soundStates = []string{
	`{}`,
	`{"n":3,"s":"a","b":true,"t":"x","l":[{"price":2,"tags":["u","v"]},{}],"m":[3,1,2],"o":{"x":1,"y":"z"},
		"w":{"p":1,"q":"k","z":[]},"open":[1],"r":{"k":"v"},"other":5}`,
	`{"n":-1,"s":"b","b":false,"t":null,"l":[],"m":[],"o":{"y":[true]},"w":{},"open":{"a":{"b":1}},"r":{}}`,
	`{"l":[{"inner":{"inner":{"price":1}},"extra":{"a":1}}],"m":[0.5],"o":{},"open":"text"}`,
}

var soundPrograms = []string{
	`.`, `.n`, `.n + 1`, `.n + .n`, `.t + "x"`, `.s, .n`, `.l[].price`, `.l[0]`, `.l[-1].tags[0]`, `.l[1:]`, `.l | first`,
	`.l | map(.price)`, `.l | map(.tags) | add`, `.m | add`, `.m | max`, `.m | sort`, `.m | min_by(.)`,
	`.m | unique | reverse`, `.l | sort_by(.price) | last`, `.l | group_by(.price)`, `[.l[] | {price, k: .tags[0]}]`,
	`.l[] | select(.price > 1)`, `.o.y`, `.o.y[]?`, `.o[]`, `.o | to_entries`, `.o | keys`,
	`.o | with_entries(.value |= tostring)`, `.o | map_values(1)`, `.w.q // "none"`, `.w | .p`, `.b and .n`, `.b | not`,
	`if .b then .n else .s end`, `if .n then .n end`, `.b // .t`, `.n // empty`, `try error("x") catch .`,
	`try (.n | tonumber) catch "no"`, `.open`, `.open.a?`, `.open[0]?`, `.r.k`, `.r[]`, `.r | add`, `.n as $x | [$x, $x]`,
	`.l[] as {price: $p, tags: [$t]} | [$p, $t]`, `.l[] as {$price} | $price`, `. as [$a] ?// $a | $a`,
	`reduce .m[] as $x (0; . + $x)`, `foreach .m[] as $x (0; . + $x)`, `[limit(2; .m[])]`, `first(.m[], "x")`,
	`any(.l[]; .price > 1)`, `.m | any`, `.m | any(. > 1)`, `{a: .n, "b": .s, (.s // "k"): 1, $__loc__}`,
	`.n as $n | {$n, @base64 "k": 2}`, `{"n"}`, `"\(.n) \(.s)"`, `@json`, `@json "x\(.n)"`, `.t | ascii_downcase?`,
	`.s | IN("a", "b")`, `.s | type`, `.[] | type`, `.s | length`, `.s | test("a")?`, `[.s, .t | strings]`, `[.[] | numbers]`,
	`[.[] | arrays | .[]]`, `[.[] | values]`, `[.[] | objects]`, `.n = 5 | .n`, `.n |= 5`, `.n += 1`, `.o.x = "s" | .o.x`,
	`.l[0].price = "s"`, `.new = 1 | .new`, `del(.n) | .n`, `.s | split("")?`, `.m | index(1)`, `.m | join(",")`,
	`.l | length`, `[range(3)]`, `range(1; 3)`, `-(.n // 1)`, `.n * 2`, `.s * 2?`, `.n - 1`,
	`label $out | .m[] | if . > 1 then break $out else . end`, `def f: 5; f`, `def select(f): "mine"; .n | select(true)`,
	`. as $all | $all.n`, `.["n"]`, `."s"`, `.["n","s"]`, `.[("n","s")]`, `.l | .[0:1] | .[0].price`, `.t | .[0:1]`,
	`.o | has("x")`, `.m | flatten`, `.l | transpose?`, `[.m[] | tostring]`, `.m | tojson | fromjson`, `[..]`, `[paths]`,
	`getpath(["o","x"])`, `input?`, `.m | contains([1])`, `.s | ltrimstr("a")`, `.s | explode | implode`, `.n | floor?`,
	`.l | map(select(.price)) | .[0].price`, `.l | map(.inner.inner.price)`, `[.l[] | .extra.a?]`, `.m | last`,
	`[.m[] | . as $x | {x: $x}] | map(.x) | add`, `now | type`, `{} | .a`, `[] | first`, `{a: [1]} + {b: 2} | .a`,
	`[1] + ["x"] | .[]`, `null + 1`, `[.n, .s] | add?`, `.m | map(. > 1) | all`, `(.n, .s) as $v | $v`, `.l | min_by(.price)`,
	`.l | unique_by(.price)`, `.o | map(.)`, `[splits("a")?]`, `.s | sub("a"; "b")`, `.b | tostring`, `"true" | fromjson`,
	`.t // .n // .s`, `[.l[].tags[]?] | group_by(.) | map({key: .[0], count: length})`, `limit(1; .s, .n)`, `isempty(.m[])`,
	`.s | ascii?`, `@base64 | @base64d`, `.l | map(has("price"))`, `.n | [., 1] | max`, `first(empty)`, `error?`,
	`.m | add / length`, `.r | to_entries | map(.value)`, `.m | to_entries | map(.key)`,
	`if (.s | type) == "number" then .s | sqrt else .n end`, `.s | select(type == "number") | floor`, `[.s, .n | numbers | floor]`,
	`(.s | sqrt?) // 1`, `try (.s | keys) catch 0`, `.s | numbers | floor`, `if .s | not | not then .s else .s | tojson end`,
	`(.s | type == "array") and (.s | add)`, `(.s | type == "string") or (.s | add)`, `.o.y | if type == "array" then join(",") else ascii_upcase? end`,
	`(.t // "") | ascii_upcase`, `.l // [] | map(.tags // []) | add`, `.n | tostring | ascii_upcase`, `.r | keys | map(ascii_upcase)`,
	`[.[] | select(type == "array") | length]`, `.l[] as $x | $x.tags // [] | join(",")`, `{a: 1} | to_entries | from_entries`,
	`.s | explode | implode`, `.open | tojson | fromjson`, `now | todate | fromdate`, `(.m | add) // 0 | floor`, `.l | length | sqrt`,
}

// TestShapesAreWide: whatever a program puts out for a state that its schema admits, the lint has foreseen. Were a shape too narrow, the
// lint would warn of what is right.
func TestShapesAreWide(t *testing.T) {
	t.Parallel()
	schema := decode(t, soundSchema)
	compiled, err := jsonschema.Compile(schema)
	if err != nil {
		t.Fatal(err)
	}
	outcomes := 0
	for _, text := range soundStates {
		state := decode(t, text).(map[string]any)
		if vs := compiled.Validate(state); vs != nil {
			t.Fatalf("%s: %v", text, vs)
		}
		for _, src := range soundPrograms {
			succeeded := checkShape(t, src, schema, state)
			if outcomes += succeeded; succeeded > 0 && lint.Fails(parsed(t, src), schema) {
				t.Errorf("%s does not fail for %s, as the lint says", src, text)
			}
		}
	}
	if outcomes < len(soundStates)*len(soundPrograms)*3/4 {
		t.Errorf("only %d evaluations succeeded", outcomes)
	}
}

// checkShape evaluates a program and returns 1 if that succeeded.
func checkShape(t *testing.T, src string, schema any, state map[string]any) int {
	t.Helper()
	q, err := gojq.Parse(src)
	if err != nil {
		return 0
	}
	p, err := expr.Compile("[" + src + "\n]")
	if err != nil {
		return 0
	}
	asked := 0
	v, err := p.EvalAt(state, expr.Env{Now: time.Unix(1e9, 0), Stop: func() bool { asked++; return asked > 100 }})
	if err != nil {
		return 0
	}
	outputs, ok := v.([]any)
	if ok && !lint.Admits(q, schema, outputs) {
		t.Errorf("%s for %s puts out %s, which was not foreseen", src, jsonvalue.Canonical(state), jsonvalue.Canonical(outputs))
	}
	return 1
}

func decode(t testing.TB, text string) any {
	t.Helper()
	v, err := jsonvalue.Decode([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// FuzzShape is TestShapesAreWide for any program, schema and state, and the same for the values that a schema admits.
func FuzzShape(f *testing.F) {
	for i, src := range soundPrograms {
		f.Add(src, soundSchema, soundStates[i%len(soundStates)])
	}
	f.Fuzz(func(t *testing.T, src, schemaText, stateText string) {
		schema, err := jsonvalue.Decode([]byte(schemaText))
		if err != nil {
			return
		}
		decoded, err := jsonvalue.Decode([]byte(stateText))
		state, ok := decoded.(map[string]any)
		if err != nil || !ok {
			return
		}
		compiled, err := jsonschema.Compile(schema)
		if err != nil || compiled.Validate(state) != nil {
			return
		}
		if !lint.AdmitsValue(schema, state) {
			t.Fatalf("%s admits %s, its shape does not", schemaText, stateText)
		}
		checkShape(t, src, schema, state)
	})
}

func parsed(t *testing.T, src string) *gojq.Query {
	t.Helper()
	q, err := gojq.Parse(src)
	if err != nil {
		t.Fatal(err)
	}
	return q
}
