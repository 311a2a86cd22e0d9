// Package agentview says in few words what the recorded steps of an agent (package agentloop) are about: for lists of records, trees and
// answers. It reads whatever is recorded: what a step lacks, its line lacks.
package agentview

import (
	"fmt"
	"strings"
	"time"

	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/agentsteps"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// Line is a step of an agent in few words. Texts may be long, have line ends, and hold whatever a model or a tool has said.
type Line struct {
	Key, Kind string
	// Depth is how many agents stand above the step's.
	Depth int
	// By is the model, the tool or the agent that the step is of; "asked" of a question, "answered" of an answer.
	By string
	// Took is how long the model or the tool worked, 0 where nothing did, or nothing has said so.
	Took time.Duration
	// In and Out are the tokens of a reply, where Counted.
	In, Out int64
	Counted bool
	// CostMicros are the sums of the agent with this step in millionths of a dollar, where Priced.
	CostMicros int64
	Priced     bool
	// Text says what was called, returned, asked or answered.
	Text string
	// Failed says that it is an error.
	Failed bool
}

// LineOf returns the line of a record; ok is false if it is no step of an agent. Kinds of steps are names that other executors may use
// too: of those an agent's step has the members.
func LineOf(r *history.Record) (l Line, ok bool) {
	p := &r.Payload
	b := body(p.AgentStep)
	l.Key, l.Kind, _, ok = p.Step()
	if !ok || !isAgents(l.Kind, b) || ofEngine(l.Kind) && p.AgentID == "" && p.NodeType != "llm_call" {
		return Line{}, false
	}
	l.Depth = strings.Count(l.Key, "/")
	l.Took = time.Duration(b.number("workMs")) * time.Millisecond
	if totals := b.object("totals"); totals != nil {
		_, l.Priced = totals["cost_micros"].(float64)
		l.CostMicros = totals.number("cost_micros")
	}
	if usage := b.object("usage"); usage != nil {
		l.In, l.Out, l.Counted = usage.number("prompt_tokens"), usage.number("completion_tokens"), true
	}
	switch l.Kind {
	case "begun":
		l.By, l.Text = b.text("agent"), b.text("task")
	case "reply":
		l.By, l.Text = b.text("model"), saidText(b)
	case "tried":
		l.Failed, l.Text = true, triedText(b)
	case "result":
		l.By, l.Failed = b.text("tool"), b.object("error") != nil
		l.Text = resultText(b)
	case agentsteps.Piece:
		l.By, l.Text = "piece", Bytes(int64(len(b.text(agentsteps.PieceMember))))+" of the result that follows"
	case "decided":
		l.By, l.Text = "decided", strings.TrimSpace(b.text("decision")+" "+b.text("reason"))
		if b.text("decision") == "return" {
			l.Text = "asks " + b.text("model") + " again"
		}
	case "question":
		l.By, l.Text = "asked", askedText(b, p.Prompt)
	case "answer":
		l.By, l.Text = "answered", AnswerText(nil, p.SignalPayload, b.flag("expired"))
	case "compacted":
		l.By, l.Text = "compacts", compactedText(b)
		if model := b.text("model"); model != "" {
			l.By = model
		}
	case "woken":
		l.By = "goes on"
	case agentsteps.Continued:
		l.By, l.Text = "goes on", "after "+strings.TrimSpace(b.text(agentsteps.SeamCode)+" "+b.text(agentsteps.SeamMessage))
		if b.text(agentsteps.SeamConfig) == agentsteps.SeamCurrent {
			l.Text = "with today's configuration, " + l.Text
		}
	case agentsteps.Reconfigured:
		l.By, l.Text = "reconfigured", reconfiguredText(b)
	case agentsteps.Answered:
		l.By, l.Text = "answered", AnswerText(nil, b.object("payload"), b.flag(agentsteps.NobodyAnswered))
	}
	return l, true
}

// isAgents tells the steps of agents from those of other executors.
func isAgents(kind string, b body) bool {
	has := func(names ...string) bool {
		for _, name := range names {
			if _, ok := b[name]; !ok {
				return false
			}
		}
		return true
	}
	switch kind {
	case "begun":
		return has("agent", "task")
	case "reply":
		return has("calls", "model")
	case "tried":
		return has("code", "try")
	case "result":
		return has("tool")
	case agentsteps.Piece:
		return has("piece", agentsteps.PieceMember)
	case "decided":
		return has("decision")
	case "question":
		return has("about", "calls")
	case "answer":
		return isQuestionKey(b.text("key"))
	case "woken":
		return true
	case agentsteps.Continued:
		return has(agentsteps.SeamCode, agentsteps.SeamMessage)
	case agentsteps.Reconfigured:
		return has("config", "configHash")
	case agentsteps.Answered:
		return has("payload")
	case "compacted":
		return has("upto")
	}
	return false
}

// ofEngine reports whether a kind of steps is the engine's, so that those of all executors look alike.
func ofEngine(kind string) bool { return kind == "answer" || kind == "woken" }

// isQuestionKey reports whether a key is one that agents give questions: q and a number.
func isQuestionKey(key string) bool {
	digits, ok := strings.CutPrefix(key, "q")
	return ok && digits != "" && strings.Trim(digits, "0123456789") == ""
}

// saidText is what a model has replied: the calls that it wants, or else its text.
func saidText(b body) string {
	calls := b.list("calls")
	text := strings.TrimSpace(b.text("text"))
	if len(calls) == 0 {
		if finish := b.text("finish"); finish == "length" {
			return "cut: " + text
		}
		return text
	}
	var names []string
	times := map[string]int{}
	for _, c := range calls {
		name := body(object(c)).text("name")
		if times[name]++; times[name] == 1 {
			names = append(names, name)
		}
	}
	for i, name := range names {
		if n := times[name]; n > 1 {
			names[i] = fmt.Sprintf("%s %d×", name, n)
		}
	}
	return "calls " + strings.Join(names, ", ")
}

// reconfiguredText says which models an agent asks from now on, and within which budgets.
func reconfiguredText(b body) string {
	config := b.object("config")
	var models []string
	for _, m := range config.list("models") {
		models = append(models, body(object(m)).text("model"))
	}
	text := "asks " + strings.Join(models, ", ")
	if budgets := config.object("budgets"); budgets != nil {
		text += " within " + string(jsonvalue.Canonical(map[string]any(budgets)))
	}
	return text
}

func triedText(b body) string {
	text := strings.TrimSpace(b.text("code") + " " + b.text("message"))
	if class := b.text("class"); class != "" {
		if status := b.number("status"); status > 0 {
			class += ", status " + fmt.Sprint(status)
		}
		text += " (" + class + ")"
	}
	at, err := history.ParseTimestamp(b.text("retryAt"))
	switch next := b.text("next"); {
	case next != "" && err == nil:
		return text + "; goes on with " + next + " at " + at.UTC().Format("15:04:05Z")
	case next != "":
		return text + "; goes on with " + next
	case err == nil:
		return text + "; again at " + at.UTC().Format("15:04:05Z")
	}
	return text
}

func resultText(b body) string {
	by := ""
	switch b.text("by") {
	case "person":
		by = ", given by a person"
	}
	if changed := b.list("toolChanged"); len(changed) > 0 {
		what := make([]string, len(changed))
		for i := range changed {
			what[i], _ = changed[i].(string)
		}
		by += "; changed since the agent began: the tool's " + strings.Join(what, ", ")
	}
	if e := b.object("error"); e != nil {
		return strings.TrimSpace("failed: "+e.text("code")+" "+e.text("message")) + by
	}
	if b.object("arguments") != nil {
		by += ", called with arguments that a person has edited"
	}
	n := b.number("bytes")
	if _, counted := b["bytes"]; !counted {
		n = int64(jsonvalue.Size(b["output"], 0))
	}
	return Bytes(n) + by
}

func askedText(b body, prompt string) string {
	if b.text("about") == "person" {
		return prompt
	}
	var parts []string
	for _, c := range Calls(b) {
		parts = append(parts, c.Tool+" "+string(jsonvalue.Canonical(c.Arguments)))
	}
	return strings.Join(parts, ", ")
}

func compactedText(b body) string {
	upto := b.text("upto")
	switch {
	case b.number("shrunk") > 0:
		return "results up to " + upto + " as previews"
	case b.text("summary") != "":
		return "sums up all up to " + upto + ": " + b.text("summary")
	}
	return "leaves out all up to " + upto
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

// body is that of a step. Its readers forgive what is not there.
type body map[string]any

func (b body) text(name string) string { s, _ := b[name].(string); return s }

func (b body) flag(name string) bool { v, _ := b[name].(bool); return v }

func (b body) number(name string) int64 {
	n, _ := b[name].(float64)
	if !(n >= 0 && n < 1<<53) {
		return 0
	}
	return int64(n)
}

func (b body) object(name string) body { m, _ := b[name].(map[string]any); return m }

func (b body) list(name string) []any { l, _ := b[name].([]any); return l }

func object(v any) map[string]any { m, _ := v.(map[string]any); return m }
