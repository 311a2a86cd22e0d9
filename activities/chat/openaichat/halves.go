package openaichat

import (
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// half encodes half of a surrogate pair, which a valid text cannot contain.
func half(unit uint64) string {
	return string([]byte{0xe0 | byte(unit>>12), 0x80 | byte(unit>>6)&0x3f, 0x80 | byte(unit)&0x3f})
}

// decodeString decodes a JSON string. It keeps half of a surrogate pair at the beginning or end for joinHalves: a stream may have cut the
// string between two escapes.
func decodeString(b []byte, to *string) error {
	if err := json.Unmarshal(b, to); err != nil || len(b) < 8 || !strings.Contains(*to, "\uFFFD") {
		return err
	}
	escaped := func(text string, from, upto uint64) (uint64, bool) {
		unit, err := strconv.ParseUint(strings.TrimPrefix(text, `\u`), 16, 32)
		return unit, err == nil && strings.HasPrefix(text, `\u`) && unit >= from && unit < upto
	}
	if unit, ok := escaped(string(b[1:7]), 0xdc00, 0xe000); ok {
		*to = half(unit) + strings.TrimPrefix(*to, "\uFFFD")
	}
	if unit, ok := escaped(string(b[len(b)-7:len(b)-1]), 0xd800, 0xdc00); ok && strings.HasSuffix(*to, "\uFFFD") {
		*to = strings.TrimSuffix(*to, "\uFFFD") + half(unit)
	}
	return nil
}

// endsInHalf reports whether a text ends with the first half of a surrogate pair.
func endsInHalf(text string) bool {
	n := len(text)
	return n >= 3 && text[n-3] == 0xed && text[n-2] >= 0xa0 && text[n-2] < 0xb0
}

// joinHalves joins adjacent halves of surrogate pairs; a half alone becomes U+FFFD.
func joinHalves(text string) string {
	if utf8.ValidString(text) {
		return text
	}
	var out strings.Builder
	unit := func(at int) rune {
		return rune(text[at]&0xf)<<12 | rune(text[at+1]&0x3f)<<6 | rune(text[at+2]&0x3f)
	}
	for i := 0; i < len(text); {
		if i+6 <= len(text) && endsInHalf(text[i:i+3]) && text[i+3] == 0xed && text[i+4] >= 0xb0 {
			out.WriteRune(utf16.DecodeRune(unit(i), unit(i+3)))
			i += 6
			continue
		}
		r, size := utf8.DecodeRuneInString(text[i:])
		if r == utf8.RuneError && size == 1 && i+3 <= len(text) && text[i] == 0xed {
			size = 3
		}
		out.WriteRune(r)
		i += size
	}
	return out.String()
}
