package elicit

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

var errNotFlat = errors.New("a form can show only texts, numbers, yes or no, and choices")

// fieldOf makes a field of the schema of a property.
func fieldOf(schema any, revision string) (field, error) {
	s, ok := schema.(map[string]any)
	if !ok {
		return field{}, errNotFlat // true accepts any value, false none
	}
	s, orNull, err := withoutNull(s)
	if err != nil {
		return field{}, err
	}
	for _, keyword := range notShown {
		if _, ok := s[keyword]; ok && keyword != "enum" && keyword != "const" && keyword != "oneOf" {
			return field{}, fmt.Errorf("a form cannot show %q", keyword)
		}
	}
	if list, ok := s["enum"].([]any); ok && slices.Contains(list, nil) {
		s = with(s, "enum", slices.DeleteFunc(slices.Clone(list), func(v any) bool { return v == nil }))
		orNull = true
	}
	f := field{orNull: orNull}
	f.kind, _ = s["type"].(string)
	options, err := optionsOf(s)
	switch {
	case err != nil:
		return field{}, err
	case f.kind == "array":
		err = f.severalOf(s, revision)
	case options.isBoolean():
		f.kind = "boolean"
		f.describe(s, nil)
	case options != nil:
		f.kind = "string"
		f.describe(s, nil)
		f.choose(&f.schema, options, "oneOf", revision)
		f.defaultLabel(s, options, revision)
	case f.kind == "string":
		err = f.text(s, revision)
	case f.kind == "number" || f.kind == "integer":
		err = f.number(s, revision)
	case f.kind == "boolean":
		f.describe(s, nil)
	default:
		err = errNotFlat
	}
	if v, isBoolean := s["default"].(bool); f.kind == "boolean" && isBoolean {
		f.schema.Put("default", v)
	}
	return f, err
}

// withoutNull takes null out of the alternatives of a schema: [text, null], or anyOf with one that is null alone.
func withoutNull(s map[string]any) (rest map[string]any, orNull bool, err error) {
	if list, ok := s["type"].([]any); ok {
		kinds := slices.DeleteFunc(slices.Clone(list), func(v any) bool { return v == "null" })
		if len(kinds) != 1 {
			return nil, false, errNotFlat
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
		return nil, false, errNotFlat
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

// describe begins the field's schema. demands describe the rules that a form cannot express.
func (f *field) describe(s map[string]any, demands []string) {
	f.schema = jsonvalue.Ordered{{"type", f.kind}}
	title, _ := s["title"].(string)
	f.schema.Text("title", clean(title, maxLabel))
	description, _ := s["description"].(string)
	description = clean(description, maxDescription)
	if len(demands) > 0 {
		description = strings.TrimSpace(description + " (" + strings.Join(demands, ", ") + ")")
	}
	f.schema.Text("description", description)
}

// formats lists the formats that forms support.
var formats = []any{"email", "uri", "date", "date-time"}

func (f *field) text(s map[string]any, revision string) error {
	var demands []string
	if pattern, ok := s["pattern"].(string); ok {
		demands = append(demands, "matches "+clean(pattern, maxLabel))
	}
	format, _ := s["format"].(string)
	if format != "" && !slices.Contains(formats, any(format)) {
		demands = append(demands, clean(format, maxLabel))
		format = ""
	}
	f.describe(s, demands)
	least, most, err := f.bounds(s, "minLength", "maxLength")
	if err != nil {
		return err
	}
	f.schema.Text("format", format)
	f.blank = least <= 0 && format == "" && len(demands) == 0
	if text, ok := s["default"].(string); ok && revision >= richerSince && len(text) <= maxDescription && (most < 0 || len(text) <= most) {
		f.schema.Put("default", text)
	}
	return nil
}

// bounds copies two counts into the schema and returns them, -1 if absent.
func (f *field) bounds(s map[string]any, low, high string) (least, most int, err error) {
	least, most = -1, -1
	for name, into := range map[string]*int{low: &least, high: &most} {
		if n, ok := s[name].(float64); ok && n >= 0 && n <= math.MaxInt32 && n == math.Trunc(n) {
			*into = int(n)
		}
	}
	if least > 0 {
		f.schema.Put(low, float64(least))
	}
	if most >= 0 {
		f.schema.Put(high, float64(most))
	}
	if most >= 0 && least > most {
		return 0, 0, fmt.Errorf("nothing satisfies %s and %s", low, high)
	}
	return least, most, nil
}

func (f *field) number(s map[string]any, revision string) error {
	var demands []string
	for _, d := range []struct{ keyword, words string }{
		{"exclusiveMinimum", "more than %s"}, {"exclusiveMaximum", "less than %s"}, {"multipleOf", "a multiple of %s"},
	} {
		if n, ok := s[d.keyword].(float64); ok {
			demands = append(demands, fmt.Sprintf(d.words, jsonvalue.Canonical(n)))
		}
	}
	f.describe(s, demands)
	least, hasLeast := s["minimum"].(float64)
	most, hasMost := s["maximum"].(float64)
	if hasLeast && hasMost && most < least {
		return errors.New("nothing satisfies minimum and maximum")
	}
	if hasLeast {
		f.schema.Put("minimum", least)
	}
	if hasMost {
		f.schema.Put("maximum", most)
	}
	if n, ok := s["default"].(float64); ok && revision >= richerSince && (f.kind == "number" || n == math.Trunc(n)) {
		f.schema.Put("default", n)
	}
	return nil
}

// severalOf makes a field of several choices.
func (f *field) severalOf(s map[string]any, revision string) error {
	items, _ := s["items"].(map[string]any)
	options, err := optionsOf(items)
	switch {
	case err != nil:
		return err
	case options == nil || revision < richerSince || s["prefixItems"] != nil || s["contains"] != nil:
		return errNotFlat
	}
	var demands []string
	if s["uniqueItems"] == true {
		demands = append(demands, "each once")
	}
	f.describe(s, demands)
	if _, _, err := f.bounds(s, "minItems", "maxItems"); err != nil {
		return err
	}
	inner := jsonvalue.Ordered{}
	f.choose(&inner, options, "anyOf", revision)
	f.schema.Put("items", inner)
	return nil
}
