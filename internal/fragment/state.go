package fragment

import (
	"fmt"
	"html/template"
	"strings"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/view"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
	"github.com/workflows-engine/workflows-engine/internal/timeline"
)

// State is the state of a run or a visit: a word and a sign, and the class of its colour.
type State struct{ Class, Sign, Word string }

// PhaseState returns the state of a run in a phase.
func PhaseState(p history.Phase) State { return StatusState(machine.Status(p)) }

// RunState returns the state of a run.
func RunState(v *view.Run) State {
	if v.Status == machine.AwaitingTimer {
		for i := range v.Pending {
			if v.Pending[i].Kind == machine.WaitDelegate { // a timer polls the agent, which works
				return StatusState(machine.Running)
			}
		}
	}
	return StatusState(v.Status)
}

// RowState returns the state of a run from its row in a list. It is that of RunState: the phase alone does not tell timers from work.
func RowState(x *history.Execution) State {
	if x.Phase != history.PhaseRunning || len(x.Waits) == 0 {
		return PhaseState(x.Phase)
	}
	status := machine.AwaitingTimer
	for i := range x.Waits {
		switch w := &x.Waits[i]; {
		case w.Kind == history.WaitActivity || w.Queued:
			return PhaseState(x.Phase)
		case w.Kind == history.WaitSubworkflow:
			status = machine.AwaitingChild
		}
	}
	return StatusState(status)
}

// StatusState returns the state of a run with a status.
func StatusState(s machine.Status) State {
	switch s {
	case machine.Completed:
		return State{"done", "✓", "completed"}
	case machine.Failed:
		return State{"failed", "✗", "failed"}
	case machine.Cancelled:
		return State{"stopped", "–", "cancelled"}
	case machine.Interrupted:
		return State{"asks", "?", "needs an answer"}
	case machine.AwaitingActivity:
		return State{"waits", "…", "waits for a host"}
	case machine.AwaitingSignal:
		return State{"waits", "…", "waits for a signal"}
	case machine.AwaitingTimer:
		return State{"waits", "…", "waits for a time"}
	case machine.AwaitingChild:
		return State{"now", "▸", "runs a subworkflow"}
	}
	return State{"now", "▸", "running"}
}

// VisitState returns the state of a visit.
func VisitState(v *timeline.Visit) State {
	switch v.State {
	case timeline.Succeeded:
		return State{"done", "✓", "done"}
	case timeline.Failed:
		if v.Next != "" {
			return State{"caught", "↷", "failed, caught"}
		}
		return State{"failed", "✗", "failed"}
	case timeline.Dropped:
		return State{"stopped", "–", "stopped"}
	case timeline.Queued:
		return State{"waits", "…", "queued"}
	case timeline.Retrying:
		return State{"waits", "↻", "retries"}
	case timeline.Sleeping:
		return State{"waits", "…", "waits for a time"}
	case timeline.Resting:
		return State{"waits", "…", "rests"}
	case timeline.Asking:
		return State{"asks", "?", "needs an answer"}
	case timeline.Listening:
		return State{"waits", "…", "waits for a signal"}
	}
	if a := v.Attempt(); a != nil && a.Host && v.Ended.IsZero() {
		return State{"waits", "…", "waits for a host"}
	}
	return State{"now", "▸", "running"}
}

// typed returns the text of a control. Render shows controls such as U+200F as escapes, which the browser would send in their place: here they are
// character references. HTML drops one line end at the beginning of a text area; the templates have one.
func typed(text string) template.HTML {
	var b strings.Builder
	for _, r := range template.HTMLEscapeString(text) {
		if jsonvalue.IsControl(r) && (r < 0x80 || r > 0x9f) { // HTML takes references to 0x80 … 0x9f for other characters
			fmt.Fprintf(&b, "&#%d;", r)
		} else {
			b.WriteRune(r)
		}
	}
	return template.HTML(b.String()) //nolint:gosec // escaped above
}

// decisions are those about a call of an agent.
var decisions = []Choice{
	{Value: "approve", Text: "Approve"}, {Value: "deny", Text: "Deny"}, {Value: "edit", Text: "Approve with other arguments"},
	{Value: "respond", Text: "Answer in its place"},
}

// timeFormat is that of shown times, which are UTC.
const timeFormat = "2006-01-02 15:04:05Z"

var funcs = template.FuncMap{
	"typed":     typed,
	"iso":       func(t time.Time) string { return t.UTC().Format(time.RFC3339) },
	"time":      func(t time.Time) string { return t.UTC().Format(timeFormat) },
	"run":       RunPath,
	"history":   HistoryPath,
	"elapsed":   timeline.Elapsed,
	"seconds":   timeline.Seconds,
	"number":    func(n *float64) string { return string(jsonvalue.Canonical(*n)) },
	"decisions": func() []Choice { return decisions },
	"bytes":     func(n int) string { return timeline.Bytes(int64(n)) },
}
