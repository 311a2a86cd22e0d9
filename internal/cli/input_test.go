package cli

import (
	"encoding/json"
	"strings"
	"testing"
)

// TestInput: --input is an object, or its members, whose schema tells a text from a number.
func TestInput(t *testing.T) {
	t.Parallel()
	schema := map[string]any{"properties": map[string]any{
		"name": map[string]any{"type": "string"}, "count": map[string]any{"type": "integer"}, "any": map[string]any{"type": []any{"string", "number"}},
	}}
	for _, c := range []struct {
		arguments []string
		want      string // or the beginning of the error
	}{
		{nil, `{}`},
		{[]string{""}, `{}`},
		{[]string{`{"a":1}`}, `{"a":1}`},
		{[]string{` {"a":"x=y"}`}, `{"a":"x=y"}`},
		{[]string{"-"}, `{"read":true}`},
		{[]string{"name=17"}, `{"name":"17"}`},
		{[]string{"name=true", "count=17", "any=17", "other=null"}, `{"any":17,"count":17,"name":"true","other":null}`},
		{[]string{"count=seventeen"}, `{"count":"seventeen"}`}, // the run's check rejects it
		{[]string{"name="}, `{"name":""}`},
		{[]string{"list=[1,2]", `object={"a":1}`, "text=a=b", "big=12345678901234567890"}, `{"big":"12345678901234567890","list":[1,2],"object":{"a":1},"text":"a=b"}`},
		{[]string{"{", "b=1"}, "--input is given 2 times"},
		{[]string{"a=1", `{"b":1}`}, `--input {"b":1} is not KEY=VALUE`},
		{[]string{"a=1", "a=2"}, `--input names "a" twice`},
		{[]string{"=1"}, "--input =1 is not KEY=VALUE"},
		{[]string{"[1]"}, "--input must be a JSON object"},
		{[]string{"17"}, "--input must be a JSON object"},
		{[]string{"order"}, "invalid JSON in --input"},
	} {
		a := &app{stdin: strings.NewReader(`{"read":true}`)}
		input, err := a.readInput(c.arguments, schema)
		got := ""
		if err != nil {
			got = err.Error()
		} else if text, err := json.Marshal(input); err != nil {
			t.Error(err)
		} else {
			got = string(text)
		}
		if got != c.want && (err == nil || !strings.HasPrefix(got, c.want)) {
			t.Errorf("%q: %s, want %s", c.arguments, got, c.want)
		}
	}
}
