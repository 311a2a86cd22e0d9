package jsonvalue

import (
	"math"
)

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

// Sizes of decoded values in memory: averages on the safe side.
const (
	elementBytes = 24 // its place in a list, and a number
	objectBytes  = 320
	emptyBytes   = 48
)

// DecodedBytes estimates the size of the value that Decode would return, in bytes, from the brackets and commas of
// the text. It stops above a limit.
func DecodedBytes(text []byte, limit int) int {
	n := len(text)
	for i := 0; i < len(text) && n <= limit; i++ {
		switch text[i] {
		case '{':
			if n += objectBytes; i+1 < len(text) && text[i+1] == '}' {
				n -= objectBytes - emptyBytes
			}
		case '[', ',':
			n += elementBytes
		case '"':
			i = skipString(text, i+1) - 1
		}
	}
	return n
}
