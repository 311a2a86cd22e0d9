package jsonvalue

import (
	"fmt"
	"slices"
	"strconv"
	"unicode/utf8"
)

// The scanners of strings and numbers, shared by Parse and Decode.

// fault is a mistake in a JSON text, with its place.
type fault struct {
	offset  int
	message string
}

func faultAt(offset int, format string, args ...any) *fault {
	return &fault{offset, fmt.Sprintf(format, args...)}
}

// stringScanner reads strings. A result is valid until the next call.
type stringScanner struct {
	scratch []byte
	// flaws are the string's first escape that is half of a surrogate pair, and its first byte that is not valid UTF-8,
	// in the order of the text. Each such place became U+FFFD.
	flaws []flaw
	// marshalled makes the escape \ufffd a flaw (see lossesOf).
	marshalled bool
}

// flaw is a place in a string that has no text; kind is that of SyntaxError.
type flaw struct {
	fault
	kind string
}

func (s *stringScanner) flawed(offset int, kind, message string) {
	if !slices.ContainsFunc(s.flaws, func(f flaw) bool { return f.kind == kind }) {
		s.flaws = append(s.flaws, flaw{fault{offset, message}, kind})
	}
}

// scan reads a string whose first byte after the quote is src[start]; end is the offset after the closing quote.
func (s *stringScanner) scan(src []byte, start int) (text []byte, end int, f *fault) {
	s.flaws = s.flaws[:0]
	var all byte
	for i := start; i < len(src); i++ {
		c := src[i]
		if c == '"' {
			if all >= utf8.RuneSelf && !utf8.Valid(src[start:i]) {
				break
			}
			return src[start:i], i + 1, nil
		}
		if c == '\\' || c < 0x20 {
			break
		}
		all |= c
	}
	return s.rebuild(src, start)
}

// rebuild is scan for a string that differs from its source.
func (s *stringScanner) rebuild(src []byte, start int) (text []byte, end int, f *fault) {
	out := slices.Grow(s.scratch[:0], skipString(src, start)-start)
	defer func() { s.scratch = out[:0] }()
	for i := start; i < len(src); {
		switch c := src[i]; {
		case c == '"':
			return out, i + 1, nil
		case c < 0x20:
			return nil, 0, faultAt(i, "control character U+%04X in a string; write it as an escape such as \\n", c)
		case c == '\\' && i+1 < len(src) && shortEscapes[src[i+1]] != 0:
			out = append(out, shortEscapes[src[i+1]])
			i += 2
		case c == '\\':
			r, size, f := s.unit(src, i)
			if f != nil {
				return nil, 0, f
			}
			out = utf8.AppendRune(out, r)
			i += size
		case c < utf8.RuneSelf:
			out = append(out, c)
			i++
		default:
			r, size := utf8.DecodeRune(src[i:])
			if r == utf8.RuneError && size == 1 {
				s.flawed(i, "utf8", notUTF8)
			}
			out = utf8.AppendRune(out, r)
			i += size
		}
	}
	return nil, 0, faultAt(len(src), "the text ends inside a string")
}

// shortEscapes are the characters of escapes of one letter.
var shortEscapes = [256]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

// unit reads the escape \uXXXX at src[i], one or, for a surrogate pair, two of them.
func (s *stringScanner) unit(src []byte, i int) (r rune, size int, f *fault) {
	if i+1 >= len(src) {
		return 0, 0, faultAt(len(src), "the text ends inside a string")
	}
	if src[i+1] != 'u' {
		return 0, 0, faultAt(i, "unknown escape in a string; the escapes are \\\" \\\\ \\/ \\b \\f \\n \\r \\t and \\uXXXX")
	}
	const unit = len(`\uXXXX`)
	u, ok := hexUnit(src, i)
	if !ok {
		return 0, 0, faultAt(i, "expected four hexadecimal digits after \\u")
	}
	if s.marshalled && u == utf8.RuneError {
		s.flawed(i, "utf8", notUTF8)
	}
	if u < 0xD800 || u > 0xDFFF {
		return u, unit, nil
	}
	if low, ok := hexUnit(src, i+unit); ok && u < 0xDC00 && low >= 0xDC00 && low <= 0xDFFF {
		return (u-0xD800)<<10 + (low - 0xDC00) + 0x10000, 2 * unit, nil
	}
	s.flawed(i, "surrogate", "the escape is one half of a surrogate pair, which is not a character")
	return utf8.RuneError, unit, nil
}

// hexUnit reads the UTF-16 unit of the escape \uXXXX at src[i].
func hexUnit(src []byte, i int) (u rune, ok bool) {
	if i+6 > len(src) || src[i] != '\\' || src[i+1] != 'u' {
		return 0, false
	}
	for _, c := range src[i+2 : i+6] {
		switch {
		case c >= '0' && c <= '9':
			u = u<<4 | rune(c-'0')
		case c >= 'a' && c <= 'f':
			u = u<<4 | rune(c-'a'+10)
		case c >= 'A' && c <= 'F':
			u = u<<4 | rune(c-'A'+10)
		default:
			return 0, false
		}
	}
	return u, true
}

// scanNumber finds the end of the number at src[start], whose first byte is a digit or '-'.
func scanNumber(src []byte, start int) (end int, f *fault) {
	i := start
	if src[i] == '-' {
		i++
	}
	switch digits := skipDigits(src, i); {
	case digits == i:
		return 0, faultAt(i, "expected a digit, found %s", describe(src, i))
	case src[i] == '0' && digits > i+1:
		return 0, faultAt(i, "a number must not begin with 0 and a further digit")
	default:
		i = digits
	}
	if i < len(src) && src[i] == '.' {
		digits := skipDigits(src, i+1)
		if digits == i+1 {
			return 0, faultAt(digits, "expected a digit after the point, found %s", describe(src, digits))
		}
		i = digits
	}
	if i < len(src) && (src[i] == 'e' || src[i] == 'E') {
		i++
		if i < len(src) && (src[i] == '+' || src[i] == '-') {
			i++
		}
		digits := skipDigits(src, i)
		if digits == i {
			return 0, faultAt(i, "expected a digit in the exponent, found %s", describe(src, i))
		}
		i = digits
	}
	return i, nil
}

func skipDigits(src []byte, i int) int {
	for i < len(src) && src[i] >= '0' && src[i] <= '9' {
		i++
	}
	return i
}

// number returns the double of a text that scanNumber has accepted, infinite where it overflows. Negative zero is zero.
func number(text []byte) float64 {
	f, _ := strconv.ParseFloat(string(text), 64) // of such a text strconv knows no error but the overflow
	return f + 0                                 // -0 + 0 is 0
}

// notUTF8 is the message about an invalid string.
const notUTF8 = "the string is not valid UTF-8"

// describe names the character at src[i], for messages.
func describe(src []byte, i int) string {
	if i >= len(src) {
		return "the end of the text"
	}
	r, size := utf8.DecodeRune(src[i:])
	switch {
	case r == utf8.RuneError && size == 1:
		return "a byte that is not valid UTF-8"
	case r < 0x20 || r == 0x7F:
		return fmt.Sprintf("the control character U+%04X", r)
	}
	return strconv.QuoteRune(r)
}

// byteOrderMark is written by some editors before UTF-8 text.
const byteOrderMark = "\uFEFF"

// unexpected explains why no value begins at src[i], with a hint about common mistakes.
func unexpected(src []byte, i int) *fault {
	if i >= len(src) {
		return faultAt(i, "expected a value, found the end of the text")
	}
	switch c := src[i]; {
	case c == '\'':
		return faultAt(i, "strings need double quotes")
	case c == '/' || c == '#':
		return faultAt(i, "JSON has no comments")
	case c == ']' || c == '}':
		return faultAt(i, "expected a value, found %s; is there a comma too many?", describe(src, i))
	case c == '+' || c == '.':
		return faultAt(i, "a number begins with a digit or '-'")
	case literal(src, i, "NaN") || literal(src, i, "Infinity"):
		return faultAt(i, "JSON has no NaN and no Infinity")
	}
	return faultAt(i, "expected a value, found %s", describe(src, i))
}

// skipSpace returns the offset of the first byte from i on that is not white space.
func skipSpace(src []byte, i int) int {
	for i < len(src) && (src[i] == ' ' || src[i] == '\n' || src[i] == '\r' || src[i] == '\t') {
		i++
	}
	return i
}

// literal reports whether word stands at src[i].
func literal(src []byte, i int, word string) bool {
	return len(src)-i >= len(word) && string(src[i:i+len(word)]) == word
}

// cursor is a place in a JSON text, with the depth of the brackets around it; both readers use it.
type cursor struct {
	src    []byte
	offset int
	depth  int
}

func (c *cursor) space() { c.offset = skipSpace(c.src, c.offset) }

// enter steps over an opening bracket.
func (c *cursor) enter(maxDepth int) *fault {
	if c.depth++; c.depth > maxDepth {
		return faultAt(c.offset, "the text is nested more than %d levels deep", maxDepth)
	}
	c.offset++
	c.space()
	return nil
}

// empty steps over the closing bracket of an array or object without parts.
func (c *cursor) empty(closing byte) bool {
	if c.offset < len(c.src) && c.src[c.offset] == closing {
		c.offset++
		c.depth--
		return true
	}
	return false
}

// more steps over a comma, or over the closing bracket, after which more is false.
func (c *cursor) more(closing byte) (more bool, f *fault) {
	c.space()
	if c.empty(closing) {
		return false, nil
	}
	if c.offset < len(c.src) && c.src[c.offset] == ',' {
		c.offset++
		c.space()
		return true, nil
	}
	return false, faultAt(c.offset, "expected ',' or '%c', found %s", closing, describe(c.src, c.offset))
}

// colon steps over the colon after a member name, up to the value.
func (c *cursor) colon() *fault {
	if c.space(); c.offset >= len(c.src) || c.src[c.offset] != ':' {
		return faultAt(c.offset, "expected ':' after a field name, found %s", describe(c.src, c.offset))
	}
	c.offset++
	c.space()
	return nil
}

// quote reports why no member name begins at the cursor; nil if one does.
func (c *cursor) quote() *fault {
	if c.offset < len(c.src) {
		switch c.src[c.offset] {
		case '"':
			return nil
		case '}':
			return faultAt(c.offset, "expected a field, found '}'; is there a comma too many?")
		case '\'', '/', '#':
			return unexpected(c.src, c.offset)
		}
	}
	return faultAt(c.offset, "expected a field name in double quotes, found %s", describe(c.src, c.offset))
}

// end reports text after the value; nil at the end of the text.
func (c *cursor) end() *fault {
	if c.space(); c.offset < len(c.src) {
		return faultAt(c.offset, "unexpected %s after the value", describe(c.src, c.offset))
	}
	return nil
}

// TooDeep reports whether a JSON text is nested more than so many levels deep.
func TooDeep(text []byte, levels int) bool {
	depth := 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '[', '{':
			if depth++; depth > levels {
				return true
			}
		case ']', '}':
			depth--
		case '"':
			i = skipString(text, i+1) - 1
		}
	}
	return false
}
