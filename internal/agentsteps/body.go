package agentsteps

import (
	"strings"
	"time"
)

// Begun is the first entry of an agent.
type Begun struct {
	Agent, System, Task string
	// Form and Wording are the versions of the journal's rules and of the texts for models.
	Form, Wording int
	Tools         []Tool
	Config        Config
	// ConfigHash is the hash of the recorded configuration, "" for a sub-agent, which does not record it.
	ConfigHash string
	// PlainTools and PlainConfig are the tools and the configuration as recorded, with fields that Tools and Config do not have.
	PlainTools, PlainConfig any
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

// Reply is the reply of a model to try Try of a turn.
type Reply struct {
	Model, Text, Finish string
	Calls               []Wanted
	Try                 int
	// RequestHash is the hash of the request.
	RequestHash string
	// Dropped counts the calls beyond those that are recorded.
	Dropped int
	Work    time.Duration
	Usage   *Usage
}

// Wanted is a call of a tool in a reply. Raw holds the beginning of arguments that cannot be used, Why the reason.
type Wanted struct {
	ID, Name  string
	Arguments map[string]any
	Raw       any
	Why       string
	// Invalid is set if the recorded call is not an object.
	Invalid bool
}

// Usage has the tokens of a reply. Cached ones are part of Prompt.
type Usage struct {
	Prompt, Cached, Completion int
	Estimated                  bool
}

// Tried is a failed call of a model, try Try of a turn or of a summary. It is repeated at RetryAt, a timestamp, if that is not "". Next is the
// model that is asked instead, To its index in the configuration; To is -1 if it is not recorded.
type Tried struct {
	Code, Message, Class, Next, RetryAt string
	Status, Try, To                     int
	// Final is set if the same request will fail again, Compact if the conversation is shortened and sent again.
	Final, Compact bool
	// After is the wait that the provider asks for.
	After, Work time.Duration
	Usage       *Usage
}

// Result is the result of a tool.
type Result struct {
	Tool, By string
	// Error is nil for a success.
	Error *Error
	// Arguments replace those of the call, as a person has edited them; nil if they are unchanged.
	Arguments map[string]any
	Output    any
	// HasOutput is set if Output is recorded, which may be null. A Large output is in pieces instead.
	HasOutput bool
	// Preview is the beginning of a large output.
	Preview string
	Large   bool
	// Bytes is the size of the output, negative if it is not recorded.
	Bytes   int
	Changed []string
	Work    time.Duration
}

// Error is the failure of a call of a tool.
type Error struct{ Code, Message string }

// Part is a piece of a large result, which follows.
type Part struct{ Text string }

// Decided is the decision of a hook or of the engine. Arguments replace those of a call; nil for other decisions.
type Decided struct {
	Decision, Reason, Model string
	Arguments               map[string]any
	Work                    time.Duration
}

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

// Compacted notes that an agent shortened its conversation: it left out entries, replaced results by previews (Shrunk), or summed up. A
// summary, or the reply that was not used as one, has Try, RequestHash, Work and Usage.
type Compacted struct {
	UpTo, Summary, Model string
	Shrunk, Try          int
	RequestHash          string
	Work                 time.Duration
	Usage                *Usage
}

// Woken notes that an attempt continues after an answer or a rest.
type Woken struct{}

// Resting notes that an attempt pauses.
type Resting struct{}

// Resumed notes that an agent continues after a failure, with Current under the current configuration.
type Resumed struct {
	Code, Message string
	Current       bool
}

// Changed has the new configuration of an agent that continues, as its hash, as recorded (Plain), and the hash of the configuration before.
type Changed struct {
	Config             Config
	Hash, PreviousHash string
	Plain              any
}

// Body returns the body of an agent's journal entry: a pointer to one of the types above. It is nil for an entry of another executor, which
// may use the same kinds with other fields. step has the recorded fields, answer the payload beside them. Fields that are missing, or of
// another type, are zero.
func Body(step, answer map[string]any) any {
	b := body(step)
	return bodyOf(b.text("kind"), b.text("key"), b, answer)
}

func bodyOf(kind, key string, b body, answer map[string]any) any {
	if kind == "answer" {
		if !isQuestionKey(key) {
			return nil
		}
		return &Answer{answer, b.flag("expired")}
	}
	if kind == "rest" || !b.has(marks[kind]...) {
		return nil
	}
	return Read(kind, b)
}

// marks are the fields by which an entry of an agent is known among entries of the same kind of other executors.
var marks = map[string][]string{
	"begun": {"agent", "task"}, "reply": {"calls", "model"}, "tried": {"code", "try"}, "result": {"tool"}, Piece: {"piece", PieceMember},
	"decided": {"decision"}, "question": {"about", "calls"}, "compacted": {"upto"}, Continued: {SeamCode, SeamMessage},
	Reconfigured: {"config", "configHash"}, Answered: {Payload},
}

// Read returns the body of an entry that is known to be an agent's. The payload of an answer is one of its fields. It is nil for an unknown
// kind.
func Read(kind string, fields map[string]any) any {
	b := body(fields)
	switch kind {
	case "begun":
		return begunOf(b)
	case "reply":
		return replyOf(b)
	case "tried":
		return triedOf(b)
	case "result":
		return resultOf(b)
	case Piece:
		return &Part{b.text(PieceMember)}
	case "decided":
		return &Decided{b.text("decision"), b.text("reason"), b.text("model"), b.object("arguments"), b.millis("workMs")}
	case "question":
		return &Question{b.text("about"), asksOf(b)}
	case "answer":
		return &Answer{b.object(Payload), b.flag("expired")}
	case "rest":
		return &Resting{}
	case "woken":
		return &Woken{}
	case "compacted":
		return &Compacted{
			UpTo: b.text("upto"), Summary: b.text("summary"), Model: b.text("model"), Shrunk: b.number("shrunk"), Try: b.number("try"),
			RequestHash: b.text("requestHash"), Work: b.millis("workMs"), Usage: usageOf(b),
		}
	case Continued:
		return &Resumed{b.text(SeamCode), b.text(SeamMessage), b.text(SeamConfig) == SeamCurrent}
	case Reconfigured:
		return &Changed{configOf(b.object("config")), b.text("configHash"), b.text("previousHash"), b["config"]}
	case Answered:
		return &Answer{b.object(Payload), b.flag(NobodyAnswered)}
	}
	return nil
}

func begunOf(b body) *Begun {
	begun := &Begun{
		Agent: b.text("agent"), System: b.text("system"), Task: b.text("task"), Form: b.number("v"), Wording: b.number("wording"),
		Config: configOf(b.object("config")), ConfigHash: b.text("configHash"), PlainTools: b["tools"], PlainConfig: b["config"],
	}
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
	r := &Reply{
		Model: b.text("model"), Text: b.text("text"), Finish: b.text("finish"), Try: b.number("try"), RequestHash: b.text("requestHash"),
		Dropped: b.number("dropped"), Work: b.millis("workMs"), Usage: usageOf(b),
	}
	for _, v := range b.list("calls") {
		o, isObject := v.(map[string]any)
		c := body(o)
		r.Calls = append(r.Calls, Wanted{c.text("id"), c.text("name"), c.object("arguments"), c["raw"], c.text("why"), !isObject})
	}
	return r
}

// usageOf returns the usage that an entry has, nil without one.
func usageOf(entry body) *Usage {
	b := entry.object("usage")
	if b == nil {
		return nil
	}
	u := &Usage{b.number("prompt_tokens"), b.number("cached_tokens"), b.number("completion_tokens"), b.flag("estimated")}
	u.Cached = min(u.Cached, u.Prompt)
	return u
}

func triedOf(b body) *Tried {
	t := &Tried{
		Code: b.text("code"), Message: b.text("message"), Class: b.text("class"), Next: b.text("next"), RetryAt: b.text("retryAt"),
		Status: b.number("status"), Try: b.number("try"), To: -1, Final: b.flag("final"), Compact: b.flag("compact"),
		After: b.millis("afterMs"), Work: b.millis("workMs"), Usage: usageOf(b),
	}
	if _, recorded := b["to"].(float64); recorded {
		t.To = b.number("to")
	}
	return t
}

func resultOf(b body) *Result {
	r := &Result{
		Tool: b.text("tool"), By: b.text("by"), Arguments: b.object("arguments"), Output: b["output"], HasOutput: b.has("output"), Bytes: -1, Work: b.millis("workMs"),
	}
	if e := b.object("error"); e != nil {
		r.Error = &Error{e.text("code"), e.text("message")}
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
	sum := func(name string) int64 { return int64(b.number(name)) }
	_, priced := b["cost_micros"].(float64)
	return Totals{
		Turns: sum("turns"), ToolCalls: sum("tool_calls"), Prompt: sum("prompt_tokens"), Cached: sum("cached_tokens"),
		Completion: sum("completion_tokens"), WorkMS: sum("work_ms"), CostMicros: sum("cost_micros"), Priced: priced,
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

// MaxCount bounds every recorded number, so that sums of them stay exact as doubles.
const MaxCount = 1 << 40

// number returns a count, 0 for another value.
func (b body) number(name string) int {
	n, _ := b[name].(float64)
	if !(n >= 0 && n <= MaxCount) {
		return 0
	}
	return int(n)
}

func (b body) millis(name string) time.Duration {
	return time.Duration(b.number(name)) * time.Millisecond
}

func (b body) object(name string) body { m, _ := b[name].(map[string]any); return m }

func (b body) list(name string) []any { l, _ := b[name].([]any); return l }

func object(v any) map[string]any { m, _ := v.(map[string]any); return m }
