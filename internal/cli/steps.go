package cli

import (
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/agentview"
	"github.com/workflows-engine/workflows-engine/internal/picture"
	"github.com/workflows-engine/workflows-engine/internal/runtree"
)

// stepLine is a step that an executor has recorded of an attempt.
type stepLine struct {
	key, kind string
	at        time.Time
	text      string
	// agent is what the step says if it is an agent's; cost is what the agent's sums have risen by, in millionths of a dollar.
	agent *agentview.Line
	cost  int64
	// calls are those of a question, without their arguments, answer is what was answered to it, after how long.
	calls  []agentview.Call
	answer string
	waited time.Duration
}

// addStep takes the next step of an attempt.
func (t *attempt) addStep(r *history.Record) {
	key, kind, _, _ := r.Payload.Step()
	s := stepLine{key: key, kind: kind, at: r.CreatedAt, text: aboutStep(r, errorWidth)}
	if totals, ok := r.Payload.AgentStep["totals"].(map[string]any); ok {
		t.totals = totals
	}
	line, ok := agentview.LineOf(r)
	if ok && len(t.steps) > 0 && t.steps[0].agent == nil {
		ok = false // an executor of another kind, which names a step as agents do
	}
	switch {
	case !ok:
		t.steps = append(t.steps, s)
		return
	case kind == machine.StepWoken:
		return // which says no more than that the agent goes on
	}
	if kind == machine.StepAnswer {
		if q := t.question(key); q != nil {
			q.answer, q.waited = cut(agentview.AnswerText(q.calls, r.Payload.SignalPayload, r.Payload.AgentStep["expired"] == true), errorWidth), r.CreatedAt.Sub(q.at)
			return
		}
	}
	if line.Priced {
		s.cost, t.micros = max(0, line.CostMicros-t.micros), line.CostMicros
	}
	if kind == machine.StepQuestion {
		for _, c := range agentview.Approval(r.Payload.AgentStep) {
			s.calls = append(s.calls, agentview.Call{Key: c.Key, Tool: c.Tool})
		}
	}
	line.Text = cut(line.Text, errorWidth)
	s.agent = &line
	t.steps = append(t.steps, s)
}

// question is the line of a question, nil if there is none.
func (t *attempt) question(key string) *stepLine {
	for i := len(t.steps) - 1; i >= 0; i-- {
		if s := &t.steps[i]; s.key == key && s.kind == machine.StepQuestion {
			return s
		}
	}
	return nil
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
	if line, ok := agentview.LineOf(r); ok {
		var facts []string
		if line.Took > 0 {
			facts = append(facts, picture.Elapsed(line.Took))
		}
		if line.Counted {
			facts = append(facts, fmt.Sprintf("%d+%d tokens", line.In, line.Out))
		}
		text := fmt.Sprintf("step %d %s %s", n, key, line.By)
		if len(facts) > 0 {
			text += " [" + strings.Join(facts, ", ") + "]"
		}
		return text + " " + line.Text
	}
	return strings.TrimSpace(fmt.Sprintf("step %d %s %s %s", n, key, kind, aboutStep(r, width)))
}

// keyWidth bounds keys and kinds under an attempt.
const keyWidth = 40

// stepRows are the rows of an attempt's steps. Of an agent's steps they say by what, how long that took, for how many tokens and how much
// money; of others when each was recorded, after the request.
func stepRows(t *attempt) [][]string {
	var rows [][]string
	for _, s := range t.steps {
		l := s.agent
		if l == nil {
			rows = append(rows, []string{"  " + cut(s.key, keyWidth), cut(s.kind, keyWidth), "", "", "+" + picture.Elapsed(s.at.Sub(t.requested)), "", "", "", "  " + s.text})
			continue
		}
		in, out, took, cost, text := "", "", "", "", l.Text
		if l.Counted {
			in, out = fmt.Sprint(l.In), fmt.Sprint(l.Out)
		}
		if l.Took > 0 {
			took = picture.Elapsed(l.Took)
		}
		if s.cost > 0 && l.Counted {
			cost = agentview.USD(s.cost)
		}
		switch {
		case s.answer != "":
			took, text = runtree.Seconds(s.waited), s.answer
			if s.waited < time.Minute {
				took = picture.Elapsed(s.waited)
			}
			if len(s.calls) == 0 {
				text = cut(l.Text+" "+s.answer, errorWidth)
			}
		case s.kind == machine.StepQuestion && t.endedSeq == 0:
			text = cut("waits: "+text, errorWidth)
		}
		rows = append(rows, []string{
			"  " + strings.Repeat("  ", l.Depth) + cut(s.key, keyWidth), cut(l.By, keyWidth), "", "", took, in, out, cost, text,
		})
	}
	return rows
}
