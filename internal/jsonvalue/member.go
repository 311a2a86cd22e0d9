package jsonvalue

// MemberText returns the text of a member of the object src, as a part of src; nil if src has no such member. Of
// duplicate members the last counts, as in Decode. It reads src once and does not validate it; the result for text
// that is not JSON is undefined.
func MemberText(src []byte, name string) (text []byte) {
	start, end := MemberSpan(src, name)
	if end == 0 {
		return nil
	}
	return src[start:end]
}

// MemberSpan is MemberText, but returns the half-open range of the text in src; both offsets are 0 if src has no such
// member.
func MemberSpan(src []byte, name string) (from, to int) {
	var names stringScanner
	i := skipSpace(src, 0)
	for next := byte('{'); i < len(src) && src[i] == next; next = ',' {
		if i = skipSpace(src, i+1); i >= len(src) || src[i] != '"' {
			return from, to
		}
		found, end, f := names.scan(src, i+1)
		if f != nil {
			return from, to
		}
		start := skipSpace(src, skipSpace(src, end)+1) // past the colon
		if start >= len(src) {
			return from, to
		}
		end = skipValue(src, start)
		if string(found) == name {
			from, to = start, end
		}
		i = skipSpace(src, end)
	}
	return from, to
}

// StringText returns the value of the string at the start of src, nil for other text. It copies only a string with
// escapes.
func StringText(src []byte) []byte {
	if len(src) == 0 || src[0] != '"' {
		return nil
	}
	text, _, _ := new(stringScanner).scan(src, 1)
	return text
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
	for ; i < len(src); i++ {
		switch src[i] {
		case '"':
			return i + 1
		case '\\':
			i++
		}
	}
	return len(src)
}
