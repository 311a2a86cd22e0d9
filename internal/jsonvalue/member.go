package jsonvalue

import "bytes"

// MemberText returns the text of a member of the object that src is, nil if it has none. If the name is given twice, the
// last one counts, as in Decode. Whether src is JSON is not looked at; of other text the result means nothing.
func MemberText(src []byte, name string) []byte {
	if start, end := MemberSpan(src, name); end > 0 {
		return src[start:end]
	}
	return nil
}

// StringText returns what the string that src begins with says, nil if it begins with none. Only a string with escapes is copied.
func StringText(src []byte) []byte {
	if len(src) == 0 || src[0] != '"' {
		return nil
	}
	text, _, _ := new(stringScanner).scan(src, 1)
	return text
}

// MemberSpan is MemberText for a member of a member, and returns the offsets of its text; zeros if there is none. It reads src once.
func MemberSpan(src []byte, path ...string) (start, end int) {
	s := spanFinder{src: src}
	if i := skipSpace(src, 0); i < len(src) && src[i] == '{' {
		s.object(i, path)
	}
	return s.start, s.end
}

type spanFinder struct {
	src        []byte
	names      stringScanner
	start, end int
}

// object looks for a path in the object that begins at src[i] and returns the offset after it.
func (s *spanFinder) object(i int, path []string) int {
	for {
		// src[i] is the brace or a comma.
		if i = skipSpace(s.src, i+1); i >= len(s.src) || s.src[i] != '"' {
			return min(i+1, len(s.src))
		}
		found, end, f := s.names.scan(s.src, i+1)
		if f != nil {
			return len(s.src)
		}
		start := skipSpace(s.src, skipSpace(s.src, end)+1) // past the colon
		switch {
		case start >= len(s.src):
			return len(s.src)
		case string(found) != path[0]:
			end = skipValue(s.src, start)
		case len(path) == 1:
			end = skipValue(s.src, start)
			s.start, s.end = start, end
		default:
			s.start, s.end = 0, 0
			if s.src[start] == '{' {
				end = s.object(start, path[1:])
			} else {
				end = skipValue(s.src, start)
			}
		}
		if i = skipSpace(s.src, end); i >= len(s.src) || s.src[i] != ',' {
			return min(i+1, len(s.src))
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
