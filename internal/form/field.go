package form

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// ErrNotFlat is the error for a property that is not text, a number, a boolean or a choice.
var ErrNotFlat = errors.New("a form has texts, numbers, yes or no, and choices alone")

// longText is the length in characters above which text gets a text area.
const longText = 200

// fieldOf makes a field of the schema of a property.
func fieldOf(schema any, groups bool) (Field, error) {
	s, ok := schema.(map[string]any)
	if !ok {
		return Field{}, ErrNotFlat // true takes anything, false nothing
	}
	s, orNull, err := withoutNull(s)
	if err != nil {
		return Field{}, err
	}
	for _, keyword := range notShown {
		if _, ok := s[keyword]; ok && keyword != "enum" && keyword != "const" && keyword != "oneOf" {
			return Field{}, fmt.Errorf("a form cannot show %q", keyword)
		}
	}
	if list, ok := s["enum"].([]any); ok && slices.Contains(list, nil) {
		s = with(s, "enum", slices.DeleteFunc(slices.Clone(list), func(v any) bool { return v == nil }))
		orNull = true
	}
	f := Field{OrNull: orNull, Least: -1, Most: -1}
	f.describe(s)
	kind, _ := s["type"].(string)
	options, err := optionsOf(s)
	switch {
	case err != nil:
		return Field{}, err
	case kind == "array":
		err = f.several(s)
	case isBoolean(options) || options == nil && kind == "boolean":
		f.Kind, f.Control, f.Options = Boolean, "radio", []Option{{Label: "true", Title: "Yes", Value: true}, {Label: "false", Title: "No", Value: false}}
		if v, isBoolean := s["default"].(bool); isBoolean {
			f.Default = v
		}
	case options != nil:
		f.choice(s, options)
	case kind == "string":
		err = f.text(s)
	case kind == "number" || kind == "integer":
		err = f.number(s, Kind(kind))
	case kind == "object" && groups && s["properties"] != nil:
		f.Kind, f.Control = Group, "fieldset"
		if f.Fields, err = fieldsOf(s, false); err == nil && len(f.Fields) == 0 {
			err = ErrNotFlat
		}
	default:
		err = ErrNotFlat
	}
	return f, err
}

// withoutNull takes null out of the alternatives of a schema: [text, null], or anyOf with one that is null alone.
func withoutNull(s map[string]any) (rest map[string]any, orNull bool, err error) {
	if list, ok := s["type"].([]any); ok {
		kinds := slices.DeleteFunc(slices.Clone(list), func(v any) bool { return v == "null" })
		if len(kinds) != 1 {
			return nil, false, ErrNotFlat
		}
		s = with(s, "type", kinds[0])
		orNull = len(kinds) < len(list)
	}
	list, ok := s["anyOf"].([]any)
	if !ok {
		return s, orNull, nil
	}
	others := slices.DeleteFunc(slices.Clone(list), func(v any) bool {
		one, _ := v.(map[string]any)
		return onlyType(one["type"], "null")
	})
	if len(others) != 1 || len(list) != 2 || s["type"] != nil {
		return nil, false, fmt.Errorf("a form cannot show %q", "anyOf")
	}
	inner, ok := others[0].(map[string]any)
	if !ok {
		return nil, false, ErrNotFlat
	}
	for _, annotation := range []string{"title", "description", "default"} {
		if v, ok := s[annotation]; ok && inner[annotation] == nil {
			inner = with(inner, annotation, v)
		}
	}
	rest, _, err = withoutNull(inner)
	return rest, true, err
}

func with(s map[string]any, name string, v any) map[string]any {
	changed := make(map[string]any, len(s)+1)
	for k, old := range s {
		changed[k] = old
	}
	changed[name] = v
	return changed
}

func (f *Field) describe(s map[string]any) {
	title, _ := s["title"].(string)
	description, _ := s["description"].(string)
	f.Title, f.Description = Clean(title, MaxLabel), Clean(description, MaxHelp)
}

// controls are the input types of the formats that forms know.
var controls = map[string]string{"email": "email", "uri": "url", "date": "date", "date-time": "datetime-local"}

func (f *Field) text(s map[string]any) error {
	f.Kind, f.Control = Text, "text"
	pattern, hasPattern := s["pattern"].(string)
	if hasPattern {
		f.Hints = append(f.Hints, "matches "+Clean(pattern, MaxLabel))
		if Clean(pattern, MaxLabel) == pattern {
			f.Pattern = pattern
		}
	}
	format, _ := s["format"].(string)
	if control, known := controls[format]; known {
		f.Format, f.Control = format, control
	} else if format != "" {
		f.Hints = append(f.Hints, Clean(format, MaxLabel))
	}
	if err := f.bound(s, "minLength", "maxLength"); err != nil {
		return err
	}
	f.Blank = f.Least <= 0 && f.Format == "" && len(f.Hints) == 0
	text, hasDefault := s["default"].(string)
	if hasDefault && len(text) <= MaxHelp && (f.Most < 0 || len(text) <= f.Most) {
		f.Default = text
	}
	if format == "" && !hasPattern && (f.Most < 0 || f.Most > longText) || f.Format == "" && strings.Contains(text, "\n") {
		f.Control = "textarea"
	}
	return nil
}

// bound reads two counts.
func (f *Field) bound(s map[string]any, low, high string) error {
	for name, into := range map[string]*int{low: &f.Least, high: &f.Most} {
		if n, ok := s[name].(float64); ok && n >= 0 && n <= math.MaxInt32 && n == math.Trunc(n) {
			*into = int(n)
		}
	}
	if f.Most >= 0 && f.Least > f.Most {
		return fmt.Errorf("nothing satisfies %s and %s", low, high)
	}
	return nil
}

func (f *Field) number(s map[string]any, kind Kind) error {
	f.Kind, f.Control = kind, "number"
	for _, d := range []struct{ keyword, words string }{
		{"exclusiveMinimum", "more than %s"}, {"exclusiveMaximum", "less than %s"}, {"multipleOf", "a multiple of %s"},
	} {
		if n, ok := s[d.keyword].(float64); ok {
			f.Hints = append(f.Hints, fmt.Sprintf(d.words, jsonvalue.Canonical(n)))
		}
	}
	if n, ok := s["minimum"].(float64); ok {
		f.Min = &n
	}
	if n, ok := s["maximum"].(float64); ok {
		f.Max = &n
	}
	if f.Min != nil && f.Max != nil && *f.Max < *f.Min {
		return errors.New("nothing satisfies minimum and maximum")
	}
	if n, ok := s["default"].(float64); ok && (kind == Number || n == math.Trunc(n)) {
		f.Default = n
	}
	return nil
}

func (f *Field) choice(s map[string]any, options []Option) {
	f.Kind, f.Options, f.Control = Choice, options, "select"
	if len(options) <= fewOptions {
		f.Control = "radio"
	}
	for _, o := range options {
		if v, ok := s["default"]; ok && jsonvalue.Equal(v, o.Value) {
			f.Default = o.Label
		}
	}
}

// several is a field with several choices.
func (f *Field) several(s map[string]any) error {
	items, _ := s["items"].(map[string]any)
	options, err := optionsOf(items)
	switch {
	case err != nil:
		return err
	case options == nil || s["prefixItems"] != nil || s["contains"] != nil:
		return ErrNotFlat
	}
	f.Kind, f.Options, f.Control = Choices, options, "checkbox"
	if s["uniqueItems"] == true {
		f.Hints = append(f.Hints, "each once")
	}
	return f.bound(s, "minItems", "maxItems")
}

// Example returns a small value that a schema probably accepts, to begin a JSON text with.
func Example(schema map[string]any) any { return example(schema, 0) }

// maxDepth bounds how deep an example is nested.
const maxDepth = 8

func example(schema map[string]any, depth int) any {
	for _, keyword := range []string{"const", "default"} {
		if v, ok := schema[keyword]; ok {
			return v
		}
	}
	for _, keyword := range []string{"enum", "examples"} {
		if list, ok := schema[keyword].([]any); ok && len(list) > 0 {
			return list[0]
		}
	}
	kind := schema["type"]
	if list, ok := kind.([]any); ok && len(list) > 0 {
		kind = list[0]
	}
	if kind == nil && (schema["properties"] != nil || schema["required"] != nil || depth == 0 && len(schema) == 0) {
		kind = "object"
	}
	switch kind {
	case "boolean":
		return true
	case "number", "integer":
		if least, ok := schema["minimum"]; ok {
			return least
		}
		if more, ok := schema["exclusiveMinimum"].(float64); ok {
			return math.Floor(more) + 1
		}
		return 0.0
	case "array":
		items, _ := schema["items"].(map[string]any)
		least, _ := schema["minItems"].(float64)
		list := []any{}
		for range int(min(max(least, 0), 3)) {
			if depth < maxDepth {
				list = append(list, example(items, depth+1))
			}
		}
		return list
	case "object":
		return exampleObject(schema, depth)
	case "null":
		return nil
	}
	for _, keyword := range []string{"oneOf", "anyOf"} {
		if list, ok := schema[keyword].([]any); ok && len(list) > 0 && depth < maxDepth {
			first, _ := list[0].(map[string]any)
			return example(first, depth+1)
		}
	}
	return exampleText(schema)
}

// exampleObject has the required properties, or without any the first one.
func exampleObject(schema map[string]any, depth int) map[string]any {
	v := map[string]any{}
	properties, _ := schema["properties"].(map[string]any)
	required, _ := schema["required"].([]any)
	if alternatives, ok := schema["anyOf"].([]any); ok && len(alternatives) > 0 && len(required) == 0 {
		first, _ := alternatives[0].(map[string]any)
		required, _ = first["required"].([]any)
	}
	if len(required) == 0 && depth == 0 && len(properties) > 0 {
		required = []any{jsonvalue.Keys(properties)[0]}
	}
	for _, r := range required {
		if name, ok := r.(string); ok && depth < maxDepth {
			property, _ := properties[name].(map[string]any)
			v[name] = example(property, depth+1)
		}
	}
	return v
}

// formatExamples are values of formats.
var formatExamples = map[string]string{
	"date": "2026-01-31", "date-time": "2026-01-31T12:00:00Z", "time": "12:00:00Z", "email": "name@example.com", "uri": "https://example.com/",
	"uuid": "00000000-0000-4000-8000-000000000000",
}

func exampleText(schema map[string]any) string {
	format, _ := schema["format"].(string)
	if text, ok := formatExamples[format]; ok {
		return text
	}
	least, _ := schema["minLength"].(float64)
	return strings.Repeat("…", int(max(1, min(least, longText))))
}

// fits reports whether the length of text is within the bounds of a field.
func (f *Field) fits(text string) bool {
	n := utf8.RuneCountInString(text)
	return n >= f.Least && (f.Most < 0 || n <= f.Most)
}
