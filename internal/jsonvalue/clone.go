package jsonvalue

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
