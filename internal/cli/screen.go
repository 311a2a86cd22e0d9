package cli

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/workflows-engine/workflows-engine/internal/config"
)

// screen keeps a few lines at the end of a terminal's output, which are redrawn. Other output appears above them. Each frame is one write
// over the one before, so that nothing flickers.
type screen struct {
	mu  sync.Mutex
	out io.Writer
	// size returns the current columns and lines of the terminal; ok is false if they are unknown.
	size func() (columns, lines int, ok bool)

	frame  []string
	widths []int // of the frame's lines, in characters
	drawn  int   // the columns of the terminal when it was drawn
}

// newScreen returns the screen of a terminal; nil if the stream is not a terminal, or is a dumb one or one without a size.
func newScreen(stream any, env config.Environment) *screen {
	file, ok := stream.(*os.File)
	if !ok || !isTerminal(stream) || variable(env, "TERM") == "dumb" {
		return nil
	}
	size := func() (int, int, bool) { return terminalSize(file) }
	if _, _, ok := size(); !ok {
		return nil
	}
	return &screen{out: file, size: size}
}

// smallest is the size below which a terminal counts as one that does not report its size, and gets a usual size.
const (
	smallestColumns, smallestLines = 20, 4
	usualColumns, usualLines       = 80, 24
)

// room returns the columns and lines that a frame may have: one line less than the terminal, for the cursor.
func (s *screen) room() (columns, lines int) {
	columns, lines, ok := s.size()
	if !ok || columns < smallestColumns {
		columns = usualColumns
	}
	if !ok || lines < smallestLines {
		lines = usualLines
	}
	return columns, lines - 1
}

// draw replaces the frame by lines of these widths.
func (s *screen) draw(lines []string, widths []int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	columns, _ := s.room()
	if slices.Equal(lines, s.frame) && columns == s.drawn {
		return nil
	}
	text := s.top(columns)
	s.frame, s.widths, s.drawn = lines, widths, columns
	_, err := io.WriteString(s.out, text+s.text())
	return err
}

// settle keeps the frame in place: later text follows it.
func (s *screen) settle() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.frame, s.widths = nil, nil
}

// Write puts text above the frame.
func (s *screen) Write(text []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.frame) == 0 {
		return s.out.Write(text)
	}
	columns, _ := s.room()
	above := s.top(columns) + "\x1b[J" + string(text)
	if !strings.HasSuffix(above, "\n") {
		above += "\n"
	}
	s.drawn = columns
	if _, err := io.WriteString(s.out, above+s.text()); err != nil {
		return 0, err
	}
	return len(text), nil
}

// top moves the cursor to the first line of the frame. If the terminal has become narrower, lines take several rows.
func (s *screen) top(columns int) string {
	rows := 0
	for _, width := range s.widths {
		rows++
		if columns < s.drawn {
			rows += max(width-1, 0) / columns
		}
	}
	if rows == 0 {
		return "\r"
	}
	return fmt.Sprintf("\r\x1b[%dA", rows)
}

// text returns the frame as it is written: no line wraps, whatever widths the terminal gives characters, and
// the previous frame is gone.
func (s *screen) text() string {
	var b strings.Builder
	b.WriteString("\x1b[?7l")
	for _, line := range s.frame {
		b.WriteString(line)
		b.WriteString("\x1b[K\r\n")
	}
	b.WriteString("\x1b[J\x1b[?7h")
	return b.String()
}

// width returns how many characters a line of a frame has.
func width(text string) int { return utf8.RuneCountInString(text) }
