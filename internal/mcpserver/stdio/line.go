package stdio

import (
	"bufio"
	"bytes"
	"io"
	"runtime"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// line is one line of input without its end, a byte order mark and white space around it.
type line struct {
	text  []byte
	batch bool // an array of messages
	// value is the place of a value that may be the arguments of a tool call, in a line that is none.
	value span
	// refused says why the line is not read: text is then its beginning and tail its last bytes.
	refused *refusal
	tail    []byte
}

// How much of a line that is refused is kept: enough to make out an id that stands at its beginning or end.
const (
	headBytes = 1024
	tailBytes = 256
)

// maxDepth is the deepest nesting that is read, as by the readers of JSON text behind.
const maxDepth = 10_000

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
		if len(l.text) > 0 || l.refused != nil {
			return l, nil // what ended the input will be seen by the next read
		}
		if err != nil {
			return line{}, err
		}
	}
}

func (r *lineReader) read() (line, error) {
	var (
		l line
		s = scan{kind: outside}
		// parts are the line so far: they are joined once, because a text that grows is copied, and taken from the system, several times over.
		parts [][]byte
	)
	for {
		part, err := r.in.ReadSlice('\n')
		if s.read == 0 {
			part = bytes.TrimLeft(bytes.TrimPrefix(part, byteOrderMark), space)
			l.batch = bytes.HasPrefix(part, []byte("["))
		}
		full := err == bufio.ErrBufferFull
		if l.refused != nil {
			l.keepTail(part)
		} else {
			s.add(part)
			l.refused = r.refuse(&s, l.batch)
			switch {
			case l.refused != nil:
				for _, p := range append(parts, part) {
					l.text = append(l.text, p[:min(len(p), headBytes-len(l.text))]...)
					l.keepTail(p)
				}
				parts = nil
			case full:
				parts = append(parts, bytes.Clone(part))
			default:
				l.text = bytes.TrimRight(join(append(parts, part), s.read), space)
				l.value = s.value(l.text)
			}
		}
		if !full {
			l.tail = bytes.TrimRight(l.tail, space)
			return l, err
		}
	}
}

// join is bytes.Join that gives way between the parts: the collector cannot stop a goroutine within a copy, and everything waits while it
// tries.
func join(parts [][]byte, length int) []byte {
	text := make([]byte, 0, length)
	for _, p := range parts {
		text = append(text, p...)
		runtime.Gosched()
	}
	return text
}

// refuse says why a line is not read any further, nil if it is.
func (r *lineReader) refuse(s *scan, batch bool) *refusal {
	switch {
	case s.read > r.max+1: // the line's end is not counted
		return refuse(jsonrpc.CodeInvalidRequest, "the message is longer than %d bytes", r.max)
	case s.deepest > maxDepth:
		return refuse(jsonrpc.CodeParseError, "the message is nested more than %d levels deep", maxDepth)
	case batch && s.read > maxEnvelope:
		return refuse(jsonrpc.CodeInvalidRequest, "the batch has more than %d bytes: send the messages one by one", maxEnvelope)
	case s.besides() > maxEnvelope:
		return notArguments()
	}
	return nil
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

// space is what may stand around a message.
const space = " \t\r\n"
