package jsonvalue

import (
	"bytes"
	"math"
	"strconv"

	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// maxSafeInteger is 2^53: integers up to it have a double of their own.
const maxSafeInteger = 1 << 53

// appendNumber appends a double as ECMAScript writes it: the shortest digits that give the same double back, plain
// from 1e-6 to below 1e21, else with an exponent that has a sign and no leading zero. Negative zero is 0; NaN and
// infinities are null (spec: execution, 9.4).
func appendNumber(dst []byte, f float64) []byte {
	if f >= -maxSafeInteger && f <= maxSafeInteger {
		if i := int64(f); float64(i) == f {
			return strconv.AppendInt(dst, i, 10)
		}
	}
	abs := math.Abs(f)
	if abs >= 1e-6 && abs < 1e21 {
		return strconv.AppendFloat(dst, f, 'f', -1, 64)
	}
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return append(dst, "null"...)
	}
	dst = strconv.AppendFloat(dst, f, 'e', -1, 64)
	// strconv pads the exponent to two digits.
	if n := len(dst); dst[n-2] == '0' && (dst[n-3] == '-' || dst[n-3] == '+') {
		dst[n-2] = dst[n-1]
		dst = dst[:n-1]
	}
	return dst
}

// keepsInteger reports whether an integer reads the same once it is the double f and written again. That is more than to be
// a double: 2^60 is one, but its shortest text, which records and other engines have, is 1152921504606847000. A number with a
// fraction or an exponent is taken as the approximation that a double is.
func keepsInteger(text []byte, f float64) bool {
	const always = 15 // digits that every double holds
	if len(text) <= always || bytes.ContainsAny(text, ".eE") {
		return true
	}
	var digits [310]byte
	return bytes.Equal(text, strconv.AppendFloat(digits[:0], f, 'f', -1, 64))
}

// unkept is the message about an integer that a double cannot hold.
func unkept(text []byte) string {
	return "the integer " + problem.Excerpt(string(text), problem.MaxQuoted) + " cannot be kept exactly; send it as a text"
}
