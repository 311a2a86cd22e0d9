package cli

import (
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/timeline"
)

// stepDetail is a journal entry in the table of records: its number, key and kind, and its text.
func stepDetail(r *history.Record, e *timeline.Entry, width int) string {
	n, key, kind := e.N, e.Key, e.Kind
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
	if line := e.Words; line != nil {
		var facts []string
		if line.Took > 0 {
			facts = append(facts, timeline.Elapsed(line.Took))
		}
		if line.Counted {
			facts = append(facts, fmt.Sprintf("%d+%d tokens", line.In, line.Out))
		}
		text := fmt.Sprintf("step %d %s %s", n, key, line.By)
		if len(facts) > 0 {
			text += " [" + strings.Join(facts, ", ") + "]"
		}
		return text + " " + e.Text
	}
	return strings.TrimSpace(fmt.Sprintf("step %d %s %s %s", n, key, kind, e.Text))
}

// keyWidth bounds keys and kinds under an attempt.
const keyWidth = 40

// stepRows are the rows of the journal entries of an attempt. Those of an agent name the model or tool, its time, tokens and cost; those of other
// executors have the time since the request.
func stepRows(t *timeline.Attempt) [][]string {
	var rows [][]string
	for _, e := range t.Journal.Entries {
		l := e.Words
		if l == nil {
			rows = append(rows, []string{
				"  " + cut(e.Key, keyWidth), cut(e.Kind, keyWidth), "", "", "+" + timeline.Elapsed(e.At.Sub(t.Requested)), "", "", "", "  " + cut(e.Text, errorWidth),
			})
			continue
		}
		in, out, took, cost, text := "", "", "", "", e.Text
		if l.Counted {
			in, out = fmt.Sprint(l.In), fmt.Sprint(l.Out)
		}
		if l.Took > 0 {
			took = timeline.Elapsed(l.Took)
		}
		if e.CostMicros > 0 && l.Counted {
			cost = timeline.USD(e.CostMicros)
		}
		switch {
		case e.Answer != "":
			took, text = timeline.Seconds(e.Waited), e.Answer
			if e.Waited < time.Minute {
				took = timeline.Elapsed(e.Waited)
			}
			if len(e.Calls) == 0 {
				text = e.Text + " " + e.Answer
			}
		case e.Kind == machine.StepQuestion && t.EndedSeq == 0:
			text = "waits: " + text
		}
		rows = append(rows, []string{
			"  " + strings.Repeat("  ", l.Depth) + cut(e.Key, keyWidth), cut(l.By, keyWidth), "", "", took, in, out, cost, cut(text, errorWidth),
		})
	}
	return rows
}
