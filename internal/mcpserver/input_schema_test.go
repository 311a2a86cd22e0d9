package mcpserver_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/workflows-engine/workflows-engine/internal/jsonschema"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
	"github.com/workflows-engine/workflows-engine/internal/mcpserver"
)

func TestInputSchemaOfATool(t *testing.T) {
	t.Parallel()
	many := `{"type":"object","properties":{`
	for i := range 20 {
		many += fmt.Sprintf(`%q:{"type":"array","description":%q,"items":{"type":"string","description":"%s"}},`, fmt.Sprint("m", i), strings.Repeat("x", 90), strings.Repeat("y", 90))
	}
	many = strings.TrimSuffix(many, ",") + `},"required":["m1"]}`
	tooMany := `{"type":"object","properties":{` + strings.TrimSuffix(strings.Repeat(`"m%d":{"type":"string"},`, 200), ",") + `}}`
	n := 0
	for strings.Contains(tooMany, "%d") {
		tooMany = strings.Replace(tooMany, "%d", fmt.Sprint(n), 1)
		n++
	}
	for name, tt := range map[string]struct {
		schema, shown string // shown "" is the schema itself
		whole         bool
	}{
		"none":                  {`null`, `{"type":"object"}`, true},
		"as it is":              {`{"type":"object","properties":{"n":{"$ref":"#/$defs/n"}},"$defs":{"n":{"type":"integer"}},"additionalProperties":false}`, "", true},
		"without a type":        {`{"properties":{"n":{}},"required":["n"]}`, `{"type":"object","properties":{"n":{}},"required":["n"]}`, true},
		"of several types":      {`{"type":["object","null"]}`, `{"type":"object"}`, true},
		"of another type":       {`{"type":"string"}`, `{"type":"object"}`, false},
		"of a choice":           {`{"type":"object","oneOf":[{"required":["a"]},{"required":["b"]}],"unevaluatedProperties":false,"maxProperties":3}`, `{"type":"object","maxProperties":3}`, false},
		"a reference":           {`{"$ref":"#/$defs/x","$defs":{"x":{"type":"object"}}}`, `{"type":"object","$defs":{"x":{"type":"object"}}}`, false},
		"names no model writes": {`{"type":"object","properties":{"a b":{"type":"string"}},"required":["a b"]}`, `{"type":"object"}`, false},
		"for machines":          {`{"$schema":"https://json-schema.org/draft/2020-12/schema","$comment":"c","type":"object"}`, `{"type":"object"}`, true},
		"too large for a model": {tooMany, `{"type":"object"}`, false},
	} {
		v, err := jsonvalue.Decode([]byte(tt.schema))
		if err != nil {
			t.Fatal(name, err)
		}
		schema, _ := v.(map[string]any)
		shown, whole := mcpserver.InputSchema(schema, 2048)
		want := tt.shown
		if want == "" {
			want = tt.schema
		}
		if got := string(jsonvalue.Canonical(shown)); compact(t, []byte(got)) != compact(t, []byte(want)) || whole != tt.whole {
			t.Errorf("%s: %s, whole %v", name, got, whole)
		}
	}
	v, _ := jsonvalue.Decode([]byte(many))
	shown, whole := mcpserver.InputSchema(v.(map[string]any), 4096)
	properties := shown["properties"].(map[string]any)
	if whole || len(properties) != 20 || properties["m7"].(map[string]any)["type"] != "array" || fmt.Sprint(shown["required"]) != "[m1]" {
		t.Errorf("an outline is %v", shown)
	}
}

// FuzzInputSchema: whatever the schema, what is shown of it is one for objects, keeps to its size and takes every input that the
// schema takes.
func FuzzInputSchema(f *testing.F) {
	for _, schema := range []string{
		`{"type":"object","properties":{"n":{"type":"integer","enum":[1,2]}},"required":["n"]}`,
		`{"type":["object","string"],"anyOf":[{"properties":{"n":true}}],"unevaluatedProperties":false}`,
		`{"$ref":"#/$defs/a","$defs":{"a":{"type":"object"}}}`, `{"properties":{"n":false,"a b":{}},"if":{"required":["n"]},"then":false}`,
		`{"const":{"n":1}}`, `{"not":{}}`, `{"type":"object","properties":{"n":{"type":"array","items":{"type":"string"},"description":"long"}},"dependentRequired":{"n":["m"]}}`,
	} {
		for _, input := range []string{`{}`, `{"n":1}`, `{"n":["a"],"m":0}`} {
			f.Add(schema, input, 64)
			f.Add(schema, input, 2048)
		}
	}
	f.Fuzz(func(t *testing.T, schemaText, inputText string, limit int) {
		v, err := jsonvalue.Decode([]byte(schemaText))
		schema, isObject := v.(map[string]any)
		if err != nil || !isObject {
			return
		}
		original, err := jsonschema.Compile(schema)
		if err != nil {
			return
		}
		limit = max(limit, 64)
		shown, _ := mcpserver.InputSchema(schema, limit)
		if shown["type"] != "object" || jsonvalue.Size(shown, 0) > limit {
			t.Fatalf("shown as %v", shown)
		}
		compiled, err := jsonschema.Compile(shown)
		if err != nil {
			t.Fatalf("shown as %v: %v", shown, err)
		}
		input, err := jsonvalue.Decode([]byte(inputText))
		if _, isObject := input.(map[string]any); err != nil || !isObject || len(original.Validate(input)) > 0 {
			return
		}
		if vs := compiled.Validate(input); len(vs) > 0 {
			t.Errorf("%s takes %s, and what is shown, %v, does not: %s", schemaText, inputText, shown, jsonschema.Text(vs))
		}
	})
}
