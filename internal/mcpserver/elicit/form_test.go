package elicit_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
	"github.com/workflows-engine/workflows-engine/internal/mcpserver/elicit"
)

type object = map[string]any

const (
	old    = "2025-06-18"
	newest = "2026-07-28"
)

func decode(t testing.TB, text string) object {
	t.Helper()
	v, err := jsonvalue.Decode([]byte(text))
	m, ok := v.(object)
	if err != nil || !ok {
		t.Fatalf("%v in %s", err, text)
	}
	return m
}

// field is a schema of one member.
func field(schema string) string { return `{"type":"object","properties":{"f":` + schema + `}}` }

// TestForms: what hosts are asked to show.
func TestForms(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ revision, schema, want string }{
		{newest, field(`{"type":"string"}`), `{"f":{"type":"string"}}`},
		{newest, field(`{"type":"string","title":"T","description":"D","minLength":1,"maxLength":9,"format":"email","default":"x","examples":["y"]}`),
			`{"f":{"type":"string","title":"T","description":"D","minLength":1,"maxLength":9,"format":"email","default":"x"}}`},
		{old, field(`{"type":"string","default":"x"}`), `{"f":{"type":"string"}}`},
		{newest, field(`{"type":"string","description":"An order.","pattern":"^[A-Z]$","format":"uuid"}`), `{"f":{"type":"string","description":"An order. (matches ^[A-Z]$, uuid)"}}`},
		{newest, field(`{"type":"string","minLength":1e300,"maxLength":2.5}`), `{"f":{"type":"string"}}`},
		{newest, field(`{"type":"integer","minimum":0,"maximum":10,"default":5,"multipleOf":5}`), `{"f":{"type":"integer","description":"(a multiple of 5)","minimum":0,"maximum":10,"default":5}}`},
		{newest, field(`{"type":"integer","default":1.5}`), `{"f":{"type":"integer"}}`},
		{newest, field(`{"type":"number","exclusiveMinimum":0,"exclusiveMaximum":1}`), `{"f":{"type":"number","description":"(more than 0, less than 1)"}}`},
		{old, field(`{"type":"boolean","title":"Approve?","default":false}`), `{"f":{"type":"boolean","title":"Approve?","default":false}}`},
		{newest, field(`{"enum":[true,false]}`), `{"f":{"type":"boolean"}}`},
		{newest, field(`{"enum":["a","b"],"default":"b"}`), `{"f":{"type":"string","enum":["a","b"],"default":"b"}}`},
		{newest, field(`{"type":"integer","enum":[1,2.5],"default":1}`), `{"f":{"type":"string","enum":["1","2.5"],"default":"1"}}`},
		{newest, field(`{"const":true}`), `{"f":{"type":"string","enum":["true"]}}`},
		{newest, field(`{"oneOf":[{"const":"r","title":"Red"},{"const":"g"}]}`), `{"f":{"type":"string","oneOf":[{"const":"r","title":"Red"},{"const":"g","title":"g"}]}}`},
		{old, field(`{"oneOf":[{"const":"r","title":"Red"},{"const":"g"}]}`), `{"f":{"type":"string","enum":["r","g"],"enumNames":["Red","g"]}}`},
		{newest, field(`{"type":"array","items":{"enum":["a","b"]},"minItems":1,"maxItems":2,"uniqueItems":true}`),
			`{"f":{"type":"array","description":"(each once)","minItems":1,"maxItems":2,"items":{"type":"string","enum":["a","b"]}}}`},
		{newest, field(`{"type":"array","items":{"oneOf":[{"const":1,"title":"One"}]}}`), `{"f":{"type":"array","items":{"anyOf":[{"const":"1","title":"One"}]}}}`},
		{newest, field(`{"type":["string","null"]}`), `{"f":{"type":"string"}}`},
		{newest, field(`{"title":"Note","anyOf":[{"type":"string"},{"type":"null"}]}`), `{"f":{"type":"string","title":"Note"}}`},
		{newest, field(`{"type":["string","null"],"enum":["a",null]}`), `{"f":{"type":"string","enum":["a"]}}`},
		{newest, `{"properties":{"b":{"type":"string"},"a":{"type":"string"},"z":{"type":"boolean"}},"required":["z","b"]}`,
			`{"z":{"type":"boolean"},"b":{"type":"string"},"a":{"type":"string"}} z b`},
		{newest, `{"type":"object","properties":{"a":{"type":["number","null"]}},"required":["a"]}`, `{"a":{"type":"number"}}`},
		{newest, `{"type":["object"],"minProperties":1,"properties":{"text":{"type":"string"}},"$schema":"x","title":"T"}`, `{"text":{"type":"string"}} text`},
		{newest, `{"type":"object","additionalProperties":false}`, `{}`},
		// Characters that act on a terminal, or turn what is shown around, are not shown.
		{newest, field(`{"type":"string","title":"\u001b[2Jpay \u202eroot\u202c","description":"zwj \ud83d\udc68\u200d\ud83d\udc69"}`),
			`{"f":{"type":"string","title":"[2Jpay root","description":"zwj 👨` + "\u200d" + `👩"}}`},
	} {
		f, err := elicit.FormOf(decode(t, c.schema), c.revision)
		if err != nil {
			t.Errorf("%s: %v", c.schema, err)
			continue
		}
		properties, required, _ := strings.Cut(c.want, "} ")
		if required != "" {
			properties += "}"
		}
		want := `{"type":"object","properties":` + properties
		if required != "" {
			want += `,"required":["` + strings.ReplaceAll(required, " ", `","`) + `"]`
		}
		if got := string(f.Schema.Append(nil)); got != want+"}" {
			t.Errorf("%s:\ngot  %s\nwant %s", c.schema, got, want+"}")
		}
	}
}

// TestNoForms: schemas that hosts cannot show, or that would hide something from the person.
func TestNoForms(t *testing.T) {
	t.Parallel()
	many := func(n int, text string) string {
		parts := make([]string, n)
		for i := range parts {
			parts[i] = fmt.Sprintf(text, i)
		}
		return strings.Join(parts, ",")
	}
	for _, c := range []struct{ revision, schema, because string }{
		{newest, `{}`, "has no properties"},
		{newest, `{"type":"object"}`, "has no properties"},
		{newest, `{"type":"string"}`, "must be an object"},
		{newest, `{"type":["object","null"],"properties":{"a":{"type":"string"}}}`, "must be an object"},
		{newest, `{"$ref":"#/$defs/a"}`, `"$ref"`},
		{newest, `{"properties":{"a":{"type":"string"}},"oneOf":[{}]}`, `"oneOf"`},
		{newest, `{"properties":{"a":{"type":"string"}},"required":["b"]}`, `does not describe "b"`},
		{newest, field(`{"type":"object"}`), "texts, numbers"},
		{newest, field(`true`), "texts, numbers"},
		{newest, field(`{}`), "texts, numbers"},
		{newest, field(`{"type":"array","items":{"type":"string"}}`), "texts, numbers"},
		{old, field(`{"type":"array","items":{"enum":["a"]}}`), "texts, numbers"},
		{newest, field(`{"type":["string","number"]}`), "texts, numbers"},
		{newest, field(`{"anyOf":[{"type":"string"},{"type":"number"}]}`), `"anyOf"`},
		{newest, field(`{"type":"string","not":{"const":"x"}}`), `"not"`},
		{newest, field(`{"enum":["a",{"b":1}]}`), "texts, numbers"},
		{newest, field(`{"enum":[1,"1"]}`), "look the same"},
		{newest, field(`{"enum":["a\u202e"]}`), "cannot be shown"},
		{newest, field(`{"enum":[null]}`), "no values to choose"},
		{newest, `{"properties":{"a\u202eb":{"type":"string"}}}`, "name of a field"},
		{newest, field(`{"type":"string","minLength":3,"maxLength":2}`), "nothing satisfies"},
		{newest, field(`{"type":"number","minimum":3,"maximum":2}`), "nothing satisfies"},
		{newest, `{"properties":{` + many(33, `"f%d":{"type":"string"}`) + `}}`, "more than 32 fields"},
		{newest, field(`{"enum":[` + many(101, `"v%d"`) + `]}`), "more than 100 values"},
		{newest, `{"properties":{` + many(32, `"f%d":{"type":"string","description":"`+strings.Repeat("long ", 200)+`"}`) + `}}`, "exceeds 16384 bytes"},
	} {
		if f, err := elicit.FormOf(decode(t, c.schema), c.revision); err == nil || !strings.Contains(err.Error(), c.because) {
			t.Errorf("%.100s: %v, %v", c.schema, f, err)
		}
	}
}

// TestPayloads: what becomes of what a person fills in.
func TestPayloads(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ schema, content, want string }{
		{field(`{"type":"boolean"}`), `{"f":true,"extra":1}`, `{"f":true}`},
		{field(`{"type":"integer","enum":[1,2]}`), `{"f":"2"}`, `{"f":2}`},
		{field(`{"enum":["yes",false]}`), `{"f":"false"}`, `{"f":false}`},
		{field(`{"type":"array","items":{"enum":[1,2,"x"]}}`), `{"f":["x","1"]}`, `{"f":["x",1]}`},
		{field(`{"type":"string"}`), `{"f":""}`, `{"f":""}`},
		{field(`{"type":"string","minLength":1}`), `{"f":""}`, `{}`},
		{field(`{"type":"number"}`), `{"f":null}`, `{}`},
		{field(`{"type":"number"}`), `{"f":0.1}`, `{"f":0.1}`},
		{field(`{"type":"number"}`), `{"f":"0.1"}`, `{"f":"0.1"}`}, // for the schema to refuse
		{`{"properties":{"f":{"type":["string","null"],"minLength":1}},"required":["f"]}`, `{"f":""}`, `{"f":null}`},
		{`{"properties":{"f":{"type":["string","null"]}},"required":["f"]}`, `{}`, `{"f":null}`},
		{field(`{"type":["string","null"]}`), `{}`, `{}`},
		{field(`{"enum":["a"]}`), `{"f":"b"}`, "f: the value is not one of the choices"},
		{field(`{"enum":["a"]}`), `{"f":["a"]}`, "f: the value is not one of the choices"},
		{field(`{"type":"array","items":{"enum":["a"]}}`), `{"f":"a"}`, "f: expected an array"},
		{field(`{"type":"integer"}`), `{"f":9007199254740993}`, "f: the number is too large to be exact"},
	} {
		f, err := elicit.FormOf(decode(t, c.schema), newest)
		if err != nil {
			t.Fatalf("%s: %v", c.schema, err)
		}
		var content object // as the SDK reads it
		if err := json.Unmarshal([]byte(c.content), &content); err != nil {
			t.Fatal(err)
		}
		payload, err := f.Payload(content)
		if got := string(jsonvalue.Canonical(payload)); err == nil && got != c.want || err != nil && !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%s with %s: %s, %v; want %s", c.schema, c.content, got, err, c.want)
		}
	}
}

// FuzzForm: whatever the schema, there is no form or one that the protocol allows, in every revision, and a payload of it has members of
// the schema alone.
func FuzzForm(f *testing.F) {
	for _, schema := range []string{
		field(`{"type":"string","minLength":1,"maxLength":3,"format":"date","default":"2026-01-01"}`), field(`{"type":["integer","null"],"minimum":1,"default":2}`),
		field(`{"enum":["a",1,true,null]}`), field(`{"oneOf":[{"const":"a","title":"A"}]}`), field(`{"anyOf":[{"type":"null"},{"type":"array","items":{"enum":["a","b"]}}]}`),
		`{"type":"object","additionalProperties":false}`, `{"type":"object","minProperties":2,"properties":{"a":{"type":"boolean"},"b":{"const":1}},"required":["b"]}`,
	} {
		f.Add([]byte(schema), []byte(`{"f":"a","a":true,"b":"1"}`))
	}
	f.Fuzz(func(t *testing.T, text, filled []byte) {
		v, err := jsonvalue.Decode(text)
		schema, ok := v.(object)
		if err != nil || !ok {
			return
		}
		for _, revision := range []string{old, "2025-11-25", newest} {
			form, err := elicit.FormOf(schema, revision)
			if err != nil {
				continue
			}
			shown := form.Schema.Append(nil)
			var got struct {
				Type       string
				Properties map[string]json.RawMessage
				Required   []string
			}
			if err := json.Unmarshal(shown, &got); err != nil || got.Type != "object" {
				t.Fatalf("%s: %v", shown, err)
			}
			for name, p := range got.Properties {
				if err := allowed(p, revision); err != nil {
					t.Errorf("%s of %s: %v", name, shown, err)
				}
			}
			for _, name := range got.Required {
				if got.Properties[name] == nil {
					t.Errorf("%s demands %q", shown, name)
				}
			}
			content, _ := jsonvalue.Decode(filled)
			m, _ := content.(object)
			payload, err := form.Payload(m)
			if err != nil {
				continue
			}
			properties, _ := schema["properties"].(object)
			for name := range payload {
				if _, ok := properties[name]; !ok {
					t.Errorf("the payload of %s has %q", text, name)
				}
			}
		}
	})
}

// allowed checks a field by the protocol's grammar.
func allowed(text json.RawMessage, revision string) error {
	var kind struct{ Type string }
	if err := json.Unmarshal(text, &kind); err != nil {
		return err
	}
	type choice []struct{ Const, Title string }
	var into any
	switch kind.Type {
	case "string":
		into = &struct {
			Type, Title, Description, Format string
			Default                          *string
			MinLength, MaxLength             *uint32
			Enum, EnumNames                  []string
			OneOf                            choice
		}{}
	case "number", "integer":
		into = &struct {
			Type, Title, Description  string
			Minimum, Maximum, Default *float64
		}{}
	case "boolean":
		into = &struct {
			Type, Title, Description string
			Default                  *bool
		}{}
	case "array":
		if revision == old {
			return fmt.Errorf("a list in %s", revision)
		}
		into = &struct {
			Type, Title, Description string
			MinItems, MaxItems       *uint32
			Items                    struct {
				Type  string
				Enum  []string
				AnyOf choice
			}
		}{}
	default:
		return fmt.Errorf("of type %q", kind.Type)
	}
	d := json.NewDecoder(strings.NewReader(string(text)))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return err
	}
	var members object
	if err := json.Unmarshal(text, &members); err != nil {
		return err
	}
	if revision == old && (members["oneOf"] != nil || members["default"] != nil && kind.Type != "boolean") {
		return fmt.Errorf("what %s does not know: %s", revision, text)
	}
	return nil
}
