package cli

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
	"github.com/workflows-engine/workflows-engine/internal/timeline"
)

// attempts holds the attempts of a run. facts describes the nodes of its definition.
type attempts struct {
	line  *timeline.Timeline
	facts map[string]nodeFacts
	// places maps the seq of a record of the page to its place.
	places map[int64]timeline.Place
}

func newAttempts(executionID string, facts map[string]nodeFacts) *attempts {
	return &attempts{line: timeline.New(executionID, oneLine), facts: facts, places: map[int64]timeline.Place{}}
}

// record takes the next record.
func (a *attempts) record(r *history.Record) {
	a.places[r.Seq] = a.line.Record(a.line.Root().ID, r)
}

// ended returns the attempt that a record of the page ended, nil if it did not end one.
func (a *attempts) ended(seq int64) *timeline.Attempt {
	if t := a.places[seq].Attempt; t != nil && t.EndedSeq == seq && !t.Ended.IsZero() {
		return t
	}
	return nil
}

// from returns the attempts with a record from this seq on, in the order of their requests; node "" selects all nodes.
func (a *attempts) from(seq int64, node string) []*timeline.Attempt {
	var list []*timeline.Attempt
	for _, v := range a.line.Root().Visits {
		for _, t := range v.Attempts {
			if (t.EndedSeq == 0 || t.EndedSeq >= seq) && (node == "" || v.Node == node) {
				list = append(list, t)
			}
		}
	}
	slices.SortStableFunc(list, func(a, b *timeline.Attempt) int { return cmp.Compare(a.RequestedSeq, b.RequestedSeq) })
	return list
}

// outcomes are the words for outcomes.
var outcomes = map[timeline.Outcome]string{
	timeline.Pending: "open", timeline.Completed: "completed", timeline.Failure: "failed", timeline.Retried: "failed, retried",
	timeline.SentBack: "failed, sent back", timeline.Superseded: "dropped",
}

// by names the executor of an attempt: the model, the tool, the handler or the agent.
func (a *attempts) by(t *timeline.Attempt) string {
	return cmp.Or(t.Usage.Model(), t.AgentID, a.facts[t.Visit.Node].by)
}

func (a *attempts) byText(t *timeline.Attempt) string {
	if t.Host {
		return strings.TrimSpace(a.by(t) + " (host)")
	}
	return a.by(t)
}

func (a *attempts) nodeType(t *timeline.Attempt) string {
	return cmp.Or(t.NodeType, a.facts[t.Visit.Node].nodeType)
}

// outcomeText describes an outcome in the table of records: time, executor and tokens.
func (a *attempts) outcomeText(t *timeline.Attempt) string {
	var parts []string
	for _, part := range []string{tookText(t), a.byText(t), tokensText(t.Usage)} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, ", ")
}

// tookText returns how long an attempt took; "" without an outcome.
func tookText(t *timeline.Attempt) string {
	if d, ok := t.Took(); ok {
		return timeline.Elapsed(d)
	}
	return ""
}

// tokensText returns in+out; "" if no tokens were counted.
func tokensText(usage timeline.Usage) string {
	if in, out, ok := usage.Tokens(); ok {
		return fmt.Sprintf("%d+%d tokens", in, out)
	}
	return ""
}

// errorWidth bounds the error at the end of a row of the table of attempts.
const errorWidth = 80

// write prints the attempts, one a row, and their sums below. steps prints their journal entries, too. The lines
// have about at most columns characters, 0 for no bound.
func (a *attempts) write(w io.Writer, list []*timeline.Attempt, steps bool, columns int) error {
	if len(list) == 0 {
		return nil
	}
	rows := [][]string{{"ACTIVITY", "TYPE", "ATTEMPT", "BY", "TOOK", "TOKENS IN", "OUT", "COST", "OUTCOME"}}
	priced := false
	for _, t := range list {
		in, out, cost := "-", "-", "-"
		if i, o, ok := t.Used().Tokens(); ok {
			in, out = fmt.Sprint(i), fmt.Sprint(o)
		}
		if n := t.Used().CostMicros(); n > 0 {
			cost, priced = timeline.USD(n), true
		}
		outcome := outcomes[t.Outcome] + stoppedText(t.Usage)
		if t.Repairs {
			outcome = "repair " + outcome
		}
		if text := errorText(t); text != "" {
			outcome += ": " + cut(text, errorWidth)
		}
		name := t.Visit.Node
		if n := t.Visit.Number; n > 1 {
			name += fmt.Sprintf("#%d", n) // as in effect keys
		}
		rows = append(rows, []string{name, a.nodeType(t), fmt.Sprint(t.Number), dash(a.byText(t)), dash(tookText(t)), in, out, cost, outcome})
		if steps {
			rows = append(rows, stepRows(t)...)
		}
		rows = append(rows, sentBackRows(t)...)
	}
	leftOut := map[string]bool{"COST": !priced}
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

// without returns the rows of a table without the columns of these names.
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

// stoppedText is the reason why an agent stopped, unless it answered.
func stoppedText(usage timeline.Usage) string {
	var parts []string
	if why := usage.StopReason(); why != "" && why != "answer" {
		parts = append(parts, why)
	}
	if usage.Partial() {
		parts = append(parts, "partial")
	}
	if len(parts) == 0 {
		return ""
	}
	return " (" + strings.Join(parts, ", ") + ")"
}

// errorText is the error of an attempt, or the violation that its repair received, if it is a string.
func errorText(t *timeline.Attempt) string {
	if violation, ok := t.Repair["violation"].(string); ok && violation != "" {
		return violation
	}
	return strings.TrimSpace(t.Code + " " + t.Error)
}

// sentBackRows shows the input of the repair: the answer of a model, or whatever else the executor gave.
func sentBackRows(t *timeline.Attempt) [][]string {
	if t.Repair == nil {
		return nil
	}
	name, said := "  gave", any(t.Repair)
	if answer, ok := t.Repair["answer"]; ok {
		name, said = "  answered", answer
	}
	text, ok := said.(string)
	if !ok {
		text = string(jsonvalue.Canonical(said))
	}
	return [][]string{{name, "", "", "", "", "", "", "", "  " + cut(text, errorWidth)}}
}

// total sums up the attempts. Branches work at the same time, so the sum of times differs from the run's time.
func total(list []*timeline.Attempt) string {
	var (
		took            time.Duration
		in, out, micros int64
		counted         bool
	)
	for _, t := range list {
		if d, ok := t.Took(); ok {
			took += d
		}
		if i, o, ok := t.Used().Tokens(); ok {
			in, out, counted = in+i, out+o, true
		}
		micros += t.Used().CostMicros()
	}
	text := count(len(list), "attempt") + ", " + timeline.Elapsed(took) + " from request to outcome"
	if counted {
		text += fmt.Sprintf(", %d tokens in, %d out", in, out)
	}
	if micros > 0 {
		text += ", " + timeline.USD(micros)
	}
	return text
}

// encode returns an attempt for programs, without the error and the usage: they are in the payload of its record.
func (a *attempts) encode(t *timeline.Attempt) jsonvalue.Ordered {
	m := jsonvalue.Ordered{{"node_type", a.nodeType(t)}, {"visit", float64(t.Visit.Number)}, {"attempt", float64(t.Number)}}
	m.Text("branch", t.Branch)
	if field := definition.Type(a.nodeType(t)).Info().Performer.Role; field != "" {
		m.Text(field, a.by(t))
	}
	if t.Host {
		m.Put("host", true)
	}
	willRetry := t.Outcome == timeline.Retried || t.Outcome == timeline.SentBack
	if willRetry {
		m.Put("outcome", outcomes[timeline.Failure])
	} else {
		m.Put("outcome", outcomes[t.Outcome])
	}
	m.Instant("requested_at", t.Requested)
	if d, ok := t.Took(); ok {
		m.Put("duration_ms", float64(d.Milliseconds()))
	}
	if in, out, ok := t.Used().Tokens(); ok {
		m.Put("tokens_in", float64(in))
		m.Put("tokens_out", float64(out))
	}
	if willRetry {
		m.Put("will_retry", true)
	}
	if t.Repairs {
		m.Put("repairs", true)
	}
	if n := len(t.Journal.Entries); n > 0 {
		m.Put("steps", float64(n))
	}
	return m
}

func (a *attempts) writeLines(w io.Writer, list []*timeline.Attempt) error {
	for _, t := range list {
		m := append(jsonvalue.Ordered{{"execution_id", a.line.Root().ID}, {"node_id", t.Visit.Node}}, a.encode(t)...)
		m.Text("code", t.Code)
		m.Text("error", t.Error)
		m.Object("usage", t.Usage)
		m.Object("repair", t.Repair)
		if err := writeLine(w, m); err != nil {
			return err
		}
	}
	return nil
}
