package timeline

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/workflows-engine/workflows-engine/graph/definition"
)

// Wider terminals than these show more parts of lines.
const (
	kindWidth = 80 // the types of nodes
	richWidth = 80 // the outputs of nodes
)

// Tree shows a timeline as lines for a terminal.
type Tree struct {
	*Timeline
	// name, kind and took are the widths of columns. A column that has become wide stays wide: it would jump otherwise.
	name, kind, took int
}

// usualTook is the width of the column of times that most times fit.
const usualTook = 5

// NewTree returns the tree of a run without records. clean must return one line without anything that acts on a terminal.
func NewTree(executionID string, clean func(string) string) *Tree {
	return &Tree{Timeline: New(executionID, clean), took: usualTook}
}

// Define sets the program of a run, and makes the columns wide enough for all nodes of the root.
func (t *Tree) Define(executionID string, p *definition.Program) {
	t.Timeline.Define(executionID, p)
	if p == nil || executionID != t.root.ID {
		return
	}
	inner := map[string]bool{}
	for _, n := range p.Nodes {
		if n.Parallel == nil {
			continue
		}
		for _, b := range n.Parallel.Branches {
			reach(p, b.Entry, n.Next, inner)
		}
	}
	for _, n := range p.Nodes {
		wide := utf8.RuneCountInString(t.clean(n.ID))
		if inner[n.ID] {
			wide += 2 * depthInBranch
		}
		if n.Map != nil {
			wide = max(wide, len("  item 100"))
		}
		t.name, t.kind = max(t.name, wide), max(t.kind, len(n.Type))
	}
}

// depthInBranch is the depth of the nodes of a branch, which are below it as it is below its block.
const depthInBranch = 2

// Lines returns the tree as of a time, in lines of at most width characters, and at most height of them. The first names the run, the last
// has totals. A run without records has no lines.
func (t *Tree) Lines(now time.Time, width, height int) []Line {
	if t.root.Began.IsZero() {
		return nil
	}
	w := &rows{tree: t, now: now, rich: width >= richWidth}
	w.sequence(&t.root.Main, 0)
	if t.root.Reason != "" && t.root.Status == "cancelled" {
		w.list = append(w.list, row{glyph: Part{Waiting, "-"}, name: t.clean(t.root.Reason)})
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

// columns aligns the names, the types and the times of rows, whatever their depth.
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
		add(style, "%-*s", room, cut(r.name, room))
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

// minTrouble is the least width of a wrapped error. The line is then cut to the width of the terminal.
const minTrouble = 16
