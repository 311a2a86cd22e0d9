package agentloop

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"hash"
	"math"
	"time"

	"github.com/workflows-engine/workflows-engine/activities/chat"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/agentsteps"
)

// talk is the conversation of an agent. It only grows, except in a compaction: providers cache the beginning that requests share.
type talk struct {
	messages []chat.Message
	// parts describe each message.
	parts []part
	// head counts the messages before those of turns: the system text and the task.
	head     int
	turns    []turnStart
	past     past
	tools    []chat.Tool
	toolHash string
	// sum hashes all messages so far, so that a request hashes only its new messages.
	sum              hash.Hash
	bytes, toolBytes int
	scratch          []byte
}

func (t *talk) begin(tools []Tool, system, task string) {
	t.sum = sha256.New()
	t.offer(tools)
	if system != "" {
		t.say(chat.System, system)
	}
	t.say(chat.User, task)
	t.head = len(t.messages)
}

// offer takes tools in place of those before.
func (t *talk) offer(tools []Tool) {
	t.tools = nil // requests under way keep what they have
	for i := range tools {
		parameters := tools[i].Parameters
		if parameters == nil {
			parameters = map[string]any{"type": "object"}
		}
		t.tools = append(t.tools, chat.Tool{Name: tools[i].Name, Description: tools[i].Description, Parameters: parameters})
	}
	text := marshal(t.tools)
	digest := sha256.Sum256(text)
	t.toolHash, t.bytes, t.toolBytes = hex.EncodeToString(digest[:]), t.bytes-t.toolBytes+len(text), len(text)
}

func (t *talk) add(m chat.Message) { t.put(m, part{}) }

func (t *talk) put(m chat.Message, p part) {
	p.bytes = t.hash(&m)
	t.bytes += p.bytes
	t.messages, t.parts = append(t.messages, m), append(t.parts, p)
}

// hash adds a message to the hash, and returns its size: about the size of the provider's request. Each text is preceded by its length, so that
// no two messages have the same bytes.
func (t *talk) hash(m *chat.Message) int {
	to := t.scratch[:0]
	add := func(text string) { to = append(binary.AppendUvarint(to, uint64(len(text))), text...) }
	add(string(m.Role))
	add(m.Text)
	add(m.CallID)
	for i := range m.Calls {
		c := &m.Calls[i]
		add(c.ID)
		add(c.Name)
		add(c.Arguments)
	}
	to = append(to, 0xff)  // no length begins so: a message has an end
	_, _ = t.sum.Write(to) // a hash takes everything
	t.scratch = keep(to)
	return len(to) + messageBytes + callBytes*len(m.Calls)
}

// The sizes of the field names of a message, and of a call.
const (
	messageBytes = 30
	callBytes    = 40
)

// maxScratch is the largest buffer that an agent keeps.
const maxScratch = 32 << 10

func keep(scratch []byte) []byte {
	if cap(scratch) > maxScratch {
		return nil
	}
	return scratch
}

func (t *talk) say(role chat.Role, text string) { t.add(chat.Message{Role: role, Text: text}) }

// calls adds a message that calls tools.
func (t *talk) calls(text string, calls []*call) {
	m := chat.Message{Role: chat.Assistant, Text: text}
	for _, c := range calls {
		m.Calls = append(m.Calls, chat.Call{ID: c.id, Name: c.shown(), Arguments: c.given})
	}
	t.add(m)
}

// digest is the hash of a request: of all that the model is asked.
func (t *talk) digest(r *chat.Request) string {
	cloner, ok := t.sum.(hash.Cloner)
	if !ok {
		panic("agentloop: SHA-256 cannot be cloned")
	}
	sum, err := cloner.Clone()
	if err != nil {
		panic("agentloop: " + err.Error())
	}
	tools := t.toolHash
	if r.Tools == nil {
		tools = ""
	}
	parts := []any{r.Model, tools, r.MaxTokens, r.Temperature, r.Schema}
	if r.TopP != nil || r.Seed != nil || r.Stop != nil { // the hash of a request without these is that of releases before there were any
		parts = append(parts, r.TopP, r.Seed, r.Stop)
	}
	_, _ = sum.Write(marshal(parts))
	return hex.EncodeToString(sum.Sum(nil))
}

// marshal is encoding/json for values of this package, which it knows how to write.
func marshal(v any) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		panic("agentloop: " + err.Error())
	}
	return text
}

// nextTurn asks the model, unless a budget is used up: that of the outermost agent counts.
func (a *agent) nextTurn() {
	for b := a.outermost(); b != nil; b = b.towards(a) {
		if budget := orElse(b.refusedCall, b.exceeded(false)); budget != "" && b.finishing == "" {
			b.overspent(budget)
			return
		}
	}
	if a.m.form >= formClasses && a.returns() {
		a.m.emit(a.turnKey(), StepDecided, body{"decision": decidedReturn, "model": a.cfg.Models[0].Model})
		return
	}
	if a.makeRoom() {
		return
	}
	if !a.again {
		a.turn++
		a.try, a.attempts = 1, 1
	}
	if budget, by := a.ask(); budget != "" {
		if !a.again {
			a.turn--
		}
		by.overspent(budget)
		return
	}
	a.again, a.room.stage = false, roomNone
	a.phase = asking
	if !a.restUntil.IsZero() {
		a.phase, a.until, a.restUntil = pausing, a.restUntil, time.Time{}
	}
}

// outermost and towards walk from the root down to an agent.
func (a *agent) outermost() *agent { return a.m.root }

func (a *agent) towards(to *agent) *agent {
	if a == to {
		return nil
	}
	for to.over != a {
		to = to.over
	}
	return to
}

// ask builds the request of a turn. It returns the budget that leaves no room for an answer, and whose it is.
func (a *agent) ask() (string, *agent) {
	model := &a.cfg.Models[a.model]
	most := model.MaxTokens
	if a.raised {
		most = model.MaxTokensCeiling
	}
	most, budget, by := a.affordable(model, a.prompt(), most)
	if budget != "" {
		return budget, by
	}
	n := len(a.talk.messages)
	r := &chat.Request{Model: model.Model, Messages: a.talk.messages[:n:n], MaxTokens: most, Key: a.turnKey(), Stream: a.cfg.Stream}
	model.sample(r)
	if !a.answering {
		r.Tools = a.talk.tools
	} else if a.cfg.Output != nil {
		r.Schema = a.cfg.Output.Schema
	}
	a.req, a.hash = r, a.talk.digest(r)
	return "", nil
}

// sample puts how a model answers into a request.
func (m *Model) sample(r *chat.Request) {
	r.Temperature, r.TopP, r.Seed, r.Stop = m.Temperature, m.TopP, m.Seed, m.Stop
}

// prompt is about how many tokens the conversation has: those of the last request and its reply, and of later messages.
func (a *agent) prompt() int { return a.lastTokens + (a.talk.bytes-a.counted)/bytesPerToken }

// affordable returns how many of most tokens an answer may have within the budgets of an agent and of those above it, or the budget that
// leaves no room, and whose it is.
func (a *agent) affordable(model *Model, prompt, most int) (int, string, *agent) {
	for b := a; b != nil; b = b.over {
		var left int
		var budget string
		switch {
		case a.m.form >= formClasses:
			left, budget = b.affords(model, prompt, most, a)
		case b.finishing != "":
			continue
		default:
			left, budget = b.budgetRoom(model, prompt, most)
		}
		if budget != "" {
			return 0, budget, b
		}
		most = left
	}
	return most, "", nil
}

// triedBody records a failed try, with the time of the next one.
func (a *agent) triedBody(in ModelFailed, now time.Time) body {
	b := body{"try": float64(in.Try), "code": clean(string(in.Code), 200), "message": clean(in.Message, problem.MaxText), "workMs": millis(in.Worked)}
	if in.Final {
		b["final"] = true
	}
	if u := bounded(in.Usage); u != (chat.Usage{}) {
		b["usage"] = usageBody(u)
	}
	if a.m.form >= formClasses {
		if in.Code == chat.CodeContextExceeded && a.canCompact() {
			b["class"], b["compact"] = string(chat.ClassContext), true
		} else {
			a.after(b, &in, a.attempts, true, now)
		}
		return b
	}
	other := a.model+1 < len(a.cfg.Models) && (in.Overloaded || in.Code == chat.CodeContextExceeded)
	switch {
	case in.Code == chat.CodeContextExceeded && a.canCompact():
		b["compact"] = true
	case other:
		b["next"] = a.cfg.Models[a.model+1].Model
	case in.Final || in.Code == chat.CodeContextExceeded || a.attempts >= a.cfg.Retry.MaxAttempts:
	default:
		b["retryAt"] = instant(now.Add(a.cfg.Retry.pause(a.attempts, in.After) + time.Millisecond - 1))
	}
	return b
}

// pause is the wait before another try. A longer wait that the provider asks for is used instead, up to a day.
func (r Retry) pause(attempts int, after time.Duration) time.Duration {
	ms := min(float64(r.InitialIntervalMs)*math.Pow(r.Coefficient, float64(attempts-1)), float64(r.MaxIntervalMs))
	return max(time.Duration(ms)*time.Millisecond, min(after, 24*time.Hour))
}

// tried takes a failed try: the same model is asked again later, another one now, or the agent ends.
func (a *agent) tried(e *agentsteps.Tried) error {
	if e.Try != a.try {
		return errors.New("it is of another try")
	}
	retryAt, next := e.RetryAt, e.Next
	until, err := time.Parse(time.RFC3339Nano, retryAt)
	if retryAt != "" && err != nil {
		return errors.New("its retryAt is not a time")
	}
	to := -1
	if a.m.form >= formClasses {
		if to, err = a.destination(e); err != nil {
			return err
		}
	} else if next != "" && a.model+1 >= len(a.cfg.Models) {
		return errors.New("there is no other model")
	}
	if retryAt != "" && to < 0 && a.attempts >= a.cfg.Retry.MaxAttempts {
		return errors.New("it was the last try")
	}
	d := price(&a.cfg.Models[a.model], usageOf(e.Usage))
	d.WorkMs = count(e.Work)
	a.use(d)
	a.try++
	a.attempts++
	switch {
	case e.Code == chat.CodeContextExceeded && e.Compact && !a.room.urgent:
		a.refused()
	case to >= 0:
		a.failed(e)
		if retryAt != "" {
			a.fails, a.round, a.restUntil = nil, a.round+1, until
		}
		a.moveTo(to)
		a.again = true
	case next != "":
		a.model++
		a.attempts = 1
		a.room.refusedAt = 0
		a.phase = asking
		a.asks(&a.cfg.Models[a.model])
	case retryAt != "":
		a.phase, a.until = pausing, until
		a.asks(&a.cfg.Models[a.model])
	case a.m.form >= formClasses:
		a.req = nil
		a.failed(e)
		a.failAll()
	default:
		code := problem.Code(orElse(e.Code, string(problem.LLMProviderError)))
		a.req = nil
		if code == chat.CodeContextExceeded {
			a.failWith(stopError, problem.AgentContextExceeded, true, "the conversation is larger than the model takes: "+e.Message)
			break
		}
		a.failure, a.failureStop = &Failure{Code: code, Message: fmtTry(a, e.Message), Final: e.Final}, stopError
	}
	return nil
}

func fmtTry(a *agent, message string) string {
	return problem.Format("%s, turn %d, try %d: %s", a.cfg.Name, a.turn, a.try-1, message)
}

// asks puts the request of a turn to another model, or to the same one again. The price may be another one, and the last try may have cost
// something: where that leaves no room for an answer, the budget is used up.
func (a *agent) asks(model *Model) {
	r := *a.req
	r.Model = model.Model
	model.sample(&r)
	most := model.MaxTokens
	if a.raised {
		most = model.MaxTokensCeiling
	}
	most, budget, by := a.affordable(model, a.prompt(), min(r.MaxTokens, most))
	if budget != "" {
		by.refusedCall, a.req, a.phase = budget, nil, ready
		return
	}
	r.MaxTokens = most
	a.req, a.hash = &r, a.talk.digest(&r)
}
