package childprocess

import (
	"bufio"
	"errors"
	"io"
	"strings"
	"sync"
)

const (
	// MaxTail is how much of the end of standard error goes into a failure's text, in bytes.
	MaxTail = 4 << 10
	// MaxLine is how much of one line is logged, in bytes.
	MaxLine = 4 << 10
)

// Tail takes in what a child prints on standard error: it hands it on line by line, and keeps its end.
type Tail struct {
	// Secret masks what must not be logged.
	Secret Scrubber
	// Line gets each line that is not blank, cut to MaxLine; nil drops them.
	Line func(string)
	// Limit bounds in bytes what is handed to Line; 0 means no bound. The end is kept in any case.
	Limit int

	handed int
	mu     sync.Mutex
	text   []byte
}

// readFrom reads until the end, or until the reader is closed.
func (t *Tail) readFrom(r io.Reader) {
	lines := bufio.NewReaderSize(r, MaxLine)
	begun := false  // the line before was cut, and this is its rest
	var rest string // of a long line, what may be the beginning of a secret
	for {
		line, err := lines.ReadSlice('\n')
		more := errors.Is(err, bufio.ErrBufferFull)
		text := rest + string(line)
		rest = ""
		if more {
			cut := t.Secret.whole(text)
			text, rest = text[:cut], text[cut:]
		}
		if text != "" {
			text = t.Secret.Scrub(strings.ToValidUTF8(text, "\ufffd"))
			t.keep(text)
			if trimmed := strings.TrimSpace(text); trimmed != "" && !begun {
				t.hand(trimmed)
				begun = more
			}
		}
		begun = begun && more
		if err != nil && !more {
			return
		}
	}
}

// hand passes a line on, unless there were too many.
func (t *Tail) hand(line string) {
	if t.Line == nil || t.Limit > 0 && t.handed >= t.Limit {
		return
	}
	t.handed += len(line)
	t.Line(line)
	if t.Limit > 0 && t.handed >= t.Limit {
		t.Line("… more is not logged")
	}
}

func (t *Tail) keep(text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, text...)
	if over := len(t.text) - MaxTail; over > 0 {
		t.text = append(t.text[:0], t.text[over:]...)
	}
}

// String is the end of what was printed, at most MaxTail bytes.
func (t *Tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.TrimSpace(strings.ToValidUTF8(string(t.text), ""))
}
