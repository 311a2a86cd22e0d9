package timeline

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/agentsteps"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// Words describe a journal entry of an agent. Texts may be long, have line ends, and hold whatever a model or a tool has said.
type Words struct {
	Key string
	// Depth is the number of agents above the one that recorded the entry.
	Depth int
	// By is the model, the tool or the agent; "asked" of a question, "answered" of an answer.
	By string
	// Took is the time that the model or the tool worked, 0 if it is not recorded.
	Took time.Duration
	// In and Out are the tokens of a reply, where Counted.
	In, Out int64
	Counted bool
	// CostMicros is the cost of the agent so far in millionths of a dollar, if Priced.
	CostMicros int64
	Priced     bool
	// Text is the call, the result, the question or the answer.
	Text string
	// Failed says that Text is an error.
	Failed bool
}

// agentBody returns the body of an agent's journal entry, nil for another executor's. The engine writes answers and wake-ups for all executors.
func agentBody(p *history.Payload) any {
	body := agentsteps.Body(p.AgentStep, p.SignalPayload)
	_, kind, _, _ := p.Step()
	if (kind == "answer" || kind == "woken") && p.AgentID == "" && p.NodeType != "llm_call" {
		return nil
	}
	return body
}

// WordsOf describes a record with an agent's journal entry; ok is false for another record.
func WordsOf(r *history.Record) (w Words, ok bool) {
	p := &r.Payload
	body := agentBody(p)
	if body == nil {
		return Words{}, false
	}
	w.Key, _, _, _ = p.Step()
	w.Depth = strings.Count(w.Key, "/")
	totals, _ := p.AgentStep["totals"].(map[string]any)
	sums := agentsteps.ReadTotals(totals)
	w.CostMicros, w.Priced = sums.CostMicros, sums.Priced
	switch b := body.(type) {
	case *agentsteps.Begun:
		w.By, w.Text = b.Agent, b.Task
	case *agentsteps.Reply:
		w.By, w.Text, w.Took = b.Model, replyText(b), b.Work
		if b.Usage != nil {
			w.In, w.Out, w.Counted = int64(b.Usage.Prompt), int64(b.Usage.Completion), true
		}
	case *agentsteps.Tried:
		w.Failed, w.Text = true, triedText(b)
	case *agentsteps.Result:
		w.By, w.Failed, w.Text, w.Took = b.Tool, b.Error != nil, resultText(b), b.Work
	case *agentsteps.Part:
		w.By, w.Text = "piece", Bytes(int64(len(b.Text)))+" of the result that follows"
	case *agentsteps.Decided:
		w.By, w.Text = "decided", strings.TrimSpace(b.Decision+" "+b.Reason)
		if b.Decision == "return" {
			w.Text = "asks " + b.Model + " again"
		}
	case *agentsteps.Question:
		w.By, w.Text = "asked", askedText(b, p.Prompt)
	case *agentsteps.Answer:
		w.By, w.Text = "answered", AnswerText(nil, b.Payload, b.Expired)
	case *agentsteps.Compacted:
		w.By, w.Text = "compacts", compactedText(b)
		if b.Model != "" {
			w.By = b.Model
		}
	case *agentsteps.Woken:
		w.By = "continues"
	case *agentsteps.Resumed:
		w.By, w.Text = "continues", "after "+strings.TrimSpace(b.Code+" "+b.Message)
		if b.Current {
			w.Text = "with today's configuration, " + w.Text
		}
	case *agentsteps.Changed:
		w.By, w.Text = "reconfigured", "asks "+strings.Join(b.Config.Models, ", ")
		if b.Config.Budgets != nil {
			w.Text += " within " + string(jsonvalue.Canonical(b.Config.Budgets))
		}
	}
	return w, true
}

// replyText returns the calls of a reply, or without any its text.
func replyText(b *agentsteps.Reply) string {
	text := strings.TrimSpace(b.Text)
	if len(b.Calls) == 0 {
		if b.Finish == "length" {
			return "cut: " + text
		}
		return text
	}
	var names []string
	times := map[string]int{}
	for _, c := range b.Calls {
		if times[c.Name]++; times[c.Name] == 1 {
			names = append(names, c.Name)
		}
	}
	for i, name := range names {
		if n := times[name]; n > 1 {
			names[i] = fmt.Sprintf("%s %d×", name, n)
		}
	}
	return "calls " + strings.Join(names, ", ")
}

func triedText(b *agentsteps.Tried) string {
	text := strings.TrimSpace(b.Code + " " + b.Message)
	if class := b.Class; class != "" {
		if b.Status > 0 {
			class += ", status " + fmt.Sprint(b.Status)
		}
		text += " (" + class + ")"
	}
	if b.Next != "" {
		text += "; continues with " + b.Next
	}
	if at, err := history.ParseTimestamp(b.RetryAt); err == nil {
		if b.Next == "" {
			text += "; again"
		}
		text += " at " + at.UTC().Format("15:04:05Z")
	}
	return text
}

func resultText(b *agentsteps.Result) string {
	by := ""
	if b.By == "person" {
		by = ", given by a person"
	}
	if len(b.Changed) > 0 {
		by += "; changed since the agent began: the tool's " + strings.Join(b.Changed, ", ")
	}
	if b.Error != nil {
		return strings.TrimSpace("failed: "+b.Error.Code+" "+b.Error.Message) + by
	}
	if b.Arguments != nil {
		by += ", called with arguments that a person has edited"
	}
	n := b.Bytes
	if n < 0 {
		n = jsonvalue.Size(b.Output, 0)
	}
	return Bytes(int64(n)) + by
}

func askedText(b *agentsteps.Question, prompt string) string {
	if b.About == "person" {
		return prompt
	}
	var parts []string
	for _, c := range b.Calls {
		parts = append(parts, c.Tool+" "+string(jsonvalue.Canonical(c.Arguments)))
	}
	return strings.Join(parts, ", ")
}

func compactedText(b *agentsteps.Compacted) string {
	switch {
	case b.Shrunk > 0:
		return "results up to " + b.UpTo + " as previews"
	case b.Summary != "":
		return "sums up all up to " + b.UpTo + ": " + b.Summary
	}
	return "leaves out all up to " + b.UpTo
}

// Bytes is a size for people.
func Bytes(n int64) string {
	switch {
	case n < 1000:
		return fmt.Sprintf("%d B", n)
	case n < 999_950:
		return fmt.Sprintf("%.1f kB", float64(n)/1e3)
	}
	return fmt.Sprintf("%.1f MB", float64(n)/1e6)
}

// USD is an amount of millionths of a dollar for people. It is not rounded to nothing.
func USD(micros int64) string {
	switch {
	case micros == 0:
		return "$0"
	case micros < 100:
		return "<$0.0001"
	case micros < 1_000_000:
		text := fmt.Sprintf("$%.4f", float64(micros)/1e6)
		for strings.HasSuffix(text, "0") && len(text) > len("$0.00") {
			text = text[:len(text)-1]
		}
		return text
	}
	return fmt.Sprintf("$%.2f", float64(micros)/1e6)
}

// AnswerText describes the decision about calls, or the answer. calls are those of the question, nil if it is not known.
func AnswerText(calls []agentsteps.Ask, payload map[string]any, expired bool) string {
	each := objectOf(payload, "calls")
	var parts []string
	decided := func(tool string, d map[string]any) {
		text := decisionText(d)
		if tool != "" {
			text = tool + ": " + text
		}
		parts = append(parts, text)
	}
	isDecision := func(d map[string]any) bool { return slices.Contains(agentsteps.Decisions, textOf(d, "decision")) }
	switch {
	case len(calls) > 0 && (isDecision(payload) || each != nil):
		for _, c := range calls {
			d := objectOf(each, c.Key)
			if d == nil {
				d = payload
			}
			decided(c.Tool, d)
		}
	case each != nil:
		for _, key := range jsonvalue.Keys(each) {
			decided(key, objectOf(each, key))
		}
	case isDecision(payload):
		decided("", payload)
	default:
		if text, ok := payload["text"].(string); ok && len(payload) == 1 {
			parts = append(parts, text)
		} else {
			parts = append(parts, string(jsonvalue.Canonical(payload)))
		}
	}
	text := strings.Join(parts, ", ")
	if expired {
		return "no answer in time: " + text
	}
	return text
}

// decisionText is a decision in the past tense, with its reason.
func decisionText(d map[string]any) string {
	text := textOf(d, "decision")
	switch text {
	case "approve":
		if text = "approved"; d["remember"] == true {
			text = "approved from now on"
		}
	case "deny":
		text = "denied"
	case "edit":
		text = "approved by edit"
	case "respond":
		text = "answered in its place"
	case "stop":
		text = "stopped"
	}
	if reason := strings.TrimSpace(textOf(d, "reason")); reason != "" {
		text = fmt.Sprintf("%s (%s)", text, reason)
	}
	return text
}

func textOf(m map[string]any, name string) string { s, _ := m[name].(string); return s }

func objectOf(m map[string]any, name string) map[string]any {
	v, _ := m[name].(map[string]any)
	return v
}
