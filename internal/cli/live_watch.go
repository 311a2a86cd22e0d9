package cli

import (
	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/view"
	"github.com/workflows-engine/workflows-engine/history"
)

// watchedLines prints a line for each event of a run that another process drives.
type watchedLines struct {
	follower
	lines *liveView
}

func newWatchedLines(s *session, executionID string, lines *liveView) *watchedLines {
	v := &watchedLines{lines: lines}
	v.engine, v.store, v.clean = s.engine, s.store, s.oneLine
	v.take = func(id string, records []history.Record) {
		lines.record(graph.RecordEvent{ExecutionID: id, Records: records})
	}
	v.shown = func() {}
	v.start(executionID)
	return v
}

func (v *watchedLines) flush() { v.lines.flush() }

func (v *watchedLines) settle(*view.Run) {
	v.rest()
	v.flush()
}

func (v *watchedLines) close() {
	v.settle(nil)
	v.end()
}
