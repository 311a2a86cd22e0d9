package jsonvalue

// Equal compares two plain values deeply; member order does not matter, -0 equals 0. What is not of the model is
// compared as Normalize makes it, and equals nothing where Normalize refuses it.
func Equal(a, b any) bool {
	switch a := a.(type) {
	case nil:
		if b == nil {
			return true
		}
	case bool:
		if b, ok := b.(bool); ok {
			return a == b
		}
	case float64:
		if b, ok := b.(float64); ok {
			return a == b
		}
	case string:
		if b, ok := b.(string); ok {
			return a == b
		}
	case []any:
		if b, ok := b.([]any); ok {
			return equalLists(a, b)
		}
	case map[string]any:
		if b, ok := b.(map[string]any); ok {
			return equalObjects(a, b)
		}
	default:
		plain, err := Normalize(a)
		return err == nil && Equal(plain, b)
	}
	if isPlain(b) {
		return false // two kinds of the model
	}
	plain, err := Normalize(b)
	return err == nil && Equal(a, plain)
}

func equalLists(a, b []any) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if !Equal(a[i], b[i]) {
			return false
		}
	}
	return true
}

func equalObjects(a, b map[string]any) bool {
	if len(a) != len(b) {
		return false
	}
	for name, x := range a {
		if y, ok := b[name]; !ok || !Equal(x, y) {
			return false
		}
	}
	return true
}

// isPlain reports whether v is of one of the model's Go types; what is inside is not looked at.
func isPlain(v any) bool {
	switch v.(type) {
	case nil, bool, float64, string, []any, map[string]any:
		return true
	}
	return false
}
