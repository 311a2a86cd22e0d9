package jsonvalue

import (
	"maps"
	"slices"
)

// Equal compares two plain values deeply; member order does not matter, -0 equals 0. Other Go values are compared as
// Normalize makes them, and equal nothing where Normalize returns an error.
func Equal(a, b any) bool {
	if !isPlain(a) {
		plain, err := Normalize(a)
		return err == nil && Equal(plain, b)
	}
	if !isPlain(b) {
		plain, err := Normalize(b)
		return err == nil && Equal(a, plain)
	}
	switch a := a.(type) {
	case []any:
		b, ok := b.([]any)
		return ok && slices.EqualFunc(a, b, Equal)
	case map[string]any:
		b, ok := b.(map[string]any)
		return ok && maps.EqualFunc(a, b, Equal)
	}
	return a == b
}

// isPlain reports whether v is of one of the model's Go types; it does not look at parts.
func isPlain(v any) bool {
	switch v.(type) {
	case nil, bool, float64, string, []any, map[string]any:
		return true
	}
	return false
}

// Clone is a deep copy of a plain value.
func Clone(v any) any {
	switch v := v.(type) {
	case []any:
		if v == nil {
			return v
		}
		list := make([]any, len(v))
		for i, e := range v {
			list[i] = Clone(e)
		}
		return list
	case map[string]any:
		return CloneMap(v)
	}
	return v
}

// CloneMap is Clone for objects; nil stays nil.
func CloneMap(m map[string]any) map[string]any {
	if m == nil {
		return nil
	}
	object := make(map[string]any, len(m))
	for name, value := range m {
		object[name] = Clone(value)
	}
	return object
}

// MergePatch returns target with a JSON merge patch (RFC 7396) applied: members of patch replace members of target,
// objects are merged, null removes. Neither argument changes; the result shares values with both.
func MergePatch(target, patch map[string]any) map[string]any {
	merged := maps.Clone(target)
	if merged == nil {
		merged = make(map[string]any, len(patch))
	}
	for name, value := range patch {
		switch value := value.(type) {
		case nil:
			delete(merged, name)
		case map[string]any:
			before, _ := merged[name].(map[string]any)
			merged[name] = MergePatch(before, value)
		default:
			merged[name] = value
		}
	}
	return merged
}
