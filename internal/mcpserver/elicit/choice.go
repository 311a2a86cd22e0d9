package elicit

import (
	"errors"
	"fmt"

	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// option is a value to choose. A form shows the label, or the title if it has one, and answers with the label.
type option struct {
	label, title string
	value        any
}

type options []option

// optionsOf returns the values listed in a schema, or nil.
func optionsOf(s map[string]any) (options, error) {
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
		values[i], titles[i] = v, clean(title, maxLabel)
	}
	return listOptions(values, titles)
}

// listOptions labels each value. titles may be nil.
func listOptions(values []any, titles []string) (options, error) {
	if len(values) > maxOptions {
		return nil, fmt.Errorf("more than %d values to choose from", maxOptions)
	}
	var list options
	for i, v := range values {
		o := option{value: v}
		switch v := v.(type) {
		case string:
			o.label = v
			if clean(v, maxLabel) != v || v == "" {
				return nil, errors.New("a value to choose from is empty, too long, or has characters that cannot be shown")
			}
		case float64, bool:
			o.label = string(jsonvalue.Canonical(v))
		default: // null is given by leaving the field out, which a required choice does not allow
			return nil, errNotFlat
		}
		if titles != nil {
			o.title = titles[i]
		}
		for _, other := range list {
			if other.label == o.label {
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
func (l options) isBoolean() bool {
	if len(l) != 2 {
		return false
	}
	_, first := l[0].value.(bool)
	_, second := l[1].value.(bool)
	return first && second && l[0].title == "" && l[1].title == ""
}

func (l options) titled() bool {
	for _, o := range l {
		if o.title != "" {
			return true
		}
	}
	return false
}

// choose puts the values to choose from into the schema of a choice. keyword is the one for values with titles.
func (f *field) choose(s *jsonvalue.Ordered, l options, keyword, revision string) {
	f.options = make(map[string]any, len(l))
	labels, titles, pairs := make([]any, len(l)), make([]any, len(l)), make([]jsonvalue.Ordered, len(l))
	for i, o := range l {
		f.options[o.label] = o.value
		title := o.title
		if title == "" {
			title = o.label
		}
		labels[i], titles[i], pairs[i] = o.label, title, jsonvalue.Ordered{{"const", o.label}, {"title", title}}
	}
	switch {
	case l.titled() && revision >= richerSince:
		s.Put(keyword, pairs)
	case l.titled():
		s.Put("enum", labels)
		s.Put("enumNames", titles)
	default:
		if f.kind == "array" {
			s.Put("type", "string")
		}
		s.Put("enum", labels)
	}
}

// defaultLabel puts the value that is chosen at first.
func (f *field) defaultLabel(s map[string]any, l options, revision string) {
	for _, o := range l {
		if v, ok := s["default"]; ok && revision >= richerSince && jsonvalue.Equal(v, o.value) {
			f.schema.Put("default", o.label)
		}
	}
}
