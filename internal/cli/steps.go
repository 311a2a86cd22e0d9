package cli

import (
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/picture"
)

// stepLine is a step that an executor has recorded of an attempt.
type stepLine struct {
	key, kind string
	at        time.Time
	text      string
}

func stepLineOf(r *history.Record) stepLine {
	key, kind, _, _ := r.Payload.Step()
	return stepLine{key: key, kind: kind, at: r.CreatedAt, text: aboutStep(r, errorWidth)}
}

// aboutStep says what a step is about, in one line: what was asked and what is shown beside it, what was answered, until when the attempt
// rests, or what the executor has recorded.
func aboutStep(r *history.Record, width int) string {
	s, _, _ := machine.StepOf(r)
	switch s.Kind {
	case machine.StepQuestion:
		text := r.Payload.Prompt
		if q := machine.QuestionOf(r); q != nil && len(q.Body) > 0 {
			text += " " + short(q.Body, width)
		}
		return cut(text, width)
	case machine.StepAnswer:
		text := short(r.Payload.SignalPayload, width)
		if s.Body["expired"] == true {
			text = "nobody answered: " + text
		}
		return cut(text, width)
	case machine.StepRest:
		return "until " + timeText(r.Payload.DueAt)
	}
	if len(s.Body) == 0 {
		return ""
	}
	return short(s.Body, width)
}

// stepDetail is a step in the table of records: its number, key and kind stand before what it is about.
func stepDetail(r *history.Record, width int) string {
	key, kind, n, _ := r.Payload.Step()
	if width == wholeWidth { // all of it
		body := maps.Clone(r.Payload.AgentStep)
		for _, name := range []string{"key", "kind", "n"} {
			delete(body, name)
		}
		parts := []string{fmt.Sprintf("step %d %s %s", n, key, kind), r.Payload.Prompt}
		if r.Payload.SignalPayload != nil {
			parts = append(parts, short(r.Payload.SignalPayload, width))
		}
		if !r.Payload.DueAt.IsZero() {
			parts = append(parts, "until "+timeText(r.Payload.DueAt))
		}
		if len(body) > 0 {
			parts = append(parts, short(body, width))
		}
		return strings.Join(strings.Fields(strings.Join(parts, " ")), " ")
	}
	return strings.TrimSpace(fmt.Sprintf("step %d %s %s %s", n, key, kind, aboutStep(r, width)))
}

// keyWidth bounds keys and kinds under an attempt.
const keyWidth = 40

// stepRows are the rows of an attempt's steps: how long after the request each was recorded stands under what the attempt took.
func stepRows(t *attempt) [][]string {
	var rows [][]string
	for _, s := range t.steps {
		rows = append(rows, []string{"  " + cut(s.key, keyWidth), cut(s.kind, keyWidth), "", "", "+" + picture.Elapsed(s.at.Sub(t.requested)), "", "", "  " + s.text})
	}
	return rows
}

// withoutSteps returns the records that are no steps of attempts.
func withoutSteps(records []history.Record) []history.Record {
	var kept []history.Record
	for _, r := range records {
		if r.Payload.AgentStep == nil {
			kept = append(kept, r)
		}
	}
	return kept
}
