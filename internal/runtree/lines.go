package runtree

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// Widths below which lines leave something out.
const (
	kindWidth = 80  // the types of nodes
	richWidth = 100 // the outputs of nodes
)

// Lines shows the tree as of a time, in lines of at most width characters, and at most height of them. The first names the run, the last
// has totals. A run without records has no lines.
func (t *Tree) Lines(now time.Time, width, height int) []Line {
	if t.root.began.IsZero() {
		return nil
	}
	w := &rows{tree: t, now: now, rich: width >= richWidth}
	w.sequence(&t.root.main, 0)
	if t.root.why != "" && t.root.status == "cancelled" {
		w.list = append(w.list, row{glyph: Part{Waiting, "-"}, name: t.clean(t.root.why)})
	}
	lines := []Line{t.header()}
	lines = append(lines, t.columns(w.list, width)...)
	lines = append(lines, t.totals(now, w.going))
	lines = fit(lines, height)
	for i := range lines {
		lines[i] = lines[i].trim().cut(width)
	}
	return lines
}

// columns aligns the names, the types and the times of rows, whatever their depth. A column that has become wide stays so: it would
// jump otherwise.
func (t *Tree) columns(list []row, width int) []Line {
	for i := range list {
		r := &list[i]
		r.name = t.clean(r.name)
		if r.glyph.Text != "" {
			t.name = max(t.name, 2*r.depth+utf8.RuneCountInString(r.name))
		}
		t.kind, t.took = max(t.kind, len(r.kind)), max(t.took, utf8.RuneCountInString(r.took))
	}
	name := min(t.name, max(width/3, 12))
	lines := make([]Line, 0, len(list))
	for _, r := range list {
		l := Line{passed: r.passed, depth: r.depth}
		add := func(style Style, format string, args ...any) {
			l.Parts = append(l.Parts, Part{style, fmt.Sprintf(format, args...)})
		}
		add(Plain, "%s", strings.Repeat("  ", r.depth))
		if r.glyph.Text == "" {
			add(Faint, "%s", r.name)
			lines = append(lines, l)
			continue
		}
		l.Parts = append(l.Parts, r.glyph)
		style := Plain
		if !r.passed {
			style = Bold
		}
		room := max(name-2*r.depth, 4)
		add(Plain, " ")
		add(style, "%-*s", room, Line{Parts: []Part{{Text: r.name}}}.cut(room).Text())
		if width >= kindWidth {
			add(Faint, "  %-*s", t.kind, r.kind)
		}
		add(Faint, "  %*s", t.took, r.took)
		before := len(l.Parts)
		for _, p := range r.detail {
			add(Plain, "  ")
			l.Parts = append(l.Parts, p)
		}
		var further []Line
		if r.trouble > 0 && utf8.RuneCountInString(l.Text()) > width {
			trouble := r.detail[r.trouble-1]
			at := before + 2*(r.trouble-1)
			l.Parts = slices.Delete(l.Parts, at, at+2)
			further = under(l, trouble, width)
		}
		lines = append(append(lines, l), further...)
	}
	return lines
}

// maxTrouble is how many lines an error takes at most that does not fit beside its node.
const maxTrouble = 3

// under puts a part of a line on lines below it.
func under(l Line, p Part, width int) []Line {
	indent := strings.Repeat("  ", l.depth+2)
	var lines []Line
	for _, text := range wrap(p.Text, max(width-len(indent), minTrouble), maxTrouble) {
		lines = append(lines, Line{Parts: []Part{{Plain, indent}, {p.Style, text}}, passed: l.passed, depth: l.depth + 1, further: true})
	}
	return lines
}

// minTrouble is the width in which an error is wrapped at least; what is beyond the width of the terminal is cut.
const minTrouble = 16
