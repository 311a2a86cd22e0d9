package jsonvalue

import "bytes"

// MemberText returns the text of a member of the object that src is, nil if it has none. If the name is given twice, the
// last one counts, as in Decode. Whether src is JSON is not looked at; of other text the result means nothing.
func MemberText(src []byte, name string) (value []byte) {
	i := skipSpace(src, 0)
	if i >= len(src) || src[i] != '{' {
		return nil
	}
	var names stringScanner
	for {
		// src[i] is the brace or a comma.
		if i = skipSpace(src, i+1); i >= len(src) || src[i] != '"' {
			return value
		}
		found, end, f := names.scan(src, i+1)
		if f != nil {
			return value
		}
		start := skipSpace(src, skipSpace(src, end)+1) // past the colon
		if start >= len(src) {
			return value
		}
		end = skipValue(src, start)
		if string(found) == name {
			value = src[start:end]
		}
		if i = skipSpace(src, end); i >= len(src) || src[i] != ',' {
			return value
		}
	}
}

// skipValue returns the offset after the value that begins at src[i].
func skipValue(src []byte, i int) int {
	for depth := 0; i < len(src); i++ {
		switch src[i] {
		case '"':
			if i = skipString(src, i+1); depth == 0 {
				return i
			}
			i--
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth < 0 {
				return i
			}
			if depth == 0 {
				return i + 1
			}
		case ',', ' ', '\t', '\r', '\n':
			if depth == 0 {
				return i
			}
		}
	}
	return len(src)
}

// skipString returns the offset after the string whose first byte after the quote is src[i].
func skipString(src []byte, i int) int {
	for start := i; ; i++ {
		n := bytes.IndexByte(src[i:], '"')
		if n < 0 {
			return len(src)
		}
		i += n
		escapes := 0
		for i-escapes > start && src[i-escapes-1] == '\\' {
			escapes++
		}
		if escapes%2 == 0 {
			return i + 1
		}
	}
}
