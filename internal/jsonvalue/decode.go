package jsonvalue

import (
	"bytes"
	"math"
	"slices"
	"sync"
	"unicode/utf8"

	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// maxDecodeDepth bounds the nesting that Decode follows, as encoding/json does.
const maxDecodeDepth = 10_000

// Decode reads JSON text into a plain value; numbers become float64. It is the lenient, fast reader for text that
// this engine or the reference wrote; use Parse for text from people, DecodeExact for text from other programs. Lone
// surrogates become U+FFFD, and so do bytes that are not valid UTF-8; of duplicate members the last counts; a number
// that overflows a double becomes nil, and negative zero becomes zero, as the reference writes them. Everything else
// is as strict as the grammar.
//
// The error is a *problem.Error with code VALIDATION_ERROR and the line and column.
func Decode(src []byte) (any, error) {
	v, _, f := decode(src)
	if f == nil {
		return v, nil
	}
	before := src[:min(f.offset, len(src))]
	line := 1 + bytes.Count(before, []byte("\n"))
	column := 1 + utf8.RuneCount(before[bytes.LastIndexByte(before, '\n')+1:])
	return nil, problem.New(problem.ValidationError, "invalid JSON at line %d, column %d: %s", line, column, f.message).
		WithPlace(problem.Place{Line: line, Column: column})
}

// DecodeExact is Decode for text from outside, where a value must not change silently: losses are the places of
// values that the model cannot keep. These are numbers too large for a double, integers that a double does not hold,
// and strings that are not valid UTF-8.
func DecodeExact(src []byte) (v any, losses []SyntaxError, err error) {
	return decodeExact(src, true)
}

// DecodeUnique is DecodeExact; a duplicate member is a loss too.
func DecodeUnique(src []byte) (v any, losses []SyntaxError, err error) {
	return decodeExact(src, false)
}

func decodeExact(src []byte, twice bool) (v any, losses []SyntaxError, err error) {
	v, flaws, f := decode(src)
	if f != nil {
		_, err = Decode(src)
		return nil, nil, err
	}
	ignored := []string{"proto"}
	if twice {
		ignored = append(ignored, "duplicate")
	}
	if flaws.lossy || flaws.twice && !twice {
		losses = lossesOf(src, false, ignored...)
	}
	return v, losses, nil
}

// lossesOf returns the losses of a text that decode accepts. In marshalled text, which encoding/json wrote, the
// escape \ufffd is a loss too: encoding/json writes it for bytes that are not valid UTF-8, and the character itself
// as it is.
func lossesOf(src []byte, marshalled bool, ignored ...string) []SyntaxError {
	p := &parser{cursor: cursor{src: src}, maxDepth: maxDecodeDepth, line: 1, column: 1, ignored: ignored}
	p.strings.marshalled = marshalled
	p.document()
	return p.problems
}

// flaws are the differences between a value and its text.
type flaws struct {
	// lossy: a value differs from its text; twice: an object has a duplicate member.
	lossy, twice bool
}

// decode is Decode, and reports the flaws.
func decode(src []byte) (v any, found flaws, f *fault) {
	d := decoders.Get().(*decoder)
	d.src, d.offset, d.depth, d.flaws = src, 0, 0, flaws{}
	v, f = d.document()
	d.src = nil
	found = d.flaws
	if cap(d.strings.scratch) > maxScratch {
		d.strings.scratch = nil
	}
	decoders.Put(d)
	return v, found, f
}

var decoders = sync.Pool{New: func() any { return new(decoder) }}

// decoder reads one text at a time.
type decoder struct {
	cursor
	flaws
	strings stringScanner
	// names are member names seen lately, by nameSlot: records repeat the same few over and over.
	names [nameSlots]string
}

const (
	maxScratch    = 64 << 10 // bytes
	nameSlots     = 128
	maxSharedName = 32 // bytes
)

func (d *decoder) document() (any, *fault) {
	if literal(d.src, 0, byteOrderMark) {
		d.offset = len(byteOrderMark)
	}
	d.space()
	v, f := d.value()
	if f != nil {
		return nil, f
	}
	return v, d.end()
}

func (d *decoder) value() (any, *fault) {
	if d.offset >= len(d.src) {
		return nil, unexpected(d.src, d.offset)
	}
	switch c := d.src[d.offset]; {
	case c == '"':
		text, end, f := d.strings.scan(d.src, d.offset+1)
		if f != nil {
			return nil, f
		}
		d.offset = end
		d.lossy = d.lossy || len(d.strings.flaws) > 0
		return string(text), nil
	case c == '{':
		return d.object()
	case c == '[':
		return d.array()
	case c == '-' || c >= '0' && c <= '9':
		end, f := scanNumber(d.src, d.offset)
		if f != nil {
			return nil, f
		}
		text := d.src[d.offset:end]
		n := number(text)
		d.offset = end
		d.lossy = d.lossy || !keepsInteger(text, n)
		if math.IsInf(n, 0) {
			d.lossy = true
			return nil, nil
		}
		return n, nil
	case literal(d.src, d.offset, "true"):
		d.offset += len("true")
		return true, nil
	case literal(d.src, d.offset, "false"):
		d.offset += len("false")
		return false, nil
	case literal(d.src, d.offset, "null"):
		d.offset += len("null")
		return nil, nil
	}
	return nil, unexpected(d.src, d.offset)
}

func (d *decoder) array() (any, *fault) {
	if f := d.enter(maxDecodeDepth); f != nil {
		return nil, f
	}
	list := []any{}
	for more := !d.empty(']'); more; {
		v, f := d.value()
		if f != nil {
			return nil, f
		}
		list = append(d.room(list), v)
		if more, f = d.more(']'); f != nil {
			return nil, f
		}
	}
	return list, nil
}

// room returns the list with room for one element. A long list gets room for all that follow up to its end, or up to the next list or object:
// to copy it again and again takes most of the time that a large list of numbers takes, and several times its memory.
func (d *decoder) room(list []any) []any {
	const long = 256
	if len(list) < long || len(list) < cap(list) {
		return list
	}
	following := 1
	for i := d.offset; i < len(d.src); i++ {
		switch d.src[i] {
		case '"':
			i = skipString(d.src, i+1) - 1
		case ',':
			following++
		case ']':
			return slices.Grow(list, following)
		case '[', '{':
			return slices.Grow(list, max(following, len(list)/4))
		}
	}
	return slices.Grow(list, 1) // the text ends too early
}

func (d *decoder) object() (any, *fault) {
	if f := d.enter(maxDecodeDepth); f != nil {
		return nil, f
	}
	object := map[string]any{}
	for more := !d.empty('}'); more; {
		name, f := d.name()
		if f != nil {
			return nil, f
		}
		v, f := d.value()
		if f != nil {
			return nil, f
		}
		before := len(object)
		object[name] = v
		d.twice = d.twice || len(object) == before
		if more, f = d.more('}'); f != nil {
			return nil, f
		}
	}
	return object, nil
}

// name reads a member name and the colon, up to the value.
func (d *decoder) name() (string, *fault) {
	if f := d.quote(); f != nil {
		return "", f
	}
	text, end, f := d.strings.scan(d.src, d.offset+1)
	if f != nil {
		return "", f
	}
	d.offset = end
	d.lossy = d.lossy || len(d.strings.flaws) > 0
	if f := d.colon(); f != nil {
		return "", f
	}
	if len(text) == 0 || len(text) > maxSharedName {
		return string(text), nil
	}
	slot := &d.names[nameSlot(text)]
	if *slot != string(text) {
		*slot = string(text)
	}
	return *slot, nil
}

func nameSlot(name []byte) int {
	h := uint32(len(name))
	for _, c := range name {
		h = h*31 + uint32(c)
	}
	return int(h % nameSlots)
}
