package jsonvalue

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"sync"
)

// Append appends the canonical text of a plain value (spec: execution, 9.4): compact, members in the protocol's
// order, doubles in ECMAScript form. It is also the text that records are stored as.
//
// A nil map is {} and a nil slice []. What is not of the model is written as Normalize makes it, and as null where
// Normalize refuses it, which is what the protocol has for NaN and infinities.
func Append(dst []byte, v any) []byte {
	switch v := v.(type) {
	case map[string]any:
		if len(v) == 0 {
			return append(dst, "{}"...)
		}
	case []any:
		if len(v) == 0 {
			return append(dst, "[]"...)
		}
	case string:
		return AppendString(dst, v)
	}
	w := writers.Get().(*writer)
	dst = w.value(dst, v)
	writers.Put(w)
	return dst
}

// Canonical is Append to a new slice.
func Canonical(v any) []byte { return Append(nil, v) }

// Hash is the lower-case hex SHA-256 of Canonical(v).
func Hash(v any) string {
	buf := hashBuffers.Get().(*[]byte)
	*buf = Append((*buf)[:0], v)
	sum := sha256.Sum256(*buf)
	if cap(*buf) <= maxPooledBytes {
		hashBuffers.Put(buf)
	}
	return hex.EncodeToString(sum[:])
}

// maxPooledBytes keeps one huge value from holding its buffer for ever.
const maxPooledBytes = 1 << 20

var (
	writers     = sync.Pool{New: func() any { return new(writer) }}
	hashBuffers = sync.Pool{New: func() any { return new([]byte) }}
)

// writer holds the members of the objects being written, the innermost last, so that sorting allocates nothing.
type writer struct{ stack []member }

type member struct {
	name  string
	value any
}

func (w *writer) value(dst []byte, v any) []byte {
	switch v := v.(type) {
	case nil:
		return append(dst, "null"...)
	case bool:
		if v {
			return append(dst, "true"...)
		}
		return append(dst, "false"...)
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
			dst = w.value(dst, e)
		}
		return append(dst, ']')
	case map[string]any:
		return w.object(dst, v)
	}
	plain, err := Normalize(v)
	if err != nil {
		return append(dst, "null"...)
	}
	return w.value(dst, plain)
}

func (w *writer) object(dst []byte, m map[string]any) []byte {
	base := len(w.stack)
	plain := true
	for name, value := range m {
		w.stack = append(w.stack, member{name, value})
		plain = plain && plainName(name)
	}
	end := len(w.stack)
	if members := w.stack[base:end]; plain {
		slices.SortFunc(members, func(a, b member) int { return strings.Compare(a.name, b.name) })
	} else {
		slices.SortFunc(members, func(a, b member) int { return compareNames(a.name, b.name) })
	}
	dst = append(dst, '{')
	for i := base; i < end; i++ {
		if i > base {
			dst = append(dst, ',')
		}
		// Writing a value may move the stack, so it is indexed anew each time.
		dst = AppendString(dst, w.stack[i].name)
		dst = append(dst, ':')
		dst = w.value(dst, w.stack[i].value)
	}
	clear(w.stack[base:end]) // the pool must not keep values alive
	w.stack = w.stack[:base]
	return append(dst, '}')
}
