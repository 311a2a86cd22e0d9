package cli

import (
	"regexp"
	"strings"
	"sync"
)

// terminal is as much of a terminal as the output of commands needs: it shows what was written on a screen of some size, and keeps what
// has gone out at the top.
type terminal struct {
	mu            sync.Mutex
	columns, rows int
	lines         [][]rune
	row, column   int
	nowrap        bool
	writes        int
}

var escape = regexp.MustCompile(`^\x1b\[(\??)([0-9;]*)([A-Za-z])`)

func (t *terminal) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.writes++
	for text := string(p); text != ""; {
		if m := escape.FindStringSubmatch(text); m != nil {
			t.act(m[1]+m[3], m[2])
			text = text[len(m[0]):]
			continue
		}
		r := []rune(text)[0]
		text = text[len(string(r)):]
		switch r {
		case '\r':
			t.column = 0
		case '\n':
			t.row, t.column = t.row+1, 0
		default:
			t.put(r)
		}
	}
	return len(p), nil
}

func (t *terminal) act(what, number string) {
	n := 0
	for _, r := range number {
		n = 10*n + int(r-'0')
	}
	switch what {
	case "A":
		t.row = max(t.row-n, len(t.lines)-t.rows, 0)
	case "K":
		t.line()
		t.lines[t.row] = t.lines[t.row][:min(t.column, len(t.lines[t.row]))]
	case "J":
		t.line()
		t.lines[t.row] = t.lines[t.row][:min(t.column, len(t.lines[t.row]))]
		t.lines = t.lines[:t.row+1]
	case "?l":
		t.nowrap = true
	case "?h":
		t.nowrap = false
	}
}

// line makes the line of the cursor.
func (t *terminal) line() {
	for len(t.lines) <= t.row {
		t.lines = append(t.lines, nil)
	}
}

func (t *terminal) put(r rune) {
	if t.column == t.columns {
		if t.nowrap {
			t.column--
		} else {
			t.row, t.column = t.row+1, 0
		}
	}
	t.line()
	for len(t.lines[t.row]) <= t.column {
		t.lines[t.row] = append(t.lines[t.row], ' ')
	}
	t.lines[t.row][t.column] = r
	t.column++
}

// resize changes the columns, and breaks lines anew as most terminals do.
func (t *terminal) resize(columns int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	var lines [][]rune
	row := t.row
	for i, line := range t.lines {
		if i == t.row {
			row = len(lines)
		}
		for len(line) > columns {
			lines, line = append(lines, line[:columns]), line[columns:]
		}
		lines = append(lines, line)
	}
	if t.row >= len(t.lines) {
		row = len(lines) + t.row - len(t.lines)
	}
	t.lines, t.row, t.columns = lines, row, columns
}

// text is all that was shown, without blanks at the ends of lines.
func (t *terminal) text() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var b strings.Builder
	for _, line := range t.lines {
		b.WriteString(strings.TrimRight(string(line), " ") + "\n")
	}
	return strings.TrimRight(b.String(), "\n") + "\n"
}
