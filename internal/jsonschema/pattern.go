package jsonschema

import (
	"errors"
	"fmt"
	"regexp/syntax"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

type patternFault struct{ message, hint string }

// translatePattern turns a regular expression as JSON Schema has them (ECMAScript, Unicode mode) into RE2's notation:
// \uXXXX, \u{XXXX} and \cX become \x{XXXX}, \p{Script=X} becomes \p{X}. What RE2 cannot run is a fault.
func translatePattern(s string) (string, *patternFault) {
	var b strings.Builder
	for i := 0; i < len(s); {
		if s[i] != '\\' || i+1 >= len(s) {
			b.WriteByte(s[i])
			i++
			continue
		}
		var n int
		switch s[i+1] {
		case 'u':
			r, size := unicodeEscape(s[i:])
			if size > 0 && !utf8.ValidRune(r) {
				return "", &patternFault{
					fmt.Sprintf("the pattern %q names half of a surrogate pair", s), "write the whole character",
				}
			}
			if n = size; n > 0 {
				fmt.Fprintf(&b, `\x{%X}`, r)
			}
		case 'c':
			if i+2 < len(s) && isLetter(s[i+2]) {
				fmt.Fprintf(&b, `\x{%X}`, s[i+2]&0x1f)
				n = 3
			}
		case 'p', 'P':
			n = scriptClass(&b, s[i:])
		}
		if n == 0 {
			b.WriteString(s[i : i+2])
			n = 2
		}
		i += n
	}
	out := b.String()
	if _, err := syntax.Parse(out, syntax.Perl); err != nil {
		return "", explainPattern(s, err)
	}
	return out, nil
}

// unicodeEscape reads \uXXXX, a pair of them for one character, or \u{XXXX}; size is 0 if s begins with none of them.
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

// scriptClass writes \p{Script=X} and \p{General_Category=X} as RE2 spells them and returns the bytes read, 0 for none.
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
	se, ok := errors.AsType[*syntax.Error](err)
	if !ok {
		return &patternFault{fmt.Sprintf("the pattern %q is not a regular expression", s), ""}
	}
	switch {
	case se.Code == syntax.ErrInvalidPerlOp || se.Code == syntax.ErrInvalidNamedCapture || se.Code == syntax.ErrMissingRepeatArgument:
		if strings.Contains(s, "(?=") || strings.Contains(s, "(?!") ||
			strings.Contains(s, "(?<=") || strings.Contains(s, "(?<!") {
			return &patternFault{
				fmt.Sprintf("the pattern %q uses look-around, which RE2 does not have", s),
				"combine simpler patterns with allOf and not",
			}
		}
	case se.Code == syntax.ErrInvalidEscape && len(se.Expr) == 2 && '1' <= se.Expr[1] && se.Expr[1] <= '9', se.Expr == `\k`:
		return &patternFault{
			fmt.Sprintf("the pattern %q uses a back-reference, which RE2 does not have", s),
			"check this in a node of the workflow instead",
		}
	case se.Code == syntax.ErrInvalidRepeatSize:
		return &patternFault{
			fmt.Sprintf("the pattern %q repeats more than 1000 times, the limit of RE2", s), "use maxLength for long texts",
		}
	}
	return &patternFault{
		fmt.Sprintf("the pattern %q is not a regular expression of RE2: %s in %q", s, se.Code, se.Expr), "",
	}
}
