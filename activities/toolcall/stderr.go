package toolcall

import (
	"bufio"
	"errors"
	"io"
	"log/slog"
	"strings"
	"sync"
)

const (
	// maxTail is how much of the end of a server's standard error goes into a failure's text, in bytes.
	maxTail = 4 << 10
	// maxLogLine is how much of one line is logged.
	maxLogLine = 4 << 10
)

// tail logs what a server prints on standard error, line by line, and keeps its end.
type tail struct {
	log    *slog.Logger
	secret scrubber

	mu   sync.Mutex
	text []byte
}

// readFrom reads until the end, or until the reader is closed.
func (t *tail) readFrom(r io.Reader) {
	lines := bufio.NewReaderSize(r, maxLogLine)
	begun := false // the line before was cut, and this is its rest
	for {
		line, err := lines.ReadSlice('\n')
		if len(line) > 0 {
			// What is kept is scrubbed line by line, so that no secret is cut in two.
			text := t.secret.scrub(strings.ToValidUTF8(string(line), "\ufffd"))
			t.keep(text)
			if trimmed := strings.TrimSpace(text); trimmed != "" && !begun {
				t.log.Info("MCP server prints", logLine, trimmed)
			}
		}
		begun = errors.Is(err, bufio.ErrBufferFull)
		if err != nil && !begun {
			return
		}
	}
}

func (t *tail) keep(text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, text...)
	if over := len(t.text) - maxTail; over > 0 {
		t.text = append(t.text[:0], t.text[over:]...)
	}
}

// String is the end of what was printed, at most maxTail bytes.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.TrimSpace(strings.ToValidUTF8(string(t.text), ""))
}
