package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// writeJSON prints a plain value as indented JSON with a line end.
func writeJSON(w io.Writer, v any) error {
	return writeEncoded(w, json.RawMessage(jsonvalue.Canonical(v)))
}

// writeEncoded prints a Go value by its json tags, indented, with <, > and & as they are.
func writeEncoded(w io.Writer, v any) error { return encode(w, v, "  ") }

// writeLine is writeEncoded on one line.
func writeLine(w io.Writer, v any) error { return encode(w, v, "") }

// encode escapes the characters that a terminal acts on, as JSON escapes controls, without a change of meaning.
func encode(w io.Writer, v any, indent string) error {
	var text strings.Builder
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", indent)
	if err := encoder.Encode(v); err != nil {
		return err
	}
	_, err := io.WriteString(w, jsonvalue.Plain(text.String()))
	return err
}

// writeTable prints rows in aligned columns with two spaces between them, and without blanks at the ends of lines.
func writeTable(w io.Writer, rows [][]string) error {
	var widths []int
	for _, row := range rows {
		for i, cell := range row {
			cell = plainCell(cell)
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	var text strings.Builder
	for _, row := range rows {
		var line strings.Builder
		for i, cell := range row {
			fmt.Fprintf(&line, "%-*s  ", widths[i], plainCell(cell))
		}
		text.WriteString(strings.TrimRight(line.String(), " "))
		text.WriteByte('\n')
	}
	_, err := io.WriteString(w, text.String())
	return err
}

// fitted cuts the cells of a table so that its lines have at most width characters. keep is the width that a column keeps, by its name:
// the column that exceeds it most is cut first. If the lines are still too long, columns keep half of it, then a quarter. A column that
// is not in keep is never cut. A width of 0 is no limit.
func fitted(rows [][]string, width int, keep map[string]int) [][]string {
	if width == 0 || len(rows) == 0 {
		return rows
	}
	widths := make([]int, len(rows[0]))
	total := 2 * (len(widths) - 1)
	for i := range widths {
		for _, row := range rows {
			widths[i] = max(widths[i], utf8.RuneCountInString(plainCell(row[i])))
		}
		total += widths[i]
	}
	for share := 1; share <= 4; share *= 2 {
		for ; total > width; total-- {
			widest, most := 0, 0
			for i, name := range rows[0] {
				if least, ok := keep[name]; ok && widths[i]-least/share > most {
					widest, most = i, widths[i]-least/share
				}
			}
			if most == 0 {
				break
			}
			widths[widest]--
		}
	}
	cutRows := make([][]string, len(rows))
	for n, row := range rows {
		cells := make([]string, len(row))
		for i, cell := range row {
			if cells[i] = cell; utf8.RuneCountInString(plainCell(cell)) > widths[i] {
				cells[i] = cut(cell, widths[i])
			}
		}
		cutRows[n] = cells
	}
	return cutRows
}

// wrapped breaks lines at blanks after at most width characters, if the words allow it; continuation lines are indented. A line that is a
// command of this program stays whole, so that it can be pasted. A width of 0 is no bound.
func wrapped(text string, width int) string {
	const least = 4
	if width <= 2*least {
		return text
	}
	var b strings.Builder
	for line := range strings.Lines(text) {
		if strings.HasPrefix(strings.TrimLeft(line, " "), program+" ") {
			b.WriteString(line)
			continue
		}
		line, ended := strings.CutSuffix(line, "\n")
		indent := max(least, min(len(line)-len(strings.TrimLeft(line, " ")), width/2))
		b.WriteString(strings.Join(folded(line, width, indent), "\n"+strings.Repeat(" ", indent)))
		if ended {
			b.WriteByte('\n')
		}
	}
	return b.String()
}

// folded splits a line at blanks into lines of at most width characters, those after the first of indent characters less, if the words allow
// it.
func folded(line string, width, indent int) []string {
	var lines []string
	var b strings.Builder
	at, begun := 0, false // begun is set once the line has more than blanks
	for i, word := range strings.Split(line, " ") {
		n := utf8.RuneCountInString(colours.ReplaceAllString(word, ""))
		switch {
		case i == 0:
		case begun && at+1+n > width:
			lines = append(lines, b.String())
			b.Reset()
			at, begun = indent, false
		default:
			b.WriteByte(' ')
			at++
		}
		b.WriteString(word)
		at += n
		begun = begun || n > 0
	}
	return append(lines, b.String())
}

// colours matches the marks of a palette.
var colours = regexp.MustCompile(markBegin + "[0-9]+" + markEnd)

// foldedRows wraps the last cells of rows of one length, so that the lines of their table have at most width characters if the words allow
// it. A width of 0 is no bound.
func foldedRows(rows [][]string, width int) [][]string {
	if width == 0 || len(rows) == 0 {
		return rows
	}
	last := len(rows[0]) - 1
	room := width
	for i := range last {
		widest := 0
		for _, row := range rows {
			widest = max(widest, utf8.RuneCountInString(plainCell(row[i])))
		}
		room -= widest + 2
	}
	if room < minFolded {
		return rows
	}
	var all [][]string
	for _, row := range rows {
		for i, line := range folded(plainCell(row[last]), room, 0) {
			cells := make([]string, last, last+1)
			if i == 0 {
				copy(cells, row)
			}
			all = append(all, append(cells, line))
		}
	}
	return all
}

// minFolded is the width below which a column is not wrapped.
const minFolded = 16

// short returns a value as one line of at most width characters.
func short(v any, width int) string {
	return cut(string(jsonvalue.Canonical(v)), width)
}

// cut shortens text to one line of width characters, including an ellipsis.
func cut(text string, width int) string {
	text = jsonvalue.Plain(strings.Join(strings.Fields(text), " "))
	if utf8.RuneCountInString(text) <= width {
		return text
	}
	return string([]rune(text)[:width-1]) + "…"
}

// age returns the time since an event in its largest unit: 42s, 7m, 3h, 12d.
func age(since, now time.Time) string {
	d := max(now.Sub(since), 0)
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds", d/time.Second)
	case d < time.Hour:
		return fmt.Sprintf("%dm", d/time.Minute)
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", d/time.Hour)
	}
	return fmt.Sprintf("%dd", d/(24*time.Hour))
}

// timeText returns a time as printed everywhere: UTC, to the second.
func timeText(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05Z") }

// excerptWidth is how much of a long line an excerpt shows.
const excerptWidth = 100

// excerpt returns the source line of a finding with a caret under the column, each line indented; "" if the place is
// unknown. Tabs become spaces, so that the caret is below its column.
func excerpt(text []byte, line, column int) string {
	if line < 1 || column < 1 {
		return ""
	}
	lines := strings.Split(string(text), "\n")
	if line > len(lines) {
		return ""
	}
	source := []rune(strings.TrimRight(lines[line-1], "\r"))
	for i, r := range source {
		if r < ' ' || r == 0x7f {
			source[i] = ' '
		}
	}
	at := min(column-1, len(source))
	from := 0
	if at > excerptWidth*3/4 {
		from = at - excerptWidth/2
	}
	shown := source[from:min(len(source), from+excerptWidth)]
	number := fmt.Sprint(line)
	gutter := strings.Repeat(" ", len(number))
	return fmt.Sprintf("  %s | %s\n  %s | %s^\n", number, string(shown), gutter, strings.Repeat(" ", at-from))
}
