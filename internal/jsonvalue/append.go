package jsonvalue

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
)

// Append appends the canonical text of a plain value (spec: execution, 9.4): compact, members in the protocol's
// order, doubles in ECMAScript form. Records are stored as this text.
//
// A nil map is {} and a nil slice []. Other Go values are written as Normalize makes them, and as null where
// Normalize returns an error, as in the protocol for NaN and infinities.
func Append(dst []byte, v any) []byte {
	switch v := v.(type) {
	case nil:
		return append(dst, "null"...)
	case bool:
		return strconv.AppendBool(dst, v)
	case float64:
		return appendNumber(dst, v)
	case string:
		return AppendString(dst, v)
	case []any:
		dst = append(dst, '[')
		for i, e := range v {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = Append(dst, e)
		}
		return append(dst, ']')
	case map[string]any:
		dst = append(dst, '{')
		for i, name := range Keys(v) {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = append(AppendString(dst, name), ':')
			dst = Append(dst, v[name])
		}
		return append(dst, '}')
	}
	plain, err := Normalize(v)
	if err != nil {
		return append(dst, "null"...)
	}
	return Append(dst, plain)
}

// Canonical is Append to a new slice.
func Canonical(v any) []byte { return Append(nil, v) }

// Hash is the lower-case hex SHA-256 of Canonical(v).
func Hash(v any) string {
	sum := sha256.Sum256(Canonical(v))
	return hex.EncodeToString(sum[:])
}
