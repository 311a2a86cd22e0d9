package form_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/workflows-engine/workflows-engine/internal/form"
	"github.com/workflows-engine/workflows-engine/internal/jsonschema"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

type object = map[string]any

func decode(t testing.TB, text string) object {
	t.Helper()
	v, err := jsonvalue.Decode([]byte(text))
	m, ok := v.(object)
	if err != nil || !ok {
		t.Fatalf("%v in %s", err, text)
	}
	return m
}

// one is a schema of one property.
func one(schema string) string { return `{"type":"object","properties":{"f":` + schema + `}}` }

func of(t testing.TB, schema string) *form.Form {
	t.Helper()
	f, err := form.Of(decode(t, schema))
	if err != nil {
		t.Fatalf("%s: %v", schema, err)
	}
	return f
}

// TestControls: each kind of property has its HTML control, with help for rules that the control cannot express.
func TestControls(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ schema, want string }{
		{`{"type":"string","maxLength":200}`, `text text "" ""`},
		{`{"type":"string","maxLength":201}`, `text textarea "" ""`},
		{`{"type":"string","description":"Say why."}`, `text textarea "" "Say why."`},
		{`{"type":"string","pattern":"^[A-Z]+$"}`, `text text "" "(matches ^[A-Z]+$)"`},
		{`{"type":"string","maxLength":20,"default":"a\nb"}`, `text textarea "a\nb" ""`},
		{`{"type":"string","format":"email"}`, `text email "" ""`},
		{`{"type":"string","format":"uri"}`, `text url "" ""`},
		{`{"type":"string","format":"date","default":"2026-01-31"}`, `text date "2026-01-31" ""`},
		{`{"type":"string","format":"date-time","default":"2026-01-31T12:00:00+01:00"}`, `text datetime-local "2026-01-31T11:00:00" "(in UTC)"`},
		{`{"type":"string","format":"date-time","default":"tomorrow"}`, `text datetime-local "" "(in UTC)"`},
		{`{"type":"string","format":"uuid"}`, `text text "" "(uuid)"`},
		{`{"type":"number","multipleOf":0.5,"default":1.5}`, `number number "1.5" "(a multiple of 0.5)"`},
		{`{"type":"integer","default":1.5}`, `integer number "" ""`},
		{`{"type":"boolean","default":false}`, `boolean radio "false" ""`},
		{`{"enum":["a","b"],"default":"b"}`, `choice radio "b" ""`},
		{`{"oneOf":[{"const":1,"title":"One"},{"const":2},{"const":3},{"const":4},{"const":5},{"const":6}],"default":2}`, `choice select "2" ""`},
		{`{"type":"array","items":{"enum":["a","b"]},"uniqueItems":true}`, `choices checkbox "" "(each once)"`},
		{`{"type":"object","title":"Where","properties":{"street":{"type":"string"}}}`, `group fieldset "" ""`},
	} {
		f := of(t, one(c.schema)).Fields[0]
		if got := fmt.Sprintf("%s %s %q %q", f.Kind, f.Control, f.Value(), f.Help()); got != c.want {
			t.Errorf("%s: got %s, want %s", c.schema, got, c.want)
		}
	}
}

const order = `{"type":"object","required":["ok","to"],"properties":{
	"note":{"type":"string"},
	"to":{"type":"object","required":["city"],"properties":{"zip":{"type":"string","minLength":2},"city":{"type":"string","title":"City"}}},
	"bill":{"type":"object","required":["city"],"properties":{"city":{"type":"string"},"floor":{"type":"integer"}}},
	"ok":{"type":"boolean"}}}`

// TestGroups: fields stand in the order of the schema with ids across groups, and a group's fields are demanded only if the group is.
func TestGroups(t *testing.T) {
	t.Parallel()
	f := of(t, order)
	var got []string
	var list func(fields []form.Field)
	list = func(fields []form.Field) {
		for _, field := range fields {
			got = append(got, fmt.Sprintf("%s:%s:%t", field.ID, field.Name, field.Required))
			list(field.Fields)
		}
	}
	list(f.Fields)
	want := "f0:ok:true f1:to:true f2:city:true f3:zip:false f4:bill:false f5:city:false f6:floor:false f7:note:false"
	if strings.Join(got, " ") != want {
		t.Errorf("got %s", got)
	}
	for pointer, id := range map[string]string{"/to/city": "f2", "/to": "f1", "/to/unknown": "f1", "/note": "f7", "/bill/floor/x": "f6"} {
		if at := f.At(pointer); at == nil || at.ID != id {
			t.Errorf("%s: %v, want %s", pointer, at, id)
		}
	}
	if f.At("/unknown") != nil || f.At("") != nil {
		t.Error("a field for an unknown pointer")
	}
	if f.Fields[1].Fields[0].Label() != "City" || f.Fields[0].Label() != "ok" || f.Decision() != nil {
		t.Errorf("%+v", f)
	}
	if d := of(t, `{"properties":{"ok":{"type":"boolean"},"why":{"type":"string"}},"required":["ok"]}`).Decision(); d == nil || d.Name != "ok" {
		t.Errorf("decision: %v", d)
	}
}

// TestPayloads: values of a submitted HTML form become typed ones; mistakes name the control.
func TestPayloads(t *testing.T) {
	t.Parallel()
	required := func(schema string) string { return `{"properties":{"f":` + schema + `},"required":["f"]}` }
	for _, c := range []struct{ schema, values, want string }{
		{order, `{"f0":["true"],"f2":["Bern"],"f3":[""],"f7":["a\r\nb"],"other":["x"]}`, `{"note":"a\nb","ok":true,"to":{"city":"Bern"}}`},
		{order, `{"f0":["false"],"f2":["Bern"],"f6":["3"]}`, `{"bill":{"floor":3,"city":""},"ok":false,"to":{"city":"Bern"}}`},
		{order, `{}`, `{"to":{"city":""}} f0: This field is required.`},
		{required(`{"type":"string"}`), `{"f0":[""]}`, `{"f":""}`},
		{required(`{"type":"string","minLength":1}`), `{"f0":[""]}`, `{} f0: This field is required.`},
		{one(`{"type":"string","minLength":2,"maxLength":3}`), `{"f0":["ééé"]}`, `{"f":"ééé"}`},
		{one(`{"type":"string","minLength":2,"maxLength":3}`), `{"f0":["éééé"]}`, `{} f0: This text is too short or too long.`},
		{one(`{"type":"string"}`), `{"f0":["  "]}`, `{"f":"  "}`},
		{required(`{"type":["string","null"],"minLength":1}`), `{"f0":[""]}`, `{"f":null}`},
		{required(`{"type":["integer","null"]}`), `{}`, `{"f":null}`},
		{one(`{"type":"string","format":"date-time"}`), `{"f0":["2026-01-31T12:30"]}`, `{"f":"2026-01-31T12:30:00Z"}`},
		{one(`{"type":"string","format":"date-time"}`), `{"f0":["2026-01-31T12:30:00+02:00"]}`, `{"f":"2026-01-31T12:30:00+02:00"}`},
		{one(`{"type":"number"}`), `{"f0":[" -1.5e3 "]}`, `{"f":-1500}`},
		{required(`{"type":"boolean"}`), `{"f0":["true","false"]}`, `{} f0: This field has several values.`},
		{one(`{"type":"number"}`), `{"f0":["1,5"]}`, `{} f0: This is not a number. Use digits, with a point for decimals.`},
		{one(`{"type":"number"}`), `{"f0":["0x1"]}`, `{} f0: This is not a number. Use digits, with a point for decimals.`},
		{one(`{"type":"number"}`), `{"f0":["1e999"]}`, `{} f0: This is not a number. Use digits, with a point for decimals.`},
		{one(`{"type":"integer"}`), `{"f0":["1.5"]}`, `{} f0: This is not a whole number.`},
		{one(`{"type":"integer"}`), `{"f0":["9007199254740993"]}`, `{} f0: A number of this size cannot be kept exactly.`},
		{one(`{"type":"integer","minimum":2,"maximum":3}`), `{"f0":["1"]}`, `{} f0: This must be at least 2.`},
		{one(`{"type":"integer","minimum":2,"maximum":3}`), `{"f0":["4"]}`, `{} f0: This must be at most 3.`},
		{one(`{"enum":[1,"b",false]}`), `{"f0":["false"]}`, `{"f":false}`},
		{one(`{"enum":[1,"b",false]}`), `{"f0":["c"]}`, `{} f0: Choose one of the values.`},
		{one(`{"type":"array","items":{"enum":[1,"b"]}}`), `{"f0":["b","1"]}`, `{"f":["b",1]}`},
		{one(`{"type":"array","items":{"enum":[1,"b"]}}`), `{}`, `{}`},
		{required(`{"type":"array","items":{"enum":[1,"b"]}}`), `{}`, `{"f":[]}`},
		{required(`{"type":"array","items":{"enum":[1,"b"]},"minItems":1}`), `{}`, `{} f0: These are too few or too many values.`},
	} {
		var values map[string][]string
		if err := jsonvalue.IntoPlain(decode(t, c.values), &values); err != nil {
			t.Fatal(err)
		}
		payload, mistakes := of(t, c.schema).Payload(values)
		got := string(jsonvalue.Canonical(payload))
		for _, m := range mistakes {
			got += " " + m.Field + ": " + m.Text
		}
		want, _ := jsonvalue.Decode([]byte(c.want))
		if want != nil {
			c.want = string(jsonvalue.Canonical(want))
		}
		if got != c.want {
			t.Errorf("%s with %s:\ngot  %s\nwant %s", c.schema, c.values, got, c.want)
		}
	}
}

// TestExamples: the text area for JSON begins with a value that the schema accepts.
func TestExamples(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ schema, want string }{
		{`{}`, `{}`},
		{order, `{"ok":true,"to":{"city":"…"}}`},
		{one(`{"type":"string"}`), `{"f":"…"}`},
		{`{"type":"object","required":["l"],"properties":{"l":{"type":"array","minItems":2,"items":{"type":"object","required":["n"],"properties":{"n":{"exclusiveMinimum":1,"type":"number"}}}}}}`,
			`{"l":[{"n":2},{"n":2}]}`},
		{`{"oneOf":[{"type":"object","required":["d"],"properties":{"d":{"type":"string","format":"date"}}}]}`, `{"d":"2026-01-31"}`},
		{`{"type":["integer","null"],"minimum":4}`, `4`},
		{`{"type":"string","minLength":3}`, `"………"`},
	} {
		schema := decode(t, c.schema)
		got := form.Example(schema)
		if text := string(jsonvalue.Canonical(got)); text != c.want {
			t.Errorf("%s: got %s, want %s", c.schema, text, c.want)
		}
		compiled, err := jsonschema.Compile(schema)
		if err != nil {
			t.Fatal(err)
		}
		if violations := compiled.Validate(got); len(violations) > 0 {
			t.Errorf("%s rejects %v: %v", c.schema, got, violations)
		}
	}
	recursive := object{"type": "array", "minItems": 3.0}
	recursive["items"] = recursive
	if form.Example(recursive) == nil {
		t.Error("no example")
	}
}

// FuzzForm: each schema has a form or an error, and a payload has fields of the schema alone.
func FuzzForm(f *testing.F) {
	for _, schema := range []string{order, one(`{"type":["integer","null"],"minimum":1,"default":2}`), one(`{"oneOf":[{"const":"a","title":"A"}]}`),
		one(`{"type":"array","items":{"enum":["a",1]},"minItems":1}`), one(`{"type":"string","format":"date-time","default":"2026-01-31T12:00:00Z"}`)} {
		f.Add([]byte(schema), "true", "a")
	}
	f.Fuzz(func(t *testing.T, text []byte, first, second string) {
		v, err := jsonvalue.Decode(text)
		schema, ok := v.(object)
		if err != nil || !ok {
			return
		}
		form.Example(schema)
		made, err := form.Of(schema)
		if err != nil {
			return
		}
		ids := map[string]bool{}
		values := map[string][]string{}
		var check func(fields []form.Field)
		check = func(fields []form.Field) {
			for i := range fields {
				one := &fields[i]
				if ids[one.ID] || one.Control == "" || one.Label() == "" || one.Kind == form.Group && len(one.Fields) == 0 {
					t.Errorf("%s: %+v", text, one)
				}
				ids[one.ID] = true
				values[one.ID] = []string{first, second}
				one.Value()
				one.Help()
				check(one.Fields)
			}
		}
		check(made.Fields)
		properties, _ := schema["properties"].(object)
		payload, mistakes := made.Payload(values)
		for name := range payload {
			if _, ok := properties[name]; !ok {
				t.Errorf("the payload of %s has %q", text, name)
			}
		}
		for _, m := range mistakes {
			if !ids[m.Field] {
				t.Errorf("mistake in %q", m.Field)
			}
		}
	})
}
