package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// errorWidth bounds the error at the end of a row of the table of attempts.
const errorWidth = 80

// writeAttemptTable prints the attempts, one a row, and under them what they add up to; nothing if there are none.
func writeAttemptTable(w io.Writer, list []*attempt) error {
	if len(list) == 0 {
		return nil
	}
	rows := [][]string{{"ACTIVITY", "TYPE", "ATTEMPT", "BY", "TOOK", "TOKENS IN", "OUT", "OUTCOME"}}
	for _, t := range list {
		in, out := tokenCells(t.usage)
		outcome := t.outcome
		if t.repairs {
			outcome = "repair " + outcome
		}
		if text := t.why(); text != "" {
			outcome += ": " + cut(text, errorWidth)
		}
		rows = append(rows, []string{
			t.name(), t.nodeType, fmt.Sprint(t.number), dash(t.byText()), dash(t.tookText()), in, out, outcome,
		})
		rows = append(rows, sentBackRows(t)...)
	}
	if err := writeTable(w, rows); err != nil {
		return err
	}
	_, err := fmt.Fprintln(w, total(list))
	return err
}

// why tells what was wrong: of an attempt that was sent back what the repair was told, if it was told in words.
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
	return [][]string{{what, "", "", "", "", "", "", "  " + cut(text, errorWidth)}}
}

func tokenCells(usage map[string]any) (in, out string) {
	if i, o, ok := tokensOf(usage); ok {
		return fmt.Sprint(i), fmt.Sprint(o)
	}
	return "-", "-"
}

// total adds the attempts up. Branches work side by side, so that the time is not that of the run.
func total(list []*attempt) string {
	var (
		took    time.Duration
		in, out int64
		counted bool
	)
	for _, t := range list {
		if d, ok := t.took(); ok {
			took += d
		}
		if i, o, ok := t.tokens(); ok {
			in, out, counted = in+i, out+o, true
		}
	}
	text := count(len(list), "attempt") + ", " + elapsed(took) + " from request to outcome"
	if counted {
		text += fmt.Sprintf(", %d tokens in, %d out", in, out)
	}
	return text
}

// attemptJSON is an attempt for programs. In the lines of the history it stands beside the payload of the outcome, which
// holds error and usage already; alone it says everything.
type attemptJSON struct {
	ExecutionID string         `json:"execution_id,omitempty"`
	NodeID      string         `json:"node_id,omitempty"`
	NodeType    string         `json:"node_type"`
	Visit       int            `json:"visit"`
	Attempt     int            `json:"attempt"`
	Branch      string         `json:"branch,omitempty"`
	Model       string         `json:"model,omitempty"`
	Tool        string         `json:"tool,omitempty"`
	Handler     string         `json:"handler,omitempty"`
	Agent       string         `json:"agent,omitempty"`
	Host        bool           `json:"host,omitempty"`
	Outcome     string         `json:"outcome"`
	RequestedAt string         `json:"requested_at"`
	DurationMS  *int64         `json:"duration_ms,omitempty"`
	TokensIn    *int64         `json:"tokens_in,omitempty"`
	TokensOut   *int64         `json:"tokens_out,omitempty"`
	WillRetry   bool           `json:"will_retry,omitempty"`
	Repairs     bool           `json:"repairs,omitempty"` // it was to put the one before right
	Code        string         `json:"code,omitempty"`
	Error       string         `json:"error,omitempty"`
	Usage       map[string]any `json:"usage,omitempty"`
	Repair      map[string]any `json:"repair,omitempty"` // what it gave to be put right
}

func encodeAttempt(t *attempt) *attemptJSON {
	j := &attemptJSON{
		NodeType: t.nodeType, Visit: t.visit, Attempt: t.number, Branch: t.branch, Host: t.host,
		Outcome: t.outcome, Repairs: t.repairs, RequestedAt: history.FormatTimestamp(t.requested),
	}
	if t.outcome == attemptRetried || t.outcome == attemptSentBack {
		j.Outcome, j.WillRetry = attemptFailed, true
	}
	switch t.nodeType {
	case "llm_call":
		j.Model = t.by
	case "tool_call":
		j.Tool = t.by
	case "step":
		j.Handler = t.by
	case "agent_delegate":
		j.Agent = t.by
	}
	if d, ok := t.took(); ok {
		j.DurationMS = new(d.Milliseconds())
	}
	if in, out, ok := t.tokens(); ok {
		j.TokensIn, j.TokensOut = &in, &out
	}
	return j
}

func writeAttemptLines(w io.Writer, id string, list []*attempt) error {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	for _, t := range list {
		j := encodeAttempt(t)
		j.ExecutionID, j.NodeID, j.Code, j.Error, j.Usage, j.Repair = id, t.node, t.code, t.error, t.usage, t.repair
		if err := encoder.Encode(j); err != nil {
			return err
		}
	}
	return nil
}
