package stdio

import (
	"bufio"
	"bytes"
	"io"
)

// line is one line of input without its end, a byte order mark and white space around it.
type line struct {
	text []byte
	// tooLong is set when the line exceeded the limit: text is then its beginning and tail its last bytes.
	tooLong bool
	tail    []byte
}

// How much of an overlong line is kept: enough to make out an id that stands at its beginning or end.
const (
	headBytes = 1024
	tailBytes = 256
)

// lineReader reads lines of bounded length. A last line without an end counts.
type lineReader struct {
	in  *bufio.Reader
	max int
}

func newLineReader(in io.Reader, max int) *lineReader {
	return &lineReader{in: bufio.NewReaderSize(in, 64<<10), max: max}
}

// next returns the next line, or the error that ended the input. Empty lines are skipped.
func (r *lineReader) next() (line, error) {
	for {
		l, err := r.read()
		if len(l.text) > 0 || l.tooLong {
			return l, nil // what ended the input will be seen by the next read
		}
		if err != nil {
			return line{}, err
		}
	}
}

func (r *lineReader) read() (line, error) {
	var l line
	// parts are the line so far: they are joined once, because a text that grows is copied, and taken from the system, several times over.
	var parts [][]byte
	length := 0
	for {
		part, err := r.in.ReadSlice('\n')
		switch {
		case l.tooLong:
			l.keepTail(part)
		case length+len(part) > r.max+1: // the line's end is not counted
			l.tooLong = true
			for _, p := range append(parts, part) {
				l.text = append(l.text, p[:min(len(p), headBytes-len(l.text))]...)
				l.keepTail(p)
			}
			parts = nil
		case err == bufio.ErrBufferFull:
			parts = append(parts, bytes.Clone(part))
			length += len(part)
		default:
			l.text = bytes.Join(append(parts, part), nil)
		}
		if err == bufio.ErrBufferFull {
			continue
		}
		l.text = trim(l.text)
		l.tail = trim(l.tail)
		return l, err
	}
}

func (l *line) keepTail(part []byte) {
	if len(part) > tailBytes {
		part = part[len(part)-tailBytes:]
	}
	l.tail = append(l.tail, part...)
	if extra := len(l.tail) - tailBytes; extra > 0 {
		l.tail = append(l.tail[:0], l.tail[extra:]...)
	}
}

var byteOrderMark = []byte("\xef\xbb\xbf")

func trim(text []byte) []byte {
	return bytes.Trim(bytes.TrimPrefix(text, byteOrderMark), " \t\r\n")
}
