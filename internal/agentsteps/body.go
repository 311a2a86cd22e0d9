package agentsteps

import (
	"strings"
	"time"
)

// Begun is the first entry of an agent.
type Begun struct {
	Agent, System, Task string
	Tools               []Tool
	Config              Config
}

// Tool is a tool that an agent has.
type Tool struct {
	Name, Source string
	ReadOnly     bool
}

// Config is the recorded configuration of an agent.
type Config struct {
	Name    string
	Models  []string
	Budgets map[string]any
	Agents  []Config
}

// Reply is the reply of a model.
type Reply struct {
	Model, Text, Finish string
	Calls               []Wanted
	Work                time.Duration
	Usage               *Usage
}

// Wanted is a call of a tool in a reply. Raw holds arguments that are not JSON.
type Wanted struct {
	Name      string
	Arguments map[string]any
	Raw       any
}

// Usage has the tokens of a reply.
type Usage struct{ Prompt, Completion int64 }

// Tried is a failed call of a model. It is repeated at RetryAt, a timestamp, if that is not "". Next is the model that is asked instead.
type Tried struct {
	Code, Message, Class, Next, RetryAt string
	Status                              int64
}

// Result is the result of a tool.
type Result struct {
	Tool, By string
	// Error is nil for a success.
	Error map[string]any
	// Arguments replace those of the call, as a person has edited them; nil if they are unchanged.
	Arguments map[string]any
	Output    any
	// Preview is the beginning of a large output.
	Preview string
	Large   bool
	// Bytes is the size of the output, negative if it is not recorded.
	Bytes   int64
	Changed []string
	Work    time.Duration
}

// Part is a piece of a large result, which follows.
type Part struct{ Text string }

// Decided is the decision of a hook or of the engine.
type Decided struct{ Decision, Reason, Model string }

// Question is a question to a person. About is "approval" or "person".
type Question struct {
	About string
	Calls []Ask
}

// Answer is the answer to a question. Expired is set if the deadline passed first.
type Answer struct {
	Payload map[string]any
	Expired bool
}

// Compacted notes that an agent shortened its conversation: it left out entries, replaced results by previews (Shrunk), or summed up.
type Compacted struct {
	UpTo, Summary, Model string
	Shrunk               int64
}

// Woken notes that an attempt continues after an answer or a rest.
type Woken struct{}

// Resumed notes that an agent continues after a failure, with Current under the current configuration.
type Resumed struct {
	Code, Message string
	Current       bool
}

// Changed has the new configuration of an agent that continues.
type Changed struct{ Config Config }

// Body returns the body of an agent's journal entry: a pointer to one of the types above. It is nil for an entry of another executor, which
// may use the same kinds with other fields. step has the recorded fields, answer the payload beside them. Fields that are missing, or of
// another type, are zero.
func Body(step, answer map[string]any) any {
	b := body(step)
	return bodyOf(b.text("kind"), b.text("key"), b, answer)
}

func bodyOf(kind, key string, b body, answer map[string]any) any {
	switch {
	case kind == "woken":
		return &Woken{}
	case kind == "answer" && isQuestionKey(key):
		return &Answer{answer, b.flag("expired")}
	case kind == "begun" && b.has("agent", "task"):
		return begunOf(b)
	case kind == "reply" && b.has("calls", "model"):
		return replyOf(b)
	case kind == "tried" && b.has("code", "try"):
		return &Tried{b.text("code"), b.text("message"), b.text("class"), b.text("next"), b.text("retryAt"), b.number("status")}
	case kind == "result" && b.has("tool"):
		return resultOf(b)
	case kind == Piece && b.has("piece", PieceMember):
		return &Part{b.text(PieceMember)}
	case kind == "decided" && b.has("decision"):
		return &Decided{b.text("decision"), b.text("reason"), b.text("model")}
	case kind == "question" && b.has("about", "calls"):
		return &Question{b.text("about"), asksOf(b)}
	case kind == "compacted" && b.has("upto"):
		return &Compacted{b.text("upto"), b.text("summary"), b.text("model"), b.number("shrunk")}
	case kind == Continued && b.has(SeamCode, SeamMessage):
		return &Resumed{b.text(SeamCode), b.text(SeamMessage), b.text(SeamConfig) == SeamCurrent}
	case kind == Reconfigured && b.has("config", "configHash"):
		return &Changed{configOf(b.object("config"))}
	case kind == Answered && b.has(Payload):
		return &Answer{b.object(Payload), b.flag(NobodyAnswered)}
	}
	return nil
}

func begunOf(b body) *Begun {
	begun := &Begun{Agent: b.text("agent"), System: b.text("system"), Task: b.text("task"), Config: configOf(b.object("config"))}
	for _, v := range b.list("tools") {
		t := body(object(v))
		begun.Tools = append(begun.Tools, Tool{t.text("name"), t.text("source"), t.flag("readOnly")})
	}
	return begun
}

// maxNested limits the depth of configurations that are read.
const maxNested = 9

func configOf(b body) Config { return nestedConfig(b, 0) }

func nestedConfig(b body, depth int) Config {
	c := Config{Name: b.text("name"), Budgets: b.object("budgets")}
	for _, v := range b.list("models") {
		c.Models = append(c.Models, body(object(v)).text("model"))
	}
	for _, v := range b.list("agents") {
		if depth < maxNested {
			c.Agents = append(c.Agents, nestedConfig(body(object(v)).object("config"), depth+1))
		}
	}
	return c
}

func replyOf(b body) *Reply {
	r := &Reply{Model: b.text("model"), Text: b.text("text"), Finish: b.text("finish"), Work: b.millis("workMs")}
	for _, v := range b.list("calls") {
		c := body(object(v))
		r.Calls = append(r.Calls, Wanted{c.text("name"), c.object("arguments"), c["raw"]})
	}
	if u := b.object("usage"); u != nil {
		r.Usage = &Usage{u.number("prompt_tokens"), u.number("completion_tokens")}
	}
	return r
}

func resultOf(b body) *Result {
	r := &Result{
		Tool: b.text("tool"), By: b.text("by"), Error: b.object("error"), Arguments: b.object("arguments"), Output: b["output"], Bytes: -1, Work: b.millis("workMs"),
	}
	if ref := b.object("outputRef"); ref != nil {
		r.Large, r.Preview = true, ref.text("preview")
	}
	if b.has("bytes") {
		r.Bytes = b.number("bytes")
	}
	for _, v := range b.list("toolChanged") {
		text, _ := v.(string)
		r.Changed = append(r.Changed, text)
	}
	return r
}

// Totals are the sums that an agent records with its entries.
type Totals struct {
	Turns, ToolCalls, Prompt, Cached, Completion, WorkMS, CostMicros int64
	// Priced is set if the model has a price, Estimated if the tokens are estimated, Partial if the output is partial.
	Priced, Estimated, Partial bool
	StopReason                 string
}

// ReadTotals reads recorded totals.
func ReadTotals(totals map[string]any) Totals {
	b := body(totals)
	_, priced := b["cost_micros"].(float64)
	return Totals{
		Turns: b.number("turns"), ToolCalls: b.number("tool_calls"), Prompt: b.number("prompt_tokens"), Cached: b.number("cached_tokens"),
		Completion: b.number("completion_tokens"), WorkMS: b.number("work_ms"), CostMicros: b.number("cost_micros"), Priced: priced,
		Estimated: b.flag("estimated"), Partial: b.flag("partial"), StopReason: b.text("stop_reason"),
	}
}

// isQuestionKey reports whether agents give questions such a key: q and a number.
func isQuestionKey(key string) bool {
	digits, ok := strings.CutPrefix(key, "q")
	return ok && digits != "" && strings.Trim(digits, "0123456789") == ""
}

// body has the fields of an entry, by their names in the journal.
type body map[string]any

func (b body) has(names ...string) bool {
	for _, name := range names {
		if _, ok := b[name]; !ok {
			return false
		}
	}
	return true
}

func (b body) text(name string) string { s, _ := b[name].(string); return s }

func (b body) flag(name string) bool { v, _ := b[name].(bool); return v }

// number returns a count, 0 for another value.
func (b body) number(name string) int64 {
	n, _ := b[name].(float64)
	if !(n >= 0 && n < 1<<53) {
		return 0
	}
	return int64(n)
}

func (b body) millis(name string) time.Duration {
	return time.Duration(b.number(name)) * time.Millisecond
}

func (b body) object(name string) body { m, _ := b[name].(map[string]any); return m }

func (b body) list(name string) []any { l, _ := b[name].([]any); return l }

func object(v any) map[string]any { m, _ := v.(map[string]any); return m }
