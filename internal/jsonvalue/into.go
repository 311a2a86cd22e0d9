package jsonvalue

import (
	"bytes"
	"encoding"
	"encoding/json"
	"reflect"
	"strings"
	"sync"
)

// Into decodes plain JSON into a Go value, as encoding/json does, except that a field with a name in its tag is filled by the member of exactly
// that name. That package also takes "AMOUNT" for a field tagged amount, so that a value could pass a check of "amount" and another one reach
// the function that acts on it. A field without a tag takes any spelling of its name, as long as there is only one.
func Into(v, into any) error {
	d := json.NewDecoder(bytes.NewReader(textFor(v, into)))
	d.UseNumber()
	return d.Decode(into)
}

// IntoPlain is Into for values that become plain JSON again: a number in a field of any type is a float64.
func IntoPlain(v, into any) error { return json.Unmarshal(textFor(v, into), into) }

func textFor(v, into any) []byte { return Canonical(exact(v, reflect.TypeOf(into))) }

var (
	unmarshaler     = reflect.TypeFor[json.Unmarshaler]()
	textUnmarshaler = reflect.TypeFor[encoding.TextUnmarshaler]()
)

// exact returns a value without the members that encoding/json would put into a field of another spelling.
func exact(v any, t reflect.Type) any {
	for t != nil && t.Kind() == reflect.Pointer {
		if t.Implements(unmarshaler) {
			return v
		}
		t = t.Elem()
	}
	if t == nil || reflect.PointerTo(t).Implements(unmarshaler) || reflect.PointerTo(t).Implements(textUnmarshaler) {
		return v
	}
	switch v := v.(type) {
	case []any:
		if k := t.Kind(); k != reflect.Slice && k != reflect.Array {
			return v
		}
		list := make([]any, len(v))
		for i, e := range v {
			list[i] = exact(e, t.Elem())
		}
		return list
	case map[string]any:
		switch t.Kind() {
		case reflect.Map:
			object := make(map[string]any, len(v))
			for name, e := range v {
				object[name] = exact(e, t.Elem())
			}
			return object
		case reflect.Struct:
			return exactMembers(v, fieldsOf(t))
		}
	}
	return v
}

func exactMembers(v map[string]any, fields map[string]field) map[string]any {
	object := make(map[string]any, len(v))
	for name, e := range v {
		if f, ok := fields[name]; ok {
			object[name] = exact(e, f.Type)
		} else if f, ok := respelled(name, fields); !ok {
			object[name] = e
		} else if !f.tagged && spellings(name, v) == 1 {
			object[name] = exact(e, f.Type)
		}
	}
	return object
}

// respelled returns the field that a name is another spelling of. strings.EqualFold folds all that encoding/json does.
func respelled(name string, fields map[string]field) (field, bool) {
	for known, f := range fields {
		if strings.EqualFold(name, known) {
			return f, true
		}
	}
	return field{}, false
}

// spellings counts the members that are spellings of a name.
func spellings(name string, v map[string]any) (n int) {
	for other := range v {
		if strings.EqualFold(name, other) {
			n++
		}
	}
	return n
}

type field struct {
	reflect.Type
	tagged bool
}

var known sync.Map // reflect.Type to map[string]field

// fieldsOf returns the types of the members of a struct by name, those of embedded structs too.
func fieldsOf(t reflect.Type) map[string]field {
	if fields, ok := known.Load(t); ok {
		return fields.(map[string]field)
	}
	fields := map[string]field{}
	for _, f := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Tag.Get("json") == "-" || !f.IsExported() && !f.Anonymous:
		case f.Anonymous && name == "": // its fields are among the visible ones
			if !f.IsExported() || embedsFields(f.Type) {
				continue
			}
			fields[f.Name] = field{Type: f.Type}
		default:
			tagged := name != ""
			if !tagged {
				name = f.Name
			}
			if _, shadowed := fields[name]; !shadowed {
				fields[name] = field{f.Type, tagged}
			}
		}
	}
	known.Store(t, fields)
	return fields
}

func embedsFields(t reflect.Type) bool {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t.Kind() == reflect.Struct
}
