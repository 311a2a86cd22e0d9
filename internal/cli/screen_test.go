package cli

import (
	"fmt"
	"io"
	"testing"
)

// drawn puts lines on a screen as they are.
func drawn(t *testing.T, s *screen, lines ...string) {
	t.Helper()
	widths := make([]int, len(lines))
	for i := range lines {
		widths[i] = width(lines[i])
	}
	if err := s.draw(lines, widths); err != nil {
		t.Fatal(err)
	}
}

func newScreenOn(term *terminal) *screen {
	return &screen{out: term, size: func() (int, int, bool) { return term.columns, term.rows, true }}
}

// TestScreen: a frame takes the place of the one before, what is written otherwise stays above it, and each is one write.
func TestScreen(t *testing.T) {
	t.Parallel()
	term := &terminal{columns: 40, rows: 10}
	s := newScreenOn(term)
	io.WriteString(s, "before\n")
	drawn(t, s, "head", "a works", "b works")
	drawn(t, s, "head", "a done")
	io.WriteString(s, "a warning\n")
	drawn(t, s, "head", "a done", "b done")
	writes := term.writes
	drawn(t, s, "head", "a done", "b done")
	if term.writes != writes || writes != 5 {
		t.Errorf("%d writes, then %d", writes, term.writes)
	}
	s.settle()
	io.WriteString(s, "? ")
	io.WriteString(s, "yes\n")
	drawn(t, s, "head again")
	if got, want := term.text(), "before\na warning\nhead\na done\nb done\n? yes\nhead again\n"; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// TestScreenResized: a frame that a narrower terminal has broken into more rows is taken away whole.
func TestScreenResized(t *testing.T) {
	t.Parallel()
	term := &terminal{columns: 40, rows: 20}
	s := newScreenOn(term)
	io.WriteString(s, "before\n")
	drawn(t, s, "a line of thirty-one characters", "short")
	for _, columns := range []int{20, 25, 60} {
		term.resize(columns)
		drawn(t, s, fmt.Sprintf("now %d", columns), "short")
		if got, want := term.text(), fmt.Sprintf("before\nnow %d\nshort\n", columns); got != want {
			t.Errorf("%d columns: got\n%s\nwant\n%s", columns, got, want)
		}
	}
}

// TestScreenOfUnknownSize: a terminal that says that it has no size counts as a usual one.
func TestScreenOfUnknownSize(t *testing.T) {
	t.Parallel()
	s := &screen{out: io.Discard, size: func() (int, int, bool) { return 0, 0, true }}
	if columns, lines := s.room(); columns != 80 || lines != 23 {
		t.Errorf("%d, %d", columns, lines)
	}
}
