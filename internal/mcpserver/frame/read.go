package frame

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"runtime"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// DefaultMaxMessageBytes fits a definition, an input and an outcome of the protocol's largest size, escaped.
const DefaultMaxMessageBytes = 16 << 20

// Text is a message, or a batch of them, as it came in, without a byte order mark and white space around it.
type Text struct {
	text  []byte
	batch bool // an array of messages
	// value is the place of a value that may be the arguments of a tool call, in a message.
	value span
	// deep is set if the text is nested deeper than the SDK reads arguments.
	deep bool
	// refused is why the text is not read: text is then its beginning and tail its last bytes.
	refused *Refusal
	tail    []byte
}

// Decode reads the text as a message; see IsBatch. Large arguments of a tool call are taken out, and are its Extra as
// Arguments. Both results are nil for a malformed response, which must not be answered.
func (t Text) Decode() (jsonrpc.Message, *Refusal) {
	if t.refused != nil {
		r := *t.refused
		r.ID = findOuterID(t.text, t.tail)
		return nil, &r
	}
	return decode(t.text, t.value, t.deep)
}

// Bytes returns the text.
func (t Text) Bytes() []byte { return t.text }

// IsEmpty reports whether the input was empty.
func (t Text) IsEmpty() bool { return len(t.text) == 0 && t.refused == nil }

// IsTooLong reports whether the text is longer than a message may be.
func (t Text) IsTooLong() bool { return t.refused != nil && t.refused.tooLong }

// IsBatch reports whether the text is an array of messages; see Members.
func (t Text) IsBatch() bool { return t.batch && t.refused == nil }

// Members returns the messages of a batch.
func (t Text) Members() ([]Text, *Refusal) {
	var members []json.RawMessage
	if err := json.Unmarshal(t.text, &members); err != nil {
		return nil, explain(t.text, err, cut{})
	}
	texts := make([]Text, len(members))
	for i, member := range members {
		s := scan{kind: outside}
		s.add(member)
		texts[i] = Text{text: member, value: s.value(member), deep: s.isDeep()}
	}
	return texts, nil
}

// The parts of a rejected text that are kept, to find an id at its beginning or end.
const (
	headBytes = 1024
	tailBytes = 256
)

// deepMessage is a nesting that the SDK's reader still accepts, and that is deeper than any value that a tool accepts.
const deepMessage = 900

func (s *scan) isDeep() bool { return s.deepest > deepMessage }

// maxDepth is the deepest nesting that is read, the same as in the JSON readers that follow.
const maxDepth = 10_000

// bufferBytes is the size of the read buffer.
const bufferBytes = 64 << 10

// Lines reads one text a line, of bounded length. A last line without a line end counts.
type Lines struct {
	in  *bufio.Reader
	max int
}

// NewLines makes a reader of lines of at most max bytes.
func NewLines(in io.Reader, max int) *Lines {
	return &Lines{bufio.NewReaderSize(in, bufferBytes), max}
}

// Next returns the next line, or the error that ended the input. Empty lines are skipped.
func (r *Lines) Next() (Text, error) {
	for {
		l, err := read(r.in, r.max, true)
		if !l.IsEmpty() {
			return l, nil // the next read meets the end of the input again
		}
		if err != nil {
			return Text{}, err
		}
	}
}

// Whole reads an input of some size, -1 if unknown, to its end as one text. The error is the input's, unless it is its
// end.
func Whole(in io.Reader, size int64, max int) (Text, error) {
	buffer := int64(bufferBytes)
	if size >= 0 {
		buffer = min(buffer, size)
	}
	text, err := read(bufio.NewReaderSize(in, int(buffer)), max, false)
	if err == io.EOF {
		return text, nil
	}
	return text, err
}

func read(in *bufio.Reader, max int, line bool) (Text, error) {
	var (
		l Text
		s = scan{kind: outside}
		// parts are the text so far: they are joined once, because a text that grows is copied, and taken from the system, several times over.
		parts [][]byte
	)
	for {
		part, err := in.ReadSlice('\n')
		if s.read == 0 {
			part = bytes.TrimLeft(bytes.TrimPrefix(part, byteOrderMark), space)
			l.batch = bytes.HasPrefix(part, []byte("["))
		}
		more := err == bufio.ErrBufferFull || err == nil && !line
		if l.refused != nil {
			l.keepTail(part)
		} else {
			s.add(part)
			l.refused = refuse(&s, l.batch, max)
			switch {
			case l.refused != nil:
				for _, p := range append(parts, part) {
					l.text = append(l.text, p[:min(len(p), headBytes-len(l.text))]...)
					l.keepTail(p)
				}
				parts = nil
			case more:
				parts = append(parts, bytes.Clone(part))
			default:
				l.text = bytes.TrimRight(join(append(parts, part), s.read), space)
				l.value, l.deep = s.value(l.text), s.isDeep()
			}
		}
		if !more {
			l.tail = bytes.TrimRight(l.tail, space)
			return l, err
		}
	}
}

// join is bytes.Join that yields between the parts: the collector cannot stop a goroutine within a copy, and all goroutines wait while it
// tries.
func join(parts [][]byte, length int) []byte {
	text := make([]byte, 0, length)
	for _, p := range parts {
		text = append(text, p...)
		runtime.Gosched()
	}
	return text
}

// refuse returns why a text is not read any further, nil if it is.
func refuse(s *scan, batch bool, max int) *Refusal {
	switch {
	case s.read > max+1: // the end of a line is not counted
		r := Refuse(jsonrpc.CodeInvalidRequest, "the message is longer than %d bytes", max)
		r.tooLong = true
		return r
	case s.deepest > maxDepth:
		return Refuse(jsonrpc.CodeParseError, "the message is nested more than %d levels deep", maxDepth)
	case batch && s.read > MaxEnvelope:
		return Refuse(jsonrpc.CodeInvalidRequest, "the batch has more than %d bytes: send the messages one by one", MaxEnvelope)
	case s.besides() > MaxEnvelope:
		return notArguments()
	}
	return nil
}

func (l *Text) keepTail(part []byte) {
	if len(part) > tailBytes {
		part = part[len(part)-tailBytes:]
	}
	l.tail = append(l.tail, part...)
	if extra := len(l.tail) - tailBytes; extra > 0 {
		l.tail = append(l.tail[:0], l.tail[extra:]...)
	}
}

var byteOrderMark = []byte("\xef\xbb\xbf")

// space is the white space around a message.
const space = " \t\r\n"
