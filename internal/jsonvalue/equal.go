package jsonvalue

import (
	"maps"
	"slices"
)

// Equal compares two plain values deeply; member order does not matter, -0 equals 0. What is not of the model is
// compared as Normalize makes it, and equals nothing where Normalize refuses it.
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

// isPlain reports whether v is of one of the model's Go types; what is inside is not looked at.
func isPlain(v any) bool {
	switch v.(type) {
	case nil, bool, float64, string, []any, map[string]any:
		return true
	}
	return false
}
