package jsonvalue

// Weigh returns a number that is at most Size(v, 0), and near it where text makes up most of a value: numbers count as
// one digit, characters that are written as escapes as they are. At a limit greater than 0 it stops and returns some
// number not below it. It tells large values from small ones on hot paths.
func Weigh(v any, limit int) int {
	return weigh(0, v, limit)
}

func weigh(n int, v any, limit int) int {
	switch v := v.(type) {
	case nil:
		return n + len("null")
	case bool:
		return n + len("true")
	case string:
		return n + len(v) + len(`""`)
	case []any:
		n += len("[]") + max(len(v)-1, 0)
		for _, e := range v {
			if limit > 0 && n >= limit {
				return n
			}
			n = weigh(n, e, limit)
		}
		return n
	case map[string]any:
		n += len("{}") + max(len(v)-1, 0)
		for name, value := range v {
			if limit > 0 && n >= limit {
				return n
			}
			n = weigh(n+len(name)+len(`"":`), value, limit)
		}
		return n
	default:
		return n + 1
	}
}
