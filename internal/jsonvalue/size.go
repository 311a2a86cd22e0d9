package jsonvalue

import "math"

// Size is len(Canonical(v)) without building it. Above a limit greater than 0 it stops early and returns some number
// above the limit.
func Size(v any, limit int) int {
	if limit <= 0 {
		limit = math.MaxInt
	}
	return addSize(0, v, limit)
}

func addSize(n int, v any, limit int) int {
	switch v := v.(type) {
	case nil:
		return n + len("null")
	case bool:
		if v {
			return n + len("true")
		}
		return n + len("false")
	case float64:
		var buf [32]byte
		return n + len(appendNumber(buf[:0], v))
	case string:
		if len(v) > limit-n {
			return n + len(v) // no need to look for escapes
		}
		return n + StringSize(v)
	case []any:
		n += len("[]") + max(len(v)-1, 0)
		for _, e := range v {
			if n > limit {
				return n
			}
			n = addSize(n, e, limit)
		}
		return n
	case map[string]any:
		n += len("{}") + max(len(v)-1, 0)
		for name, value := range v {
			if n > limit {
				return n
			}
			n = addSize(n+StringSize(name)+len(":"), value, limit)
		}
		return n
	}
	plain, err := Normalize(v)
	if err != nil {
		return n + len("null")
	}
	return addSize(n, plain, limit)
}
