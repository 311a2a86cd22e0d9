package agentloop

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/workflows-engine/workflows-engine/activities/chat"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/agentsteps"
	"github.com/workflows-engine/workflows-engine/internal/jsonschema"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
	"github.com/workflows-engine/workflows-engine/internal/suggest"
)

// callState is how far a call is.
type callState int

const (
	arrived  callState = iota // its tool and arguments are not checked yet
	deciding                  // a hook decides
	gated                     // a person decides
	personal                  // a person answers
	queued                    // it may be made
	running
	finished
)

// The outcomes of a call that may have been started before a crash.
const (
	crashRepeat = "repeat"
	crashReport = "report"
	crashAsk    = "ask"
)

// The sources of a result that does not come from a tool.
const (
	byPerson = "person"
	byEngine = "engine"
)

// call is one call of a reply.
type call struct {
	key string
	// id and given are part of the next request.
	id, name, given string
	args            map[string]any
	// wrong is why the arguments cannot be read.
	wrong string
	tool  *Tool
	state callState
	child *agent
	// begun is set if a process that has died may have made the call.
	begun bool
	// then is the state that a hook may leave it in, why is the reason of a hook that asks a person.
	then      callState
	why       string
	edited    bool
	timeoutMs int
	// give is a result that is to be recorded.
	give *outcome
	out  outcome
	// note is shown to the model beside the result.
	note string
}

type outcome struct {
	output        any
	code, message string
	by            string
	// preview is of a large result, which is kept in pieces.
	preview string
}

// text returns an argument that is a string, "" for others.
func (c *call) text(name string) string { s, _ := c.args[name].(string); return s }

// shown is the name that providers take.
func (c *call) shown() string {
	if nameOfTool(c.name) {
		return c.name
	}
	return "unknown"
}

func (a *agent) callOf(key string) *call {
	if a.phase != calling {
		return nil
	}
	for _, c := range a.calls {
		if c.key == key {
			return c
		}
	}
	return nil
}

// readCalls reads the calls of a recorded reply.
func (a *agent) readCalls(recorded []agentsteps.Wanted) ([]*call, error) {
	if len(recorded) > maxCalls {
		return nil, errors.New("it has too many calls")
	}
	var calls []*call
	ids := map[string]bool{}
	for i, r := range recorded {
		if r.Invalid {
			return nil, errors.New("one of its calls is not an object")
		}
		c := &call{key: a.turnKey() + ".c" + itoa(i+1), id: r.ID, name: r.Name, given: "{}"}
		if !nameOfTool(c.id) || ids[c.id] {
			c.id = "t" + itoa(a.turn) + "_c" + itoa(i+1)
			for ids[c.id] {
				c.id += "_"
			}
		}
		ids[c.id] = true
		if r.Arguments != nil {
			c.args, c.given = r.Arguments, string(jsonvalue.Canonical(r.Arguments))
		} else {
			raw, _ := r.Raw.(string)
			c.wrong = orElse(r.Why, "they are missing") + ". They begin: " + problem.Clip(raw, problem.MaxQuoted)
		}
		calls = append(calls, c)
	}
	return calls, nil
}

// advanceCalls advances the calls of a turn, and reports whether anything has changed.
func (a *agent) advanceCalls() bool {
	for _, c := range a.calls {
		if c.child != nil && c.state == running && c.child.advance() {
			return true
		}
	}
	for _, c := range a.calls {
		if c.give != nil && c.state != finished {
			a.record(c)
			return true
		}
		if c.state == arrived {
			a.look(c)
			return true
		}
	}
	if slices.ContainsFunc(a.calls, func(c *call) bool { return c.state == deciding }) {
		return false
	}
	if c := a.nextCall(); c != nil {
		a.start(c)
		return true
	}
	if slices.ContainsFunc(a.calls, func(c *call) bool { return c.state != finished }) {
		return false
	}
	a.endTurn()
	return true
}

// record records a result that no tool has given.
func (a *agent) record(c *call) {
	b := body{"tool": c.name, "by": c.give.by}
	if c.give.code != "" {
		b = b.withError(c.give.code, c.give.message)
	} else {
		b["output"] = c.give.output
	}
	a.m.emit(c.key, StepResult, b)
}

func (c *call) refuse(code, by, format string, args ...any) {
	c.give = &outcome{code: code, message: problem.Excerpt(problem.Format(format, args...), problem.MaxText), by: by}
}

// look finds the tool of a call, checks its arguments, and evaluates the gates.
func (a *agent) look(c *call) {
	i := slices.IndexFunc(a.tools, func(t Tool) bool { return t.Name == c.name })
	if i < 0 {
		var names []string
		for _, t := range a.tools {
			names = append(names, t.Name)
		}
		c.refuse(ToolUnknown, byEngine, "there is no tool %q%s", c.name, sentence(suggest.DidYouMean(c.name, names)))
		return
	}
	c.tool = &a.tools[i]
	if c.wrong != "" {
		c.refuse(ToolArgumentsInvalid, byEngine, "the arguments cannot be used: %s", c.wrong)
		return
	}
	if wrong := a.violations(c.tool, c.args); wrong != "" {
		c.refuse(ToolArgumentsInvalid, byEngine, "the arguments break the tool's parameters: %s", wrong)
		return
	}
	if a.repeated(c) {
		return
	}
	switch do, reason, timeout := a.gate(c); {
	case c.tool.Source == sourceResults: // the agent has been given it already
		c.state = queued
	case do == doDeny:
		c.deny(reason)
		return
	case do == doAsk && !a.m.remembered[a.approval(c.name)]:
		c.state, c.timeoutMs = gated, timeout
	default:
		c.state = a.allowed(c)
	}
	if a.cfg.Hooks.BeforeTool {
		c.then, c.state = c.state, deciding
	}
}

func sentence(hint string) string {
	if hint == "" {
		return ""
	}
	return ": " + hint
}

// allowed is the state of a call that may be made.
func (a *agent) allowed(c *call) callState {
	if c.tool.Source == sourcePerson {
		return personal
	}
	return queued
}

// repeated counts calls that are the same as the one before. The model is warned, and in the end the agent stops.
func (a *agent) repeated(c *call) bool {
	this := c.name + c.given
	if this != a.lastCall {
		a.lastCall, a.same = this, 0
	}
	a.same++
	r := a.cfg.Repeats
	if a.same >= r.Stop {
		a.failWith(stopLoop, problem.AgentLoopDetected, false, fmt.Sprintf("the model has made the same call of %s %d times in a row", c.name, a.same))
		c.state = gated // it is never asked: the agent ends
		return true
	}
	if a.same >= r.Warn {
		c.note = fmt.Sprintf("You have made this very call %d times in a row. Do something else.", a.same)
	}
	return false
}

// violations returns how arguments break a tool's parameters, "" if they do not. A tool checks parameters that are not a valid schema itself.
func (a *agent) violations(t *Tool, args map[string]any) string {
	if t.Parameters == nil {
		return ""
	}
	schema, ok := a.schemas[t.Name]
	if !ok {
		schema, _ = jsonschema.Compile(t.Parameters) // nil: the tool checks itself
		a.schemas[t.Name] = schema
	}
	if schema == nil {
		return ""
	}
	return jsonschema.Text(schema.Validate(args))
}

// nextCall returns the next call that may be made now: parallel ones run side by side, any other runs alone, in the order of the calls.
func (a *agent) nextCall() *call {
	active, alone := 0, false
	for _, c := range a.calls {
		if c.state == running {
			active++
			alone = alone || !c.tool.Parallel
		}
	}
	for _, c := range a.calls {
		if c.state != queued {
			continue
		}
		if alone || active > 0 && !c.tool.Parallel || active >= a.cfg.MaxConcurrency {
			return nil
		}
		return c
	}
	return nil
}

// start makes a call, if the budgets allow it.
func (a *agent) start(c *call) {
	for b := a.outermost(); b != nil; b = b.towards(a) {
		if budget := b.exceeded(true); budget != "" && b.finishing == "" {
			// Running effects continue; the agent ends, or finishes, before its next turn.
			b.refusedCall = budget
			c.refuse(string(budgetCodes[budget]), byEngine, "the budget of %s is used up", strings.ReplaceAll(budget, "_", " "))
			return
		}
	}
	if c.tool.Source == sourceResults && !a.owns(c.text("ref")) {
		c.refuse(RefUnknown, byEngine, "%s", refUnknown(c.text("ref")))
		return
	}
	if c.tool.Source != sourceAgent {
		a.use(Totals{ToolCalls: 1})
		c.state = running
		return
	}
	i := slices.IndexFunc(a.cfg.Agents, func(s Sub) bool { return subPrefix+s.Config.Name == c.name })
	task := c.text("task")
	switch {
	case i < 0:
		c.refuse(ToolUnknown, byEngine, "there is no agent behind %q", c.name)
	case a.depth+1 > a.m.root.cfg.MaxDepth:
		c.refuse(AgentDepthExceeded, byEngine, "agents are nested %d deep already: do it yourself", a.depth)
	case strings.TrimSpace(task) == "":
		c.refuse(ToolArgumentsInvalid, byEngine, "the task is empty")
	default:
		a.use(Totals{ToolCalls: 1})
		c.state = running
		c.child = &agent{m: a.m, cfg: &a.cfg.Agents[i].Config, prefix: c.key + "/", depth: a.depth + 1, call: c, over: a, task: task}
	}
}

// resulted takes a result: of a tool, or of the engine or a person in its place.
func (a *agent) resulted(c *call, e *agentsteps.Result) error {
	by := e.By
	switch {
	case c.state == finished:
		return errors.New("the call has a result")
	case by == "" && (c.state != running || c.child != nil):
		return errors.New("the call is not being made")
	case by != "" && c.give == nil && c.child == nil && c.state != running && (e.Error == nil || e.Error.Code == ""):
		return errors.New("this result has no source")
	}
	o := outcome{output: e.Output, preview: e.Preview, by: by}
	if f := e.Error; f != nil {
		o = outcome{code: orElse(f.Code, string(problem.Internal)), message: f.Message, by: by}
	}
	c.out, c.state, c.give, c.child = o, finished, nil, nil
	a.use(Totals{WorkMs: count(e.Work)})
	return nil
}

// maxErrorsInRow is how many calls may fail one after the other.
const maxErrorsInRow = 10

// endTurn shows the results to the model.
func (a *agent) endTurn() {
	for _, c := range a.calls {
		switch {
		case c.out.by == byPerson:
		case c.out.by == byEngine && isBudget(c.out.code): // the budget ends the agent, not the model's errors
		case c.out.code == "":
			a.errorsInRow = 0
		default:
			a.errorsInRow++
		}
	}
	last := a.calls[len(a.calls)-1]
	a.showResults()
	if a.errorsInRow >= maxErrorsInRow {
		a.failWith(stopLoop, problem.AgentLoopDetected, false, fmt.Sprintf("%d tool calls in a row have failed; the last one: %s: %s", a.errorsInRow, last.out.code, last.out.message))
	}
	a.phase = ready
	if a.cfg.Hooks.AfterTurn {
		a.phase = turned
	}
}

// isBudget reports whether a code is that of a budget that is used up.
func isBudget(code string) bool {
	for _, c := range budgetCodes {
		if string(c) == code {
			return true
		}
	}
	return false
}

func (a *agent) showResults() {
	if slices.ContainsFunc(a.calls, func(c *call) bool { return c.out.preview != "" }) {
		a.offerFetch()
	}
	for _, c := range a.calls {
		text, brief := a.shown(c)
		p := part{tool: c.name, brief: brief}
		if c.out.code == "" && (c.tool == nil || c.tool.Source != sourceResults) {
			p.ref = c.key
		}
		a.talk.put(chat.Message{Role: chat.Result, CallID: c.id, Text: text}, p)
	}
	a.calls = nil
}

// running are the calls of tools that are being made.
func (m *Machine) running() (calls []*call) {
	m.root.each(func(a *agent) {
		for _, c := range a.calls {
			if a.phase == calling && c.state == running && c.child == nil {
				calls = append(calls, c)
			}
		}
	})
	return calls
}

// takeOver decides about calls that a process may have started before it died. One of these decisions may start other calls, which no
// process has started before.
func (m *Machine) takeOver(begun []*call) {
	for _, c := range begun {
		if m.done != nil || c.tool.onCrash() == crashRepeat {
			continue
		}
		if _, still, err := m.find(c.key); err != nil || still != c || c.state != running {
			continue
		}
		if c.tool.onCrash() == crashReport {
			m.emit(c.key, StepResult, body{"tool": c.name, "by": byEngine}.withError(ToolOutcomeUnknown, "the call may or may not have happened: look before you repeat it"))
		} else {
			m.emit(c.key, StepDecided, body{"decision": doAsk, "reason": "crash"})
		}
		m.settle()
	}
}

func (t *Tool) onCrash() string {
	switch {
	case t.OnCrash != "":
		return t.OnCrash
	case t.ReadOnly:
		return crashRepeat
	}
	return crashReport
}
