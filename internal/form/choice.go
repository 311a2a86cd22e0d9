package form

import (
	"errors"
	"fmt"

	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// fewOptions is how many options are shown one below the other; more become a list to open.
const fewOptions = 5

// optionsOf returns the values listed in a schema, or nil.
func optionsOf(s map[string]any) ([]Option, error) {
	if v, ok := s["const"]; ok {
		return listOptions([]any{v}, nil)
	}
	if list, ok := s["enum"].([]any); ok {
		return listOptions(list, nil)
	}
	list, ok := s["oneOf"].([]any)
	if !ok {
		return nil, nil
	}
	values, titles := make([]any, len(list)), make([]string, len(list))
	for i := range list {
		one, _ := list[i].(map[string]any)
		v, isConst := one["const"]
		if !isConst {
			return nil, fmt.Errorf("a form cannot show %q", "oneOf")
		}
		title, _ := one["title"].(string)
		values[i], titles[i] = v, Clean(title, MaxLabel)
	}
	return listOptions(values, titles)
}

// listOptions labels each value. titles may be nil.
func listOptions(values []any, titles []string) ([]Option, error) {
	if len(values) > maxOptions {
		return nil, fmt.Errorf("more than %d values to choose from", maxOptions)
	}
	var list []Option
	for i, v := range values {
		o := Option{Value: v}
		switch v := v.(type) {
		case string:
			o.Label = v
			if Clean(v, MaxLabel) != v || v == "" {
				return nil, errors.New("a value to choose from is empty, too long, or has characters that cannot be shown")
			}
		case float64, bool:
			o.Label = string(jsonvalue.Canonical(v))
		default: // null is given by leaving the field out, which a required choice does not allow
			return nil, ErrNotFlat
		}
		if titles != nil {
			o.Title = titles[i]
		}
		for _, other := range list {
			if other.Label == o.Label {
				return nil, errors.New("two values to choose from look the same")
			}
		}
		list = append(list, o)
	}
	if len(list) == 0 {
		return nil, errors.New("no values to choose from")
	}
	return list, nil
}

// isBoolean reports whether the values are yes and no.
func isBoolean(l []Option) bool {
	if len(l) != 2 {
		return false
	}
	_, first := l[0].Value.(bool)
	_, second := l[1].Value.(bool)
	return first && second && l[0].Title == "" && l[1].Title == ""
}
