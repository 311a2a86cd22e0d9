package agentloop

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/workflows-engine/workflows-engine/activities/chat"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/agentsteps"
	"github.com/workflows-engine/workflows-engine/internal/jsonschema"
)

// phase is the kind of effect that an agent waits for.
type phase int

const (
	listed    phase = iota // its tools
	ready                  // nothing: the next turn begins
	asking                 // the model
	pausing                // the time to ask it again
	summing                // a summary of the conversation
	following              // a compaction, the next entry of a journal of another wording
	calling                // results of calls
	turned                 // the decision of a hook after a turn
	ended
)

// Words of Done.Stop.
const (
	stopAnswer    = "answer"
	stopTurns     = "turns"
	stopToolCalls = "tool_calls"
	stopTokens    = "tokens"
	stopCost      = "cost"
	stopTime      = "time"
	stopLoop      = "loop"
	stopPerson    = "person"
	stopHook      = "hook"
	stopError     = "error"
)

// budgetCodes are the codes of budgets that are used up.
var budgetCodes = map[string]problem.Code{
	stopTurns: problem.AgentTurnsExceeded, stopToolCalls: problem.AgentToolCallsExceeded, stopTokens: problem.AgentTokensExceeded,
	stopCost: problem.AgentCostExceeded, stopTime: problem.AgentTimeExceeded,
}

// agent is one loop: the root's, or that of a sub-agent.
type agent struct {
	m      *Machine
	cfg    *Config
	prefix string
	depth  int
	// call is the parent's call, which over makes; both are nil for the root.
	call *call
	over *agent

	phase       phase
	refusedList *Failure
	task        string
	tools       []Tool
	talk        talk
	schemas     map[string]*jsonschema.Schema

	turn, try int
	// attempts counts the tries of the current model in a turn.
	attempts, model int
	req             *chat.Request
	hash            string
	// fails are the models that have failed in this round since the last usable reply. round counts the rounds of all models; restUntil is when
	// the next one starts.
	fails     []modelFailure
	round     int
	restUntil time.Time
	// leftAt is when the agent left its first model. trial is set if it has returned from the model stay, for one try.
	leftAt time.Time
	trial  bool
	stay   int
	// tooLarge has the size, in tokens, of the conversation that a model rejected, by the index of the model.
	tooLarge map[int]int
	until    time.Time
	calls    []*call
	// again is set if the turn is asked once more, after a compaction.
	again bool
	room  room
	// fetches is set if the agent has the tool fetch_result.
	fetches bool

	raised        bool // answers may be as long as the ceiling
	cuts, empties int
	repairs       int
	part          string // what cut answers have said
	answering     bool   // the next turn is asked without tools, and with the output schema
	finishing     string // the budget that is used up
	// refusedCall is the exhausted budget that rejected a call of a tool, or another call of a model.
	refusedCall string
	lastText    string
	lastTokens  int // of the last request and its reply
	counted     int // the bytes of the conversation that lastTokens counts
	errorsInRow int
	same        int
	lastCall    string
	expired     bool
	failure     *Failure // to end with
	failureStop string
	result      *any // to end with
	models      []string
	spent       Totals
}

func (a *agent) parent() *agent { return a.over }

func (a *agent) turnKey() string { return a.prefix + "t" + itoa(a.turn) }

// advance adds the effects that follow from the last step, and reports whether there are any.
func (a *agent) advance() bool {
	if a.phase == ended {
		return false
	}
	if f := a.refusedList; f != nil {
		a.refusedList = nil
		a.fail(stopError, *f)
		return true
	}
	if f := a.failure; f != nil {
		a.failure = nil
		a.fail(a.failureStop, *f)
		return true
	}
	if r := a.result; r != nil {
		a.result = nil
		a.finish(*r)
		return true
	}
	if a.expired {
		a.expired = false
		a.overspent(stopTime)
		return true
	}
	switch a.phase {
	case ready:
		a.nextTurn()
		return true
	case calling:
		return a.advanceCalls()
	}
	return false
}

// outstanding adds the effects that an agent waits for.
func (a *agent) outstanding(to []Effect) []Effect {
	switch a.phase {
	case listed:
		return append(to, ListTools{Key: a.prefix + listKey, Agent: a.cfg.Name})
	case asking:
		return append(to, AskModel{Key: a.turnKey(), Agent: a.cfg.Name, Try: a.try, Model: a.cfg.Models[a.model], Request: *a.req, Timeout: duration(a.cfg.TurnTimeoutMs)})
	case summing:
		r := &a.room
		return append(to, AskModel{Key: a.roomKey(), Agent: a.cfg.Name, Try: r.try, Model: *r.model, Request: *r.req, Compacts: true, Timeout: duration(a.cfg.TurnTimeoutMs)})
	case pausing:
		return append(to, Rest{Key: a.waitKey(), Agent: a.cfg.Name, Until: a.until})
	case turned:
		return append(to, Decide{Key: a.turnKey(), Agent: a.cfg.Name, Timeout: duration(a.cfg.ToolTimeoutMs)})
	case calling:
		for _, c := range a.calls {
			switch {
			case c.state == deciding:
				to = append(to, Decide{Key: c.key, Agent: a.cfg.Name, Tool: c.name, Arguments: c.args, Timeout: duration(a.cfg.ToolTimeoutMs)})
			case c.state == running && c.child != nil:
				to = c.child.outstanding(to)
			case c.state == running && c.tool.Source == sourceResults:
				to = append(to, FetchResult{Key: c.key, Agent: a.cfg.Name, Ref: c.text("ref"), View: a.view(c)})
			case c.state == running:
				to = append(to, CallTool{Key: c.key, Agent: a.cfg.Name, Tool: c.name, Source: c.tool.Source, Listed: *c.tool, Arguments: c.args, Timeout: duration(a.cfg.ToolTimeoutMs), MaxBytes: a.cfg.Results.maxBytes()})
			}
		}
	}
	return to
}

// each calls f for an agent and all that work below it.
func (a *agent) each(f func(*agent)) {
	f(a)
	for _, c := range a.calls {
		if a.phase == calling && c.child != nil && c.state == running {
			c.child.each(f)
		}
	}
}

// wakeAll ends the pauses that are over, and the first one in any case: the engine has waited for it.
func (a *agent) wakeAll(now time.Time) {
	var first time.Time
	a.each(func(b *agent) {
		if b.phase == pausing && (first.IsZero() || b.until.Before(first)) {
			first = b.until
		}
	})
	a.each(func(b *agent) {
		if b.phase == pausing && (!b.until.After(first) || !b.until.After(now)) {
			b.awake()
		}
	})
}

// waitKey is the key of the effect after a pause.
func (a *agent) waitKey() string {
	if a.room.req != nil {
		return a.roomKey()
	}
	return a.turnKey()
}

// awake ends a pause.
func (a *agent) awake() {
	a.phase = asking
	if a.room.req != nil {
		a.phase = summing
	}
}

// begun starts the conversation.
func (a *agent) begun(e *agentsteps.Begun) error {
	var tools []Tool
	if err := fromValue(e.PlainTools, &tools); err != nil {
		return err
	}
	if f := checkTools(tools); f != nil {
		return errors.New(f.Message)
	}
	if e.Agent != a.cfg.Name || e.Form != a.m.form {
		return fmt.Errorf("it is of another agent, or of a newer form")
	}
	if a == a.m.root {
		a.m.configHash = e.ConfigHash
	}
	a.tools, a.task, a.phase = tools, e.Task, ready
	a.fetches = slices.ContainsFunc(tools, func(t Tool) bool { return t.Source == sourceResults })
	a.schemas = map[string]*jsonschema.Schema{}
	a.talk.begin(tools, e.System, a.task)
	return nil
}

// replied takes a reply.
func (a *agent) replied(e *agentsteps.Reply) error {
	if a.m.wording == wording && e.RequestHash != a.hash {
		return errors.New("it answers another request than the one that follows from the steps")
	}
	if e.Try != a.try {
		return errors.New("it answers another try")
	}
	calls, err := a.readCalls(e.Calls)
	if err != nil {
		return err
	}
	model, usage := &a.cfg.Models[a.model], usageOf(e.Usage)
	d := price(model, usage)
	d.Turns, d.WorkMs = 1, count(e.Work)
	a.use(d)
	a.m.root.met(orElse(e.Model, model.Model))
	text, cut, filtered := e.Text, e.Finish == string(chat.FinishLength), e.Finish == string(chat.FinishFilter)
	if text != "" {
		a.lastText = text
	}
	a.lastTokens = usage.Prompt + usage.Completion
	a.req, a.trial = nil, false
	a.phase = ready
	a.room.urgent = false
	a.talk.turn(a.turn)
	switch {
	case a.finishing != "" && a.m.form >= formClasses:
		a.finished(text, cut, filtered)
	case cut:
		a.wasCut(text)
	case filtered:
		a.withheld()
	case len(calls) > 0 && !a.answering:
		a.empties, a.cuts, a.part, a.fails, a.round = 0, 0, "", nil, 0
		a.talk.calls(text, calls)
		a.counted = a.talk.bytes
		a.calls, a.phase = calls, calling
		if n := e.Dropped; n > 0 {
			calls[len(calls)-1].note = fmt.Sprintf("%d more calls of your message were left out: at most %d are taken", n, maxCalls)
		}
	case strings.TrimSpace(a.part+text) == "":
		a.wasEmpty()
	default:
		a.answer(a.part + text)
	}
	return nil
}

func (a *agent) met(model string) {
	if !slices.Contains(a.models, model) && len(a.models) < 16 {
		a.models = append(a.models, model)
	}
}

// failWith ends an agent once its step is recorded.
func (a *agent) failWith(stop string, code problem.Code, final bool, message string) {
	where := a.cfg.Name
	if a.turn > 0 {
		where += ", turn " + itoa(a.turn)
	}
	a.failure, a.failureStop = &Failure{Code: code, Message: where + ": " + message, Final: final}, stop
}

// fail ends an agent: the root's end is the attempt's, a sub-agent's is the result of its call.
func (a *agent) fail(stop string, f Failure) {
	a.phase = ended
	if a.call == nil {
		a.m.end(Done{Stop: stop, Failure: &f})
		return
	}
	a.m.emit(a.call.key, StepResult, body{"tool": a.call.name, "by": byEngine}.withError(AgentFailed, problem.Excerpt(string(f.Code)+": "+f.Message, problem.MaxText)))
}

// finish ends an agent with an answer.
func (a *agent) finish(output any) {
	a.phase = ended
	stop := orElse(a.finishing, stopAnswer)
	if a.finishing != "" && a.m.form >= formClasses {
		output = a.marked(output)
	}
	if a.call == nil {
		d := Done{Output: output, Partial: a.finishing != "", Stop: stop}
		if d.Partial {
			d.PartialReason = budgetCodes[a.finishing]
		}
		a.m.end(d)
		return
	}
	b := body{"tool": a.call.name, "by": byEngine, "output": output}
	if a.finishing != "" {
		b["partial"] = true
	}
	a.m.emit(a.call.key, StepResult, b)
}

// overspent ends an agent whose budget is used up, or asks it for an early answer.
func (a *agent) overspent(budget string) {
	code := budgetCodes[budget]
	if a.finishing != "" && a.m.form >= formClasses {
		a.noRoom()
		return
	}
	why := "the budget of " + strings.ReplaceAll(budget, "_", " ") + " is used up"
	if a.cfg.Budgets.OnExceeded != "finish" || a.finishing != "" || a.phase == listed {
		a.failWith(budget, code, true, why+fmt.Sprintf(" after %d turns and %d tool calls", a.spent.Turns, a.spent.ToolCalls))
		return
	}
	if a.phase == calling {
		for _, c := range a.calls {
			if c.state != finished {
				a.m.emit(c.key, StepResult, body{"tool": c.name, "by": byEngine}.withError(string(code), why))
			}
		}
		a.showResults()
	}
	a.finishing, a.answering, a.phase, a.part = budget, true, ready, ""
	a.again, a.restUntil = false, time.Time{}
	a.room.leave()
	a.talk.say(chat.User, "[engine] "+why+". You can call no more tools. Give your final answer now, with what you have.")
}

// expire notes that the work budget has ended while something was under way.
func (a *agent) expire(worked int) {
	left := a.cfg.Budgets.WorkMs - a.spent.WorkMs
	a.use(Totals{WorkMs: max(worked, left, 0)})
	a.expired = true
}
