package jsonvalue

import (
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"unicode/utf8"

	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// maxNormalizeDepth bounds the nesting that Normalize follows; what is deeper, or contains itself, is refused.
const maxNormalizeDepth = maxDecodeDepth

// Normalize turns a Go value (ints, json.Number, *big.Int, structs, typed maps and slices, json.RawMessage, …) into
// the model. NaN, infinities and values that are not JSON are errors that name the pointer.
//
// The result shares no map or slice with v. Integers beyond 2^53 become the nearest double, negative zero becomes
// zero, bytes that are not valid UTF-8 become U+FFFD. A nil map[string]any is an empty object and a nil []any an empty
// array; for types not of the model encoding/json decides, which writes null for theirs. The error is a *problem.Error
// with code VALIDATION_ERROR and At.Pointer.
func Normalize(v any) (any, error) {
	n := normalizer{}
	plain, reason := n.value(v)
	if reason != "" {
		return nil, problem.New(problem.ValidationError, "the value at %s is not JSON: %s", n.pointerText(), reason).
			WithPlace(problem.Place{Pointer: n.pointer})
	}
	return plain, nil
}

type normalizer struct {
	depth int
	// pointer is made on the way out of a failure, from the innermost token to the outermost. A value that is too deep
	// has a useless pointer; it is left empty.
	pointer string
	tooDeep bool
}

// at puts a token before the pointer of a failure.
func (n *normalizer) at(token string) {
	if !n.tooDeep {
		n.pointer = "/" + EscapePointer(token) + n.pointer
	}
}

func (n *normalizer) pointerText() string {
	if n.pointer == "" {
		return "the root"
	}
	return strconv.Quote(n.pointer)
}

// value returns the normalised value, or the reason why there is none.
func (n *normalizer) value(v any) (plain any, reason string) {
	boxed := v // handed back where nothing changes, which saves an allocation
	switch v := v.(type) {
	case nil, bool:
		return boxed, ""
	case string:
		if utf8.ValidString(v) {
			return boxed, ""
		}
		return validString(v), ""
	case float64:
		if v-v == 0 && v != 0 { // finite and no negative zero
			return boxed, ""
		}
		return double(v)
	case map[string]any:
		return normalizeObject(n, v)
	case []any:
		return normalizeList(n, v)
	case int:
		return double(float64(v))
	case int64:
		return double(float64(v))
	case int32:
		return double(float64(v))
	case int16:
		return double(float64(v))
	case int8:
		return double(float64(v))
	case uint:
		return double(float64(v))
	case uint64:
		return double(float64(v))
	case uint32:
		return double(float64(v))
	case uint16:
		return double(float64(v))
	case uint8:
		return double(float64(v))
	case float32:
		return double(float64(v))
	case json.Number:
		return jsonNumber(v)
	case *big.Int:
		if v != nil {
			f, _ := new(big.Float).SetInt(v).Float64()
			return double(f)
		}
	case json.RawMessage:
		return decodeText(v)
	case []string:
		if v != nil {
			return normalizeList(n, v)
		}
	case []map[string]any:
		if v != nil {
			return normalizeList(n, v)
		}
	case []float64:
		if v != nil {
			return normalizeList(n, v)
		}
	case map[string]string:
		if v != nil {
			return normalizeObject(n, v)
		}
	}
	text, err := json.Marshal(v)
	if err != nil {
		return nil, err.Error()
	}
	return decodeText(text)
}

func (n *normalizer) enter() (reason string) {
	if n.depth++; n.depth > maxNormalizeDepth {
		n.tooDeep = true
		return "it is nested too deeply, or contains itself"
	}
	return ""
}

func (n *normalizer) leave() { n.depth-- }

func normalizeList[T any](n *normalizer, v []T) (any, string) {
	if reason := n.enter(); reason != "" {
		return nil, reason
	}
	defer n.leave()
	list := make([]any, len(v))
	for i, e := range v {
		plain, reason := n.value(e)
		if reason != "" {
			n.at(strconv.Itoa(i))
			return nil, reason
		}
		list[i] = plain
	}
	return list, ""
}

func normalizeObject[T any](n *normalizer, v map[string]T) (any, string) {
	if reason := n.enter(); reason != "" {
		return nil, reason
	}
	defer n.leave()
	object := make(map[string]any, len(v))
	failed, failure := "", ""
	for name, e := range v {
		plain, reason := n.value(e)
		name = validString(name)
		if _, twice := object[name]; twice && reason == "" {
			reason = "two member names are the same once they are valid UTF-8"
		}
		if reason == "" {
			object[name] = plain
			continue
		}
		// Of several bad members the first by name is reported, whatever the map's order.
		if n.at(name); failure == "" || n.pointer < failed {
			failed, failure = n.pointer, reason
		}
		n.pointer = ""
	}
	if n.pointer = failed; failure != "" {
		return nil, failure
	}
	return object, ""
}

func double(f float64) (any, string) {
	switch {
	case math.IsNaN(f):
		return nil, "it is NaN"
	case math.IsInf(f, 0):
		return nil, "it is infinite, or too large for a double"
	}
	return f + 0, "" // -0 + 0 is 0
}

func jsonNumber(v json.Number) (any, string) {
	text := []byte(v)
	if len(text) == 0 || text[0] != '-' && (text[0] < '0' || text[0] > '9') {
		return nil, "its number text is not a JSON number"
	}
	if end, f := scanNumber(text, 0); f != nil || end != len(text) {
		return nil, "its number text is not a JSON number"
	}
	return double(number(text))
}

func decodeText(text []byte) (any, string) {
	if len(text) == 0 {
		return nil, "its JSON text is empty"
	}
	v, overflow, f := decode(text)
	switch {
	case f != nil:
		return nil, fmt.Sprintf("its JSON text is invalid at byte %d: %s", f.offset, f.message)
	case overflow:
		return nil, "it holds a number too large for a double"
	}
	return v, ""
}

// validString is s with each byte that is not valid UTF-8 replaced by U+FFFD.
func validString(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	return string([]rune(s))
}
