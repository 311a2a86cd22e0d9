package jsonvalue

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// MaxDepth is the nesting limit of arrays and objects in a document, in a value from outside and in the result of a
// program. Records and messages around such values add levels; Decode, which reads them, accepts many more.
const MaxDepth = 512

// ErrTooDeep is the cause of Normalize's error for a value that is nested too deeply, or contains itself.
var ErrTooDeep = errors.New("the value is nested too deeply")

// Normalize turns a Go value (ints, json.Number, *big.Int, structs, typed maps and slices, json.RawMessage, …) into
// the model. NaN, infinities, integers that a double does not hold, strings that are not valid UTF-8 and values that are
// not JSON are errors that name the pointer.
//
// The result shares no map or slice with v. Negative zero becomes zero. A nil map[string]any is an empty object and a nil []any an empty
// array; for types not of the model encoding/json decides, which writes null for theirs. The error is a *problem.Error
// with code VALIDATION_ERROR and At.Pointer.
func Normalize(v any) (any, error) {
	n := normalizer{}
	plain, reason := n.value(v)
	if reason != "" {
		e := problem.New(problem.ValidationError, "invalid value at %s: %s", n.pointerText(), reason).
			WithPlace(problem.Place{Pointer: n.pointer})
		if n.tooDeep {
			return nil, e.WithCause(ErrTooDeep).WithHint("Values may be nested %d levels deep.", MaxDepth)
		}
		return nil, e
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

// value returns the normalised value, or the reason of its rejection.
func (n *normalizer) value(v any) (plain any, reason string) {
	boxed := v // handed back where nothing changes, which saves an allocation
	switch v := v.(type) {
	case nil, bool:
		return boxed, ""
	case string:
		if utf8.ValidString(v) {
			return boxed, ""
		}
		return nil, notUTF8
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
		return signed(int64(v))
	case int64:
		return signed(v)
	case int32:
		return double(float64(v))
	case int16:
		return double(float64(v))
	case int8:
		return double(float64(v))
	case uint:
		return unsigned(uint64(v))
	case uint64:
		return unsigned(v)
	case uint32:
		return double(float64(v))
	case uint16:
		return double(float64(v))
	case uint8:
		return double(float64(v))
	case float32:
		return double(float64(v))
	case json.Number:
		return jsonNumber([]byte(v))
	case *big.Int:
		if v != nil {
			return jsonNumber(v.Append(nil, 10))
		}
	case json.RawMessage:
		return n.text(v, false)
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
	return n.text(text, true)
}

func (n *normalizer) enter() (reason string) {
	if n.depth++; n.depth > MaxDepth {
		n.tooDeep = true
		return fmt.Sprintf("it is nested more than %d levels deep, or contains itself", MaxDepth)
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
		if !utf8.ValidString(name) {
			name, reason = strings.ToValidUTF8(name, "\uFFFD"), "the field name is not valid UTF-8"
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

func signed(i int64) (any, string) {
	if i < -maxSafeInteger || i > maxSafeInteger {
		return jsonNumber(strconv.AppendInt(nil, i, 10))
	}
	return float64(i), ""
}

func unsigned(i uint64) (any, string) {
	if i > maxSafeInteger {
		return jsonNumber(strconv.AppendUint(nil, i, 10))
	}
	return float64(i), ""
}

func jsonNumber(text []byte) (any, string) {
	if len(text) == 0 || text[0] != '-' && (text[0] < '0' || text[0] > '9') {
		return nil, "its number text is not a JSON number"
	}
	if end, f := scanNumber(text, 0); f != nil || end != len(text) {
		return nil, "its number text is not a JSON number"
	}
	f := number(text)
	if !math.IsInf(f, 0) && !keepsInteger(text, f) {
		return nil, unkept(text)
	}
	return double(f)
}

// text is the value of a JSON text; marshalled says that encoding/json wrote it.
func (n *normalizer) text(text []byte, marshalled bool) (any, string) {
	if len(text) == 0 {
		return nil, "its JSON text is empty"
	}
	v, flaws, f := decode(text)
	if f == nil && TooDeep(text, MaxDepth-n.depth) {
		n.depth = MaxDepth
		return nil, n.enter()
	}
	if f != nil {
		return nil, fmt.Sprintf("its JSON text is invalid at byte %d: %s", f.offset, f.message)
	}
	if flaws.lossy || marshalled && bytes.Contains(text, []byte(`\ufffd`)) {
		if losses := lossesOf(text, marshalled, "duplicate", "proto"); len(losses) > 0 {
			n.pointer = losses[0].Pointer
			return nil, losses[0].Message
		}
	}
	return v, ""
}
