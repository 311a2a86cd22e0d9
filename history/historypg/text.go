package historypg

import (
	"strings"
	"unicode/utf8"
)

// A text in PostgreSQL cannot contain U+0000. It is written as 01 01, and U+0001 as 01 02. This keeps the bytewise order.
var (
	escaper   = strings.NewReplacer("\x00", "\x01\x01", "\x01", "\x01\x02")
	unescaper = strings.NewReplacer("\x01\x01", "\x00", "\x01\x02", "\x01")
)

// escaped returns a text as it is stored. What is not UTF-8 is replaced.
func escaped(text string) string {
	if !utf8.ValidString(text) {
		text = strings.ToValidUTF8(text, "\uFFFD")
	}
	if strings.IndexByte(text, 0) < 0 && strings.IndexByte(text, 1) < 0 {
		return text
	}
	return escaper.Replace(text)
}

// unescaped returns a stored text as it was given.
func unescaped(text string) string {
	if strings.IndexByte(text, 1) < 0 {
		return text
	}
	return unescaper.Replace(text)
}

// noKey is the stored form of no text.
const noKey = "\x01\x03"

// key returns the stored form of an id to look up. An id that is not UTF-8 is never stored.
func key(id string) string {
	if !utf8.ValidString(id) {
		return noKey
	}
	return escaped(id)
}

func keys(ids []string) []string {
	out := make([]string, len(ids))
	for i, id := range ids {
		out[i] = key(id)
	}
	return out
}
