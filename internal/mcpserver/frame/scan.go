package frame

import "bytes"

// scan reads a line as it arrives, each byte once, for its depth and the place of large arguments: the longest value
// two levels deep. It does not check whether the line is JSON.
type scan struct {
	read, depth, deepest int
	kind                 uint8
	begun                int  // offset of the open value two levels deep, or 0
	longest              span // of those that have ended
}

// span is a part of a text, by its offsets.
type span struct{ start, end int }

func (s span) bytes() int { return s.end - s.start }

// The states of a scan, and the bytes that matter in each: outside of strings, in an object two levels deep, in a
// string, and after a backslash there.
const (
	outside = 1 << iota
	inMember
	inString
	afterBackslash
)

var kinds = func() (k [256]uint8) {
	for c := range k {
		k[c] = afterBackslash
	}
	for _, c := range []byte(`{}[]"`) {
		k[c] |= outside | inMember
	}
	k[':'] |= inMember
	k[','] |= inMember
	k['"'] |= inString
	k['\\'] |= inString
	return k
}()

// valueDepth is the depth of the values.
const valueDepth = 2

// add scans the next bytes of the line.
func (s *scan) add(part []byte) {
	kind := s.kind
	for i, c := range part {
		if kinds[c]&kind == 0 {
			continue
		}
		switch kind {
		case afterBackslash:
			kind = inString
			continue
		case inString:
			if c == '\\' {
				kind = afterBackslash
				continue
			}
		default:
			switch c {
			case '"':
				kind = inString
				continue
			case '{', '[':
				s.depth++
				s.deepest = max(s.deepest, s.depth)
			case '}', ']':
				if s.depth == valueDepth {
					s.end(s.read + i)
				}
				s.depth--
			case ':':
				s.begun = s.read + i + 1
			case ',':
				s.end(s.read + i)
			}
		}
		if kind = outside; s.depth == valueDepth {
			kind = inMember
		}
	}
	s.kind = kind
	s.read += len(part)
}

// end ends the open value two levels deep, if there is one, before an offset.
func (s *scan) end(offset int) {
	if s.begun > 0 && offset-s.begun > s.longest.bytes() {
		s.longest = span{s.begun, offset}
	}
	s.begun = 0
}

// besides returns how many bytes so far belong neither to the longest value nor to the open one.
func (s *scan) besides() int {
	n := s.read - s.longest.bytes()
	if s.begun > 0 {
		n -= s.read - s.begun
	}
	return n
}

// value returns the longest value of a line that has been read to its end.
func (s *scan) value(text []byte) span {
	s.end(len(text))
	v := s.longest
	v.end = v.start + len(bytes.TrimRight(text[v.start:v.end], space))
	v.start = v.end - len(bytes.TrimLeft(text[v.start:v.end], space))
	return v
}
