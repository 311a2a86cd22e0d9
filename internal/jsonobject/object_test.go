package jsonobject_test

import (
	"fmt"
	"reflect"
	"slices"
	"testing"

	"github.com/workflows-engine/workflows-engine/internal/jsonobject"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

func parse(t *testing.T, report *jsonobject.Report, text string) *jsonobject.Object {
	t.Helper()
	node, faults := jsonvalue.Parse([]byte(text), 0, 0)
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	return report.Node(node)
}

func descriptions(report *jsonobject.Report) (texts []string) {
	for _, f := range report.Findings {
		texts = append(texts, jsonobject.Describe("config", f))
	}
	return texts
}

// Every reader: what it returns for a good value, and what it reports of a bad one.
func TestReaders(t *testing.T) {
	t.Parallel()
	number := func(n any, ok bool) any { return fmt.Sprint(n, ok) }
	for _, tt := range []struct {
		value string // of member "a"; "" for none
		read  func(jsonobject.Value) any
		want  any
		says  []string
	}{
		{`"x"`, func(v jsonobject.Value) any { return v.Text() }, "x", nil},
		{``, func(v jsonobject.Value) any { return v.Text() }, "", nil},
		{`1`, func(v jsonobject.Value) any { return v.Text() }, "", []string{"config.a: expected string, found number"}},
		{`null`, func(v jsonobject.Value) any { return v.Text() }, "", []string{"config.a: expected string, found null"}},
		{`""`, func(v jsonobject.Value) any { return v.NonEmpty() }, "", []string{"config.a: must not be empty"}},
		{`" "`, func(v jsonobject.Value) any { return v.NonEmpty() }, " ", nil},
		{`" "`, func(v jsonobject.Value) any { return v.NonBlank() }, " ", []string{"config.a: must not be blank"}},
		{``, func(v jsonobject.Value) any { return v.NonBlank() }, "", nil},
		{`[]`, func(v jsonobject.Value) any { return v.NonBlank() }, "", []string{"config.a: expected string, found array"}},
		{`"red"`, func(v jsonobject.Value) any { return v.Choice("red", "green", "blue") }, "red", nil},
		{`"gren"`, func(v jsonobject.Value) any { return v.Choice("red", "green", "blue") }, "",
			[]string{`config.a: expected red, green or blue, found "gren"; did you mean "green"?`}},
		{`true`, func(v jsonobject.Value) any { return v.Choice("red") }, "", []string{"config.a: expected string, found boolean"}},
		{``, func(v jsonobject.Value) any { return v.Choice("red") }, "", nil},
		{`true`, func(v jsonobject.Value) any { return v.Bool() }, true, nil},
		{`"true"`, func(v jsonobject.Value) any { return v.Bool() }, false, []string{"config.a: expected boolean, found string"}},
		{`0.5`, func(v jsonobject.Value) any { return number(v.Number(0, 1)) }, "0.5 true", nil},
		{`2`, func(v jsonobject.Value) any { return number(v.Number(0, 1e21)) }, "2 true", nil},
		{`-1`, func(v jsonobject.Value) any { return number(v.Number(0, 1e21)) }, "0 false", []string{"config.a: expected a number from 0 to 1e+21, found -1"}},
		{`3`, func(v jsonobject.Value) any { return number(v.Whole(1, 3)) }, "3 true", nil},
		{`1.5`, func(v jsonobject.Value) any { return number(v.Whole(1, 3)) }, "0 false", []string{"config.a: expected a whole number from 1 to 3, found 1.5"}},
		{`"1"`, func(v jsonobject.Value) any { return number(v.Whole(1, 3)) }, "0 false", []string{"config.a: expected number, found string"}},
		{``, func(v jsonobject.Value) any { return number(v.Whole(1, 3)) }, "0 false", nil},
		{`["x",1,"y"]`, func(v jsonobject.Value) any { return v.Texts() }, []string{"x", "", "y"}, []string{"config.a.1: expected string, found number"}},
		{`[]`, func(v jsonobject.Value) any { return v.Texts() }, []string{}, nil},
		{``, func(v jsonobject.Value) any { return v.Texts() }, []string(nil), nil},
		{`{"x":"y"}`, func(v jsonobject.Value) any { return v.TextMap() }, map[string]string{"x": "y"}, nil},
		{`{"x/y":1}`, func(v jsonobject.Value) any { return v.TextMap() }, map[string]string{"x/y": ""}, []string{"config.a.x/y: expected string, found number"}},
		{`5`, func(v jsonobject.Value) any { return v.TextMap() }, map[string]string(nil), []string{"config.a: expected object, found number"}},
		{`{}`, func(v jsonobject.Value) any { return v.Map() }, map[string]any{}, nil},
		{`[]`, func(v jsonobject.Value) any { return v.Object() == nil }, true, []string{"config.a: expected object, found array"}},
	} {
		text := `{"a":` + tt.value + `}`
		if tt.value == "" {
			text = `{}`
		}
		plain, err := jsonvalue.Decode([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		var decoded, parsed jsonobject.Report
		for report, o := range map[*jsonobject.Report]*jsonobject.Object{
			&decoded: decoded.Object(plain.(map[string]any)), &parsed: parse(t, &parsed, text),
		} {
			if got := tt.read(o.Get("a")); !reflect.DeepEqual(got, tt.want) {
				t.Errorf("%s: got %v, want %v", text, got, tt.want)
			}
			if got := descriptions(report); !slices.Equal(got, tt.says) {
				t.Errorf("%s: says %q, want %q", text, got, tt.says)
			}
		}
	}
}

// Members that nobody asked for are unknown, each once; those that must be there are missing.
func TestUnknownAndMissingMembers(t *testing.T) {
	t.Parallel()
	report := jsonobject.Report{}
	o := parse(t, &report, "{\"nmae\":1,\n \"x\":{\"colour\":1}, \"$schema\":\"s\"}")
	o.Known("$schema")
	o.Require("name")
	inner := o.Get("x").Object()
	inner.Require("size")
	inner.Close()
	o.Close()
	o.Close()
	want := []string{
		`config: missing field "name"`,
		`config.x: missing field "size"`,
		`config.x: unknown field "colour"; known fields: size`,
		`config: unknown field "nmae"; did you mean "name"?`,
	}
	if got := descriptions(&report); !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
	var places []string
	for _, f := range report.Findings {
		places = append(places, fmt.Sprintf("%d:%d %s %s %v", f.At.Line, f.At.Column, f.Keyword, f.At.Pointer, jsonobject.Path(f)))
	}
	if want := []string{"1:1 required  [name]", "2:6 required /x [x size]", "2:7 additionalProperties /x/colour [x colour]",
		"1:2 additionalProperties /nmae [nmae]"}; !slices.Equal(places, want) {
		t.Errorf("got %q", places)
	}
}

// What is absent is read as zero values without further findings.
func TestAbsentObject(t *testing.T) {
	t.Parallel()
	report := jsonobject.Report{NullIsAbsent: true}
	o := report.Object(map[string]any{"n": nil}).Get("n").Object()
	if o != nil || o.Get("a").Present() || o.Require("b").Text() != "" || o.Get("c").Object() != nil || len(o.Close()) > 0 {
		t.Error("an absent object has members")
	}
	o.Get("a").Fail("profile", "nobody reads this")
	if len(report.Findings) > 0 {
		t.Errorf("findings %v", report.Findings)
	}
}

func TestLimit(t *testing.T) {
	t.Parallel()
	report := jsonobject.Report{Limit: 2}
	o := report.Object(map[string]any{"a": 1.0, "b": 1.0, "c": 1.0})
	o.Require("d")
	if unknown := o.Close(); len(unknown) != 1 || len(report.Findings) != 2 || report.Omitted != 2 {
		t.Errorf("%d unknown, %d findings, %d omitted", len(unknown), len(report.Findings), report.Omitted)
	}
	o.Fail("profile", "one more")
	if report.Omitted != 3 {
		t.Errorf("%d omitted", report.Omitted)
	}
}
