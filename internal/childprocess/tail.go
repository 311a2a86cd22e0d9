package childprocess

import (
	"bufio"
	"errors"
	"io"
	"strings"
	"sync"
	"time"
)

const (
	// MaxTail is how much of the end of standard error goes into a failure's text, in bytes.
	MaxTail = 4 << 10
	// MaxLine is how much of one line is logged, in bytes.
	MaxLine = 4 << 10
)

// Tail receives the standard error of a child: it passes it on line by line, and keeps its end.
type Tail struct {
	// Secret masks the secrets of the child.
	Secret Scrubber
	// Line gets each line that is not blank, cut to MaxLine; nil drops them.
	Line func(string)
	// Allowance bounds the lines passed to Line. The end is kept in any case.
	Allowance Allowance

	mu   sync.Mutex
	text []byte
}

// Allowance bounds the logged output of a child.
type Allowance struct {
	// Bytes is how much is logged; 0 means no bound.
	Bytes int
	// Window is the time after which it is allowed anew; 0 means never.
	Window time.Duration

	used  int
	began time.Time
}

// Log calls log with a line if it is allowed, and after the last allowed one with a line that reports the limit.
func (a *Allowance) Log(line string, log func(string)) {
	if now := time.Now(); a.Window > 0 && now.Sub(a.began) >= a.Window {
		a.began, a.used = now, 0
	}
	if a.Bytes > 0 && a.used >= a.Bytes {
		return
	}
	a.used += len(line)
	log(line)
	switch {
	case a.Bytes == 0 || a.used < a.Bytes:
	case a.Window > 0:
		log("… more is not logged for up to " + a.Window.String())
	default:
		log("… more is not logged")
	}
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
				if t.Line != nil {
					t.Allowance.Log(trimmed, t.Line)
				}
				begun = more
			}
		}
		begun = begun && more
		if err != nil && !more {
			return
		}
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

// String is the end of the output, at most MaxTail bytes.
func (t *Tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.TrimSpace(strings.ToValidUTF8(string(t.text), ""))
}
