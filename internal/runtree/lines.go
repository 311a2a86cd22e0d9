package runtree

import (
	"fmt"
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
	lines := make([]Line, len(list))
	for i, r := range list {
		l := Line{passed: r.passed, depth: r.depth}
		add := func(style Style, format string, args ...any) {
			l.Parts = append(l.Parts, Part{style, fmt.Sprintf(format, args...)})
		}
		add(Plain, "%s", strings.Repeat("  ", r.depth))
		if r.glyph.Text == "" {
			add(Faint, "%s", r.name)
			lines[i] = l
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
		for _, p := range r.detail {
			add(Plain, "  ")
			l.Parts = append(l.Parts, p)
		}
		lines[i] = l
	}
	return lines
}
