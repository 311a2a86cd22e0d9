package jsonvalue

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Plain escapes the control characters of a text for people (IsControl) in JSON's form, such as \u001b: text from definitions, histories and
// outputs must not control a terminal or a page. Bytes that are not UTF-8 become the replacement character, because some terminals treat
// them as controls.
func Plain(text string) string {
	if !strings.ContainsFunc(text, IsControl) && utf8.ValidString(text) {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		if IsControl(r) {
			fmt.Fprintf(&b, `\u%04x`, r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// IsControl reports whether a character acts on a reader's screen: controls other than line ends and tabs, and those that change the
// direction of text.
func IsControl(r rune) bool {
	switch {
	case r == '\n' || r == '\t':
		return false
	case unicode.IsControl(r), unicode.Is(unicode.Bidi_Control, r), r == '\u2028', r == '\u2029':
		return true
	}
	return false
}
