package cli

import (
	"strings"
	"testing"

	"github.com/workflows-engine/workflows-engine/internal/form"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

var answerSchema = map[string]any{
	"type": "object",
	"properties": map[string]any{
		"approve": map[string]any{"type": "boolean"},
		"name":    map[string]any{"type": "string"},
		"grade":   map[string]any{"enum": []any{"1", "2"}},
		"count":   map[string]any{"type": "integer", "minimum": 3.0},
	},
	"required": []any{"approve", "name"},
}

func TestParsePayload(t *testing.T) {
	t.Parallel()
	tests := []struct{ line, want, refused string }{
		{line: "", want: `{}`},
		{line: "  \n", want: `{}`},
		{line: `{"approve":true}`, want: `{"approve":true}`},
		{line: "approve=true name=true", want: `{"approve":true,"name":"true"}`},
		{line: `name="two words" approve=false`, want: `{"approve":false,"name":"two words"}`},
		{line: "name='it is \"so\"'", want: `{"name":"it is \"so\""}`},
		{line: "grade=2 count=7", want: `{"count":7,"grade":"2"}`},
		{line: "other=[1,2] text=hello", want: `{"other":[1,2],"text":"hello"}`},
		{line: "name=a=b", want: `{"name":"a=b"}`},
		{line: "name=", want: `{"name":""}`},
		{line: "approve=yes name=yes", want: `{"approve":true,"name":"yes"}`},
		{line: "approve=N name=n", want: `{"approve":false,"name":"n"}`},
		{line: "yes", refused: `"yes" must be JSON or key=value`}, // more than one member is asked for
		{line: "approve", refused: `"approve" must be JSON or key=value`},
		{line: "=x", refused: "must be JSON or key=value"},
		{line: `name="open`, refused: "is not closed"},
		{line: `{"approve":`, refused: "line 1"},
		{line: `{"a":1,"a":2}`, refused: "line 1"},
	}
	for _, tt := range tests {
		got, err := parsePayload(tt.line, answerSchema)
		if tt.refused != "" {
			if err == nil || !strings.Contains(err.Error(), tt.refused) {
				t.Errorf("%q: got %v, %v; want a refusal with %q", tt.line, got, err, tt.refused)
			}
			continue
		}
		if text := string(jsonvalue.Canonical(got)); err != nil || text != tt.want {
			t.Errorf("%q: got %s, %v; want %s", tt.line, text, err, tt.want)
		}
	}
}

// TestALoneYes answers the one boolean that is asked for.
func TestALoneYes(t *testing.T) {
	t.Parallel()
	boolean, text := map[string]any{"type": "boolean"}, map[string]any{"type": "string"}
	one := map[string]any{"properties": map[string]any{"accepted": boolean, "remark": text}, "required": []any{"accepted"}}
	only := map[string]any{"properties": map[string]any{"accepted": boolean}}
	for _, schema := range []map[string]any{one, only} {
		for line, want := range map[string]string{"yes": "true", " Y\n": "true", "no": "false", "n": "false", "accepted=yes": "true", "accepted=no": "false"} {
			got, err := parsePayload(line, schema)
			if text := string(jsonvalue.Canonical(got)); err != nil || text != `{"accepted":`+want+`}` {
				t.Errorf("%q: %s, %v", line, text, err)
			}
		}
	}
	if _, err := parsePayload("maybe", only); err == nil || err.Error() != `"maybe" must be yes, no, JSON or key=value` {
		t.Errorf("another word: %v", err)
	}
	for _, schema := range []map[string]any{nil, {"properties": map[string]any{"remark": text}, "required": []any{"remark"}}} {
		if got, err := parsePayload("yes", schema); err == nil {
			t.Errorf("taken as %v", got)
		}
	}
}

// What is typed at a prompt may be anything; it must give an object or an error.
func FuzzParsePayload(f *testing.F) {
	for _, seed := range []string{"", "a=1", `{"a":1}`, `a="b c`, "{", "=", "a='\"'", "a=\x00"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, line string) {
		payload, err := parsePayload(line, answerSchema)
		if (payload == nil) == (err == nil) {
			t.Errorf("payload %v, error %v", payload, err)
		}
	})
}

func TestExampleObject(t *testing.T) {
	t.Parallel()
	tests := []struct {
		schema map[string]any
		want   string
	}{
		{nil, `{}`},
		{answerSchema, `{"approve":true,"name":"…"}`},
		{map[string]any{"properties": map[string]any{"b": map[string]any{"const": 7.0}, "c": true}}, `{"b":7}`},
		{map[string]any{"required": []any{"x"}}, `{"x":"…"}`},
		{map[string]any{
			"required": []any{"o", "l", "n", "d"},
			"properties": map[string]any{
				"o": answerSchema, "l": map[string]any{"type": "array"}, "n": map[string]any{"type": "number", "minimum": 2.0},
				"d": map[string]any{"default": nil},
			},
		}, `{"d":null,"l":[],"n":2,"o":{"approve":true,"name":"…"}}`},
		{map[string]any{
			"properties": map[string]any{"arguments": map[string]any{"type": "object"}, "decision": map[string]any{"enum": []any{"approve", "deny"}}},
			"anyOf":      []any{map[string]any{"required": []any{"decision"}}, map[string]any{"required": []any{"calls"}}},
		}, `{"decision":"approve"}`},
	}
	for _, tt := range tests {
		if got := string(jsonvalue.Canonical(form.Example(tt.schema))); got != tt.want {
			t.Errorf("got %s, want %s", got, tt.want)
		}
	}
}
