package jsonschema

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

type patternFault struct{ message, hint string }

// checkPattern returns the pattern that the library is to compile: the author's if Go's engine reads it as ECMAScript does, otherwise a
// placeholder for it.
func checkPattern(s string) (string, *patternFault) {
	if halfOfAPair(s) {
		return "", &patternFault{fmt.Sprintf("the pattern %q names half of a surrogate pair", s), "write the whole character"}
	}
	if x, err := compileExpression(s); err != nil {
		return "", explainPattern(s, err)
	} else if x.re == nil || x.re.String() != s {
		return placeholder(s), nil
	}
	return s, nil
}

// isPattern reports whether a value has the format regex; values other than strings have every format.
func isPattern(v any) bool {
	s, ok := v.(string)
	if !ok {
		return true
	}
	if len(s) > maxPatternFormat {
		return false
	}
	_, fault := checkPattern(s)
	return fault == nil
}

// maxPatternFormat bounds the text that is compiled because it has to have the format regex.
const maxPatternFormat = 4 << 10

// ECMAScript's white space, its complement, both as members of a Go class, and its dot.
const (
	spaces   = `\t-\r \x{A0}\x{1680}\x{2000}-\x{200A}\x{2028}\x{2029}\x{202F}\x{205F}\x{3000}\x{FEFF}`
	noSpaces = `\x00-\x08\x0E-\x1F!-\x{9F}\x{A1}-\x{167F}\x{1681}-\x{1FFF}\x{200B}-\x{2027}\x{202A}-\x{202E}\x{2030}-\x{205E}` +
		`\x{2060}-\x{2FFF}\x{3001}-\x{FEFE}\x{FF00}-\x{10FFFF}`
	anyButLineEnd = `[^\n\r\x{2028}\x{2029}]`
)

// toGo translates a regular expression of JSON Schema (ECMAScript, Unicode mode) into Go's notation: \uXXXX, \u{XXXX}
// and \cX become \x{XXXX}, \p{Script=X} becomes \p{X}, \s and the dot keep their meaning of ECMAScript.
func toGo(s string) string {
	var b strings.Builder
	inClass := false
	class := func(members string) {
		if inClass {
			b.WriteString(members)
		} else {
			b.WriteString("[" + members + "]")
		}
	}
	for i := 0; i < len(s); {
		if s[i] != '\\' || i+1 >= len(s) {
			switch {
			case s[i] == '.' && !inClass:
				b.WriteString(anyButLineEnd)
			default:
				inClass = s[i] == '[' || inClass && s[i] != ']'
				b.WriteByte(s[i])
			}
			i++
			continue
		}
		n := 2
		switch s[i+1] {
		case 's':
			class(spaces)
		case 'S':
			class(noSpaces)
		case 'u':
			r, size := unicodeEscape(s[i:])
			if n = size; n > 0 {
				fmt.Fprintf(&b, `\x{%X}`, r)
			}
		case 'c':
			if n = 0; i+2 < len(s) && isLetter(s[i+2]) {
				fmt.Fprintf(&b, `\x{%X}`, s[i+2]&0x1f)
				n = 3
			}
		case 'p', 'P':
			n = scriptClass(&b, s[i:])
		default:
			n = 0
		}
		if n == 0 {
			b.WriteString(s[i : i+2])
			n = 2
		}
		i += n
	}
	return b.String()
}

// halfOfAPair reports whether a pattern names half of a surrogate pair, which no text holds.
func halfOfAPair(s string) bool {
	for i := 0; i+1 < len(s); i++ {
		if s[i] != '\\' {
			continue
		}
		if r, size := unicodeEscape(s[i:]); size > 0 && s[i+1] == 'u' {
			if !utf8.ValidRune(r) {
				return true
			}
			i += size - 2
		}
		i++
	}
	return false
}

// unicodeEscape reads \uXXXX, a surrogate pair, or \u{XXXX}; size is 0 if s begins with anything else.
func unicodeEscape(s string) (r rune, size int) {
	if strings.HasPrefix(s, `\u{`) {
		end := strings.IndexByte(s, '}')
		if end < 0 {
			return 0, 0
		}
		n, err := strconv.ParseUint(s[3:end], 16, 32)
		if err != nil || n > utf8.MaxRune {
			return 0, 0
		}
		return rune(n), end + 1
	}
	high, ok := fourDigits(s)
	if !ok {
		return 0, 0
	}
	if utf16.IsSurrogate(high) {
		if low, ok := fourDigits(s[6:]); ok {
			if r := utf16.DecodeRune(high, low); r != utf8.RuneError {
				return r, 12
			}
		}
	}
	return high, 6
}

func fourDigits(s string) (rune, bool) {
	if len(s) < 6 || s[0] != '\\' || s[1] != 'u' {
		return 0, false
	}
	n, err := strconv.ParseUint(s[2:6], 16, 16)
	return rune(n), err == nil
}

// scriptClass writes \p{Script=X} and \p{General_Category=X} in the spelling of RE2 and returns the bytes read, 0 for
// other text.
func scriptClass(b *strings.Builder, s string) int {
	end := strings.IndexByte(s, '}')
	if end < 0 || s[2] != '{' {
		return 0
	}
	name, value, found := strings.Cut(s[3:end], "=")
	switch name {
	case "Script", "sc", "General_Category", "gc":
		if found {
			fmt.Fprintf(b, `%s{%s}`, s[:2], value)
			return end + 1
		}
	}
	return 0
}

func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

func explainPattern(s string, err error) *patternFault {
	text, _, _ := strings.Cut(strings.TrimPrefix(err.Error(), "error parsing regexp: "), " in `") // what follows repeats the pattern
	return &patternFault{fmt.Sprintf("the pattern %q is not a regular expression: %s", s, text), ""}
}
