package cli

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/workflows-engine/workflows-engine/internal/agentview"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
	"github.com/workflows-engine/workflows-engine/internal/picture"
	"github.com/workflows-engine/workflows-engine/internal/runtree"
)

// errorWidth bounds the error at the end of a row of the table of attempts.
const errorWidth = 80

// writeAttemptTable prints the attempts, one a row, and under them what they add up to; nothing if there are none; with steps
// those of each under it. The lines have at most columns characters, 0 for no bound, as far as that goes.
func writeAttemptTable(w io.Writer, list []*attempt, steps bool, columns int) error {
	if len(list) == 0 {
		return nil
	}
	rows := [][]string{{"ACTIVITY", "TYPE", "ATTEMPT", "BY", "TOOK", "TOKENS IN", "OUT", "COST", "OUTCOME"}}
	priced := false
	for _, t := range list {
		in, out := tokenCells(t.used())
		cost := "-"
		if n := t.cost(); n > 0 {
			cost, priced = agentview.USD(n), true
		}
		outcome := t.outcome + stoppedText(t.usage)
		if t.repairs {
			outcome = "repair " + outcome
		}
		if text := t.why(); text != "" {
			outcome += ": " + cut(text, errorWidth)
		}
		rows = append(rows, []string{
			t.name(), t.nodeType, fmt.Sprint(t.number), dash(t.byText()), dash(t.tookText()), in, out, cost, outcome,
		})
		if steps {
			rows = append(rows, stepRows(t)...)
		}
		rows = append(rows, sentBackRows(t)...)
	}
	leftOut := map[string]bool{"COST": !priced} // where nothing has a price
	if columns > 0 && columns < narrow {
		for _, name := range []string{"ATTEMPT", "BY", "TOKENS IN", "OUT"} {
			leftOut[name] = true
		}
	}
	rows = without(rows, leftOut)
	if err := writeTable(w, fitted(rows, columns, map[string]int{"ACTIVITY": 12, "TYPE": 8, "BY": 8, "OUTCOME": 16})); err != nil {
		return err
	}
	_, err := io.WriteString(w, wrapped(total(list)+"\n", columns))
	return err
}

// without returns the rows of a table without columns of these names.
func without(rows [][]string, names map[string]bool) [][]string {
	kept := make([][]string, len(rows))
	for i, row := range rows {
		for column, cell := range row {
			if !names[rows[0][column]] {
				kept[i] = append(kept[i], cell)
			}
		}
	}
	return kept
}

// stoppedText says why an agent has ended where it was not by its answer alone.
func stoppedText(usage map[string]any) string {
	var parts []string
	if why, _ := usage["stop_reason"].(string); why != "" && why != "answer" {
		parts = append(parts, why)
	}
	if usage["partial"] == true {
		parts = append(parts, "partial")
	}
	if len(parts) == 0 {
		return ""
	}
	return " (" + strings.Join(parts, ", ") + ")"
}

// why is what was wrong: for an attempt that was sent back the violation that the repair received, if it is a text.
func (t *attempt) why() string {
	if violation, ok := t.repair["violation"].(string); ok && violation != "" {
		return violation
	}
	return strings.TrimSpace(t.code + " " + t.error)
}

// sentBackRows shows what an attempt that was sent back had made: the answer of a model, or whatever else the executor
// gave for the repair.
func sentBackRows(t *attempt) [][]string {
	if t.repair == nil {
		return nil
	}
	what, said := "  gave", any(t.repair)
	if answer, ok := t.repair["answer"]; ok {
		what, said = "  answered", answer
	}
	text, ok := said.(string)
	if !ok {
		text = string(jsonvalue.Canonical(said))
	}
	return [][]string{{what, "", "", "", "", "", "", "", "  " + cut(text, errorWidth)}}
}

func tokenCells(usage map[string]any) (in, out string) {
	if i, o, ok := runtree.Tokens(usage); ok {
		return fmt.Sprint(i), fmt.Sprint(o)
	}
	return "-", "-"
}

// total adds the attempts up. Branches work side by side, so that the time is not that of the run.
func total(list []*attempt) string {
	var (
		took    time.Duration
		in, out int64
		micros  int64
		counted bool
	)
	for _, t := range list {
		if d, ok := t.took(); ok {
			took += d
		}
		if i, o, ok := t.tokens(); ok {
			in, out, counted = in+i, out+o, true
		}
		micros += t.cost()
	}
	text := count(len(list), "attempt") + ", " + picture.Elapsed(took) + " from request to outcome"
	if counted {
		text += fmt.Sprintf(", %d tokens in, %d out", in, out)
	}
	if micros > 0 {
		text += ", " + agentview.USD(micros)
	}
	return text
}

// performers are the members that name what performed an attempt, by node type.
var performers = map[string]string{"llm_call": "model", "tool_call": "tool", "step": "handler", "agent_delegate": "agent"}

// encodeAttempt is an attempt for programs, without the error and the usage: the lines of the history have it beside the
// payload of the outcome, which holds both.
func encodeAttempt(t *attempt) jsonvalue.Ordered {
	m := jsonvalue.Ordered{{"node_type", t.nodeType}, {"visit", float64(t.visit)}, {"attempt", float64(t.number)}}
	m.Text("branch", t.branch)
	if member := performers[t.nodeType]; member != "" {
		m.Text(member, t.by)
	}
	if t.host {
		m.Put("host", true)
	}
	willRetry := t.outcome == attemptRetried || t.outcome == attemptSentBack
	if willRetry {
		m.Put("outcome", attemptFailed)
	} else {
		m.Put("outcome", t.outcome)
	}
	m.Instant("requested_at", t.requested)
	if d, ok := t.took(); ok {
		m.Put("duration_ms", float64(d.Milliseconds()))
	}
	if in, out, ok := t.tokens(); ok {
		m.Put("tokens_in", float64(in))
		m.Put("tokens_out", float64(out))
	}
	if willRetry {
		m.Put("will_retry", true)
	}
	if t.repairs {
		m.Put("repairs", true) // it was to put the one before right
	}
	if n := len(t.steps); n > 0 {
		m.Put("steps", float64(n))
	}
	return m
}

func writeAttemptLines(w io.Writer, id string, list []*attempt) error {
	for _, t := range list {
		m := append(jsonvalue.Ordered{{"execution_id", id}, {"node_id", t.node}}, encodeAttempt(t)...)
		m.Text("code", t.code)
		m.Text("error", t.error)
		m.Object("usage", t.usage)
		m.Object("repair", t.repair) // what it answered, to be put right
		if err := writeLine(w, m); err != nil {
			return err
		}
	}
	return nil
}
