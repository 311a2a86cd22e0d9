package cli

import (
	"strings"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/view"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// display shows the progress of a run while a command drives or watches it.
type display interface {
	// record takes appended records; it is graph.Options.OnRecord, and does not wait.
	record(graph.RecordEvent)
	// flush returns when all records so far are shown.
	flush()
	// settle shows all records so far, up to the Seq of a run that is not nil, and no others until follow. Later output follows them.
	settle(*view.Run)
	follow()
	// close is a final settle. The store is still open.
	close()
}

// unseen shows nothing.
type unseen struct{}

func (unseen) record(graph.RecordEvent) {}
func (unseen) flush()                   {}
func (unseen) settle(*view.Run)         {}
func (unseen) follow()                  {}
func (unseen) close()                   {}

// view makes the display of a session: a tree on a terminal that can show one, else lines.
func (a *app) view(s *session, o sessionOptions) display {
	if o.display >= showTree && a.screen != nil {
		return newTreeView(s, o.shown, a.screen, a.paint, a.now)
	}
	v := newLiveView(s.config.Masked(a.stderr), a.paint, s.store)
	v.redaction, v.several = s.config.Redaction(), o.display == showLinesOfRuns
	if o.display == showWatchedTree {
		return newWatchedLines(s, o.shown, v)
	}
	return v
}

// oneLine returns a text as one line, safe for a terminal and without secrets.
func (s *session) oneLine(text string) string {
	return oneLine(s.config.Redaction().String(text))
}

// oneLine returns a text as one line, with the characters escaped that act on a terminal.
func oneLine(text string) string { return jsonvalue.Plain(strings.Join(strings.Fields(text), " ")) }
