package cli

import (
	"regexp"
	"strings"
	"unicode/utf8"
)

// Our pages use a small part of Markdown: headings, paragraphs, lists, tables, fenced blocks, code, bold text and links. A library for all of it and
// for terminals would be as large as the rest of the command line.

// styled is a word of a paragraph: what takes up columns, and the same with its colours.
type styled struct{ text, shown string }

// rendered renders Markdown for a terminal of a width.
func rendered(markdown string, width int, paint palette) string {
	r := renderer{width: width, paint: paint}
	lines := strings.Split(strings.TrimRight(markdown, "\n"), "\n")
	for i := 0; i < len(lines); {
		i += r.block(lines[i:])
	}
	return strings.TrimLeft(r.b.String(), "\n")
}

type renderer struct {
	b     strings.Builder
	width int
	paint palette
}

var listItem = regexp.MustCompile(`^( *)([-*]|\d+\.) +`)

// block renders the first block of lines, and returns the number of its lines.
func (r *renderer) block(lines []string) (n int) {
	line := strings.TrimSpace(lines[0])
	item := listItem.FindStringSubmatch(lines[0])
	switch {
	case line == "":
		r.b.WriteByte('\n')
		return 1
	case strings.HasPrefix(line, "```"):
		for n = 1; n < len(lines) && !strings.HasPrefix(strings.TrimSpace(lines[n]), "```"); n++ {
			r.b.WriteString(strings.TrimRight("    "+lines[n], " ") + "\n")
		}
		return min(n+1, len(lines))
	case strings.HasPrefix(line, "#"):
		r.b.WriteString(r.paint.bold(strings.TrimLeft(line, "# ")) + "\n")
		return 1
	case strings.HasPrefix(line, "|"):
		var rows [][][]styled
		for ; n < len(lines) && strings.HasPrefix(strings.TrimSpace(lines[n]), "|"); n++ {
			if n != 1 { // the rule below the heads
				rows = append(rows, r.cells(lines[n]))
			}
		}
		r.table(rows)
		return n
	case item != nil:
		text := lines[0][len(item[0]):]
		for n = 1; n < len(lines) && continues(lines[n]); n++ {
			text += " " + strings.TrimSpace(lines[n])
		}
		r.fill(r.words(text), item[1]+item[2]+" ", strings.Repeat(" ", len(item[1]+item[2])+1))
		return n
	}
	text := line
	for n = 1; n < len(lines) && continues(lines[n]); n++ {
		text += " " + strings.TrimSpace(lines[n])
	}
	r.fill(r.words(text), "", "")
	return n
}

// continues reports whether a line continues the paragraph before it.
func continues(line string) bool {
	text := strings.TrimSpace(line)
	return text != "" && text[0] != '#' && text[0] != '|' && !strings.HasPrefix(text, "```") && !listItem.MatchString(line)
}

// fill writes words in lines of the width.
func (r *renderer) fill(words []styled, first, further string) {
	for i, line := range linesOf(words, r.width-len(first)) {
		if i == 1 {
			first = further
		}
		r.b.WriteString(first + shown(line) + "\n")
	}
}

// linesOf divides words into lines of at most width characters. A longer word has a line of its own.
func linesOf(words []styled, width int) (lines [][]styled) {
	at := 0
	for _, w := range words {
		n := utf8.RuneCountInString(w.text)
		if len(lines) == 0 || at+1+n > width {
			lines, at = append(lines, nil), -1
		}
		last := len(lines) - 1
		lines[last], at = append(lines[last], w), at+1+n
	}
	return lines
}

func shown(words []styled) string {
	parts := make([]string, len(words))
	for i, w := range words {
		parts[i] = w.shown
	}
	return strings.Join(parts, " ")
}

func columnsOf(words []styled) (n int) {
	for i, w := range words {
		n += min(i, 1) + utf8.RuneCountInString(w.text)
	}
	return n
}

var links = regexp.MustCompile(`\[([^\]]*)\]\(([^)]*)\)`)

// words returns the words of a text. Code and bold text are coloured, or keep their marks where there are no colours. Links keep their text, and those
// to other sites their address.
func (r *renderer) words(text string) (words []styled) {
	text = links.ReplaceAllStringFunc(text, func(link string) string {
		m := links.FindStringSubmatch(link)
		if strings.HasPrefix(m[2], "http") && m[1] != m[2] {
			return m[1] + " (" + m[2] + ")"
		}
		return m[1]
	})
	code, bold := false, false
	for part := range strings.FieldsSeq(text) {
		var w styled
		for part != "" {
			mark, isCode := strings.IndexByte(part, '`'), true
			if at := strings.Index(part, "**"); !code && at >= 0 && (mark < 0 || at < mark) {
				mark, isCode = at, false
			}
			if mark < 0 {
				mark = len(part)
			}
			piece, length := part[:mark], 1
			painted := piece
			if code || bold {
				painted = r.paint.bold(piece)
			}
			w.text, w.shown = w.text+piece, w.shown+painted
			switch {
			case mark == len(part):
				length = 0
			case isCode:
				code = !code
			default:
				bold, length = !bold, 2
			}
			if kept := part[mark : mark+length]; !r.paint.on {
				w.text, w.shown = w.text+kept, w.shown+kept
			}
			part = part[mark+length:]
		}
		words = append(words, w)
	}
	return words
}

// cells returns the cells of a row. An escaped bar does not end one.
func (r *renderer) cells(line string) (cells [][]styled) {
	const bar = "\x00"
	line = strings.ReplaceAll(strings.TrimSpace(line), `\|`, bar)
	for cell := range strings.SplitSeq(strings.Trim(line, "|"), "|") {
		cells = append(cells, r.words(strings.ReplaceAll(cell, bar, "|")))
	}
	return cells
}

// narrowest is the width from which a column is never made narrower.
const narrowest = 8

// table writes rows in columns. The widest ones are wrapped as far as the lines are too long: first between words, then within them.
func (r *renderer) table(rows [][][]styled) {
	var widths, longest, least []int
	for _, row := range rows {
		for i, cell := range row {
			if i == len(widths) {
				widths, longest, least = append(widths, 0), append(longest, 0), append(least, narrowest)
			}
			widths[i] = max(widths[i], columnsOf(cell))
			for _, w := range cell {
				longest[i] = max(longest[i], utf8.RuneCountInString(w.text))
			}
		}
	}
	shrunk(widths, longest, columnsTotal(widths)-r.width)
	shrunk(widths, least, columnsTotal(widths)-r.width)
	for _, row := range rows {
		columns, height := make([][][]styled, len(row)), 1
		for i, cell := range row {
			columns[i] = linesOf(r.broken(cell, widths[i]), widths[i])
			height = max(height, len(columns[i]))
		}
		for k := range height {
			var line strings.Builder
			for i, column := range columns {
				var part []styled
				if k < len(column) {
					part = column[k]
				}
				line.WriteString(shown(part) + strings.Repeat(" ", max(0, widths[i]-columnsOf(part))+2))
			}
			r.b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
		}
	}
}

// columnsTotal is the width of a line of columns.
func columnsTotal(widths []int) int {
	total := -2
	for _, w := range widths {
		total += w + 2
	}
	return total
}

// shrunk makes the widest columns narrower, by so many characters together, but none narrower than its least.
func shrunk(widths, least []int, by int) {
	for ; by > 0; by-- {
		widest := -1
		for i := range widths {
			if widths[i] > least[i] && (widest < 0 || widths[i] > widths[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			return
		}
		widths[widest]--
	}
}

// broken breaks the words that are longer than width.
func (r *renderer) broken(words []styled, width int) (list []styled) {
	for _, w := range words {
		text := []rune(w.text)
		for len(text) > width {
			piece := string(text[:width])
			text = text[width:]
			part := styled{piece, piece}
			if w.shown != w.text {
				part.shown = r.paint.bold(piece)
			}
			list = append(list, part)
			w = styled{string(text), string(text)}
			if part.shown != part.text {
				w.shown = r.paint.bold(w.text)
			}
		}
		list = append(list, w)
	}
	return list
}
