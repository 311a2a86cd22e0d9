package timeline

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// Style is the look of a part of a line.
type Style int

// The styles.
const (
	Plain Style = iota
	Good
	Bad
	Waiting
	Faint
	Bold
)

// Part is a piece of a line in one style.
type Part struct {
	Style Style
	Text  string
}

// Line is one line of a tree.
type Line struct {
	Parts []Part
	// passed lines describe visits that have ended. They are left out first if the height is too small.
	passed bool
	depth  int
	// further lines continue the line before.
	further bool
}

// Text is the line without styles.
func (l Line) Text() string {
	var b strings.Builder
	for _, p := range l.Parts {
		b.WriteString(p.Text)
	}
	return b.String()
}

// cut shortens a text to a number of characters, with an ellipsis as the last one.
func cut(text string, width int) string {
	return Line{Parts: []Part{{Text: text}}}.cut(width).Text()
}

// cut shortens the line to a width, with an ellipsis as the last character.
func (l Line) cut(width int) Line {
	if utf8.RuneCountInString(l.Text()) <= width {
		return l
	}
	left := width - 1
	l.Parts = slices.Clone(l.Parts)
	for i, p := range l.Parts {
		if n := utf8.RuneCountInString(p.Text); n <= left {
			left -= n
			continue
		}
		l.Parts[i].Text = strings.TrimRight(string([]rune(p.Text)[:left]), " ") + "…"
		l.Parts = l.Parts[:i+1]
		break
	}
	return l
}

// trim removes blanks from the end of the line.
func (l Line) trim() Line {
	for len(l.Parts) > 0 {
		last := &l.Parts[len(l.Parts)-1]
		if last.Text = strings.TrimRight(last.Text, " "); last.Text != "" {
			break
		}
		l.Parts = l.Parts[:len(l.Parts)-1]
	}
	return l
}

// fit shortens lines to a height. It leaves out visits that have ended, the oldest first, and then the last lines before the totals.
func fit(lines []Line, height int) []Line {
	for from := 0; from < len(lines) && len(lines) > height; from++ {
		to, excess := from, len(lines)-height
		for to < len(lines) && lines[to].passed && lines[to].depth >= lines[from].depth && (to-from <= excess || lines[to].further) {
			to++
		}
		if to-from > 1 {
			lines = slices.Replace(lines, from, to, rest(told(lines[from:to]), "finished", lines[from].depth))
		}
	}
	if excess := len(lines) - height; excess > 0 && height > 2 {
		lines = slices.Replace(lines, height-2, len(lines)-1, rest(told(lines[height-2:len(lines)-1]), "more", 0))
	}
	return lines[:min(len(lines), max(height, 1))]
}

// told counts the visits that lines describe.
func told(lines []Line) (n int) {
	for i := range lines {
		if !lines[i].further {
			n++
		}
	}
	return n
}

// wrap breaks a text into lines of at most width characters, at blanks where it can, and into at most so many of them.
func wrap(text string, width, most int) []string {
	var lines []string
	left := []rune(text)
	for len(left) > width && len(lines) < most-1 {
		end, next := width, width
		for i := width; i > width/2; i-- {
			if left[i] == ' ' {
				end, next = i, i+1
				break
			}
		}
		lines = append(lines, string(left[:end]))
		left = left[next:]
	}
	return append(lines, cut(string(left), width))
}

// rest is the line in place of lines that are not shown.
func rest(count int, word string, depth int) Line {
	if count == 0 { // they continue a line that is shown
		return Line{Parts: []Part{{Faint, strings.Repeat("  ", depth) + "…"}}, depth: depth}
	}
	return Line{Parts: []Part{{Faint, fmt.Sprintf("%s… %d %s", strings.Repeat("  ", depth), count, word)}}, depth: depth}
}
