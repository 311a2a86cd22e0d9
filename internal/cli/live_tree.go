package cli

import (
	"strings"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/view"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/timeline"
)

// treeView keeps a tree of a run on the screen, with the records of all processes.
type treeView struct {
	follower
	screen *screen
	paint  palette
	now    func() time.Time
}

// newTreeView shows a run; with "" the first with a new record.
func newTreeView(s *session, executionID string, on *screen, paint palette, now func() time.Time) *treeView {
	v := &treeView{screen: on, paint: paint, now: now}
	v.engine, v.store, v.clean = s.engine, s.store, s.oneLine
	v.take, v.shown = func(string, []history.Record) {}, v.draw
	v.start(executionID)
	return v
}

// draw draws the tree as it is now.
func (v *treeView) draw() {
	columns, height := v.screen.room()
	var lines []string
	var widths []int
	for _, l := range v.tree.Lines(v.now(), columns, height) {
		lines, widths = append(lines, v.painted(l)), append(widths, width(l.Text()))
	}
	_ = v.screen.draw(lines, widths) // a lost terminal cannot be reported elsewhere
}

// painted is a line with the colours of its parts.
func (v *treeView) painted(l timeline.Line) string {
	var b strings.Builder
	for _, p := range l.Parts {
		b.WriteString(marks.Replace(v.styled(p)))
	}
	return b.String()
}

func (v *treeView) styled(p timeline.Part) string {
	switch p.Style {
	case timeline.Good:
		return v.paint.good(p.Text)
	case timeline.Bad:
		return v.paint.bad(p.Text)
	case timeline.Waiting:
		return v.paint.wait(p.Text)
	case timeline.Faint:
		return v.paint.faint(p.Text)
	case timeline.Bold:
		return v.paint.bold(p.Text)
	}
	return p.Text
}

func (v *treeView) flush() {} // other output appears above the tree

func (v *treeView) settle(*view.Run) {
	v.rest()
	v.screen.settle()
}

func (v *treeView) close() {
	v.settle(nil)
	v.end()
}
