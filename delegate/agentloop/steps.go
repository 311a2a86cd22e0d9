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
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// body is the body of a step to be recorded. Recorded ones are read as the types of package agentsteps, which accept missing fields: required
// fields are checked when the step is applied.
type body map[string]any

// step makes the step that an input is recorded as. Whether it fits is for apply to say.
func (m *Machine) step(in Input, now time.Time) (*Step, error) {
	switch in := in.(type) {
	case ToolsListed:
		return m.listed(in)
	case ModelReplied:
		a, _, err := m.find(in.Key)
		if err == nil && a.phase == summing && in.Key == a.roomKey() {
			return &Step{Key: in.Key, Kind: StepCompacted, Body: a.summaryBody(in)}, nil
		}
		if err != nil || a.req == nil {
			return nil, refuse(problem.Format("no reply is awaited under %q", in.Key))
		}
		return &Step{Key: in.Key, Kind: StepReply, Body: a.replyBody(in)}, nil
	case ModelFailed:
		a, _, err := m.find(in.Key)
		if err != nil {
			return nil, refuse(err.Error())
		}
		if a.phase == summing && in.Key == a.roomKey() {
			return &Step{Key: in.Key, Kind: StepTried, Body: a.unsummedBody(in, now)}, nil
		}
		return &Step{Key: in.Key, Kind: StepTried, Body: a.triedBody(in, now)}, nil
	case ToolReturned:
		a, c, err := m.find(in.Key)
		if err != nil || c == nil {
			return nil, refuse(problem.Format("no result is awaited under %q", in.Key))
		}
		return &Step{Key: in.Key, Kind: StepResult, Body: a.resultBody(c, in)}, nil
	case Decided:
		if _, c, err := m.find(in.Key); err != nil || c != nil && c.state != deciding {
			return nil, refuse(problem.Format("no decision is awaited under %q", in.Key))
		}
		b := body{"decision": in.Decision}
		if in.Reason != "" {
			b["reason"] = clean(in.Reason, problem.MaxText)
		}
		if in.Arguments != nil {
			args, err := jsonvalue.Normalize(in.Arguments)
			if err != nil {
				return nil, refuse("the arguments of a hook: " + err.Error())
			}
			b["arguments"] = args
		}
		return &Step{Key: in.Key, Kind: StepDecided, Body: b}, nil
	case Answered:
		payload, err := jsonvalue.Normalize(in.Payload)
		if err != nil {
			return nil, refuse("the answer: " + err.Error())
		}
		b := body{"payload": payload}
		if in.Expired {
			b["expired"] = true
		}
		return &Step{Key: in.Key, Kind: StepAnswer, Body: b}, nil
	case Reconfigured:
		b, err := m.reconfiguredBody(in.Config)
		if err != nil {
			return nil, err
		}
		return &Step{Key: listKey, Kind: StepReconfigured, Body: b}, nil
	case Expired:
		return &Step{Key: m.root.turnKey(), Kind: StepDecided, Body: body{"decision": decidedExpired, "workMs": millis(in.Worked)}}, nil
	}
	return nil, refuse(fmt.Sprintf("%T is not an input", in))
}

func millis(d time.Duration) float64 { return float64(min(max(0, d.Milliseconds()), maxCount)) }

// apply changes the machine by a step. On an error nothing has changed.
func (m *Machine) apply(s *Step) error {
	entry := agentsteps.Read(s.Kind, s.Body)
	switch e := entry.(type) {
	case *agentsteps.Question:
		if m.question == nil || m.question.Key != s.Key {
			return errors.New("no such question is to be asked")
		}
		return nil
	case *agentsteps.Answer:
		return m.answered(s.Key, e)
	case *agentsteps.Resting:
		return nil
	case *agentsteps.Woken:
		m.root.wakeAll(m.now)
		return nil
	case *agentsteps.Changed:
		return m.reconfigured(e)
	case *agentsteps.Decided:
		if e.Decision != decidedExpired {
			break
		}
		if m.question != nil {
			return errors.New("nothing is under way: waiting for a person is not work")
		}
		m.root.expire(count(e.Work))
		return nil
	}
	if len(s.Key) == 0 || len(s.Key) > 4096 {
		return errors.New("its key is empty or too long")
	}
	a, c, err := m.find(s.Key)
	if err != nil {
		return err
	}
	if s.Key == a.prefix+listKey {
		return a.begins(entry)
	}
	if c == nil && s.Key == a.roomKey() {
		return a.makesRoom(entry)
	}
	if c != nil {
		switch e := entry.(type) {
		case *agentsteps.Result:
			return a.resulted(c, e)
		case *agentsteps.Decided:
			return a.decided(c, e)
		}
		return errNotAwaited
	}
	asked := a.phase == asking || a.phase == pausing
	switch e := entry.(type) {
	case *agentsteps.Reply:
		if asked {
			return a.replied(e)
		}
	case *agentsteps.Tried:
		if asked {
			return a.tried(e)
		}
	case *agentsteps.Decided:
		switch {
		case a.phase == ready && e.Decision == decidedReturn:
			return a.returned()
		case a.phase == turned:
			return a.turnDecided(e)
		}
	}
	return errNotAwaited
}

var errNotAwaited = errors.New("nothing waits for it")

// begins takes the first step of an agent: its tools, or the reason why there are none.
func (a *agent) begins(entry any) error {
	if a.phase != listed {
		return errNotAwaited
	}
	switch e := entry.(type) {
	case *agentsteps.Begun:
		return a.begun(e)
	case *agentsteps.Tried:
		f := failureOf(e)
		a.refusedList = &f
		return nil
	}
	return errNotAwaited
}

// count returns a recorded time in milliseconds.
func count(d time.Duration) int { return int(d.Milliseconds()) }

// listed makes the first step of an agent.
func (m *Machine) listed(in ToolsListed) (*Step, error) {
	a, _, err := m.find(in.Key)
	if err != nil || in.Key != a.prefix+listKey {
		return nil, refuse(problem.Format("no tools are awaited under %q", in.Key))
	}
	tools, f := a.cfg.offered(in.Tools), in.Failure
	if f == nil {
		f = checkTools(tools)
	}
	var plain any
	if f == nil {
		if plain, err = toValue(tools); err != nil {
			f = &Failure{Code: problem.AgentConfigInvalid, Message: "the list of tools: " + err.Error(), Final: true}
		}
	}
	b := body{"v": float64(m.form), "wording": float64(wording), "agent": a.cfg.Name, "tools": plain, "system": a.systemText(len(tools) > 0, in.System), "task": strings.ToValidUTF8(a.task, "\uFFFD")}
	if a == m.root {
		config, err := toValue(a.cfg)
		if err != nil {
			return nil, refuse("the configuration is not JSON: " + err.Error())
		}
		b["config"], b["configHash"] = config, jsonvalue.Hash(config)
	}
	if f == nil && jsonvalue.Size(map[string]any(b), maxResultBytes) > maxResultBytes {
		f = &Failure{Code: problem.AgentConfigInvalid, Message: fmt.Sprintf("configuration, tools and task are together larger than %d bytes", maxResultBytes), Final: true}
	}
	if f != nil {
		return &Step{Key: in.Key, Kind: StepTried, Body: body{"try": 1.0, "code": string(f.Code), "message": clean(f.Message, problem.MaxText), "final": f.Final}}, nil
	}
	return &Step{Key: in.Key, Kind: StepBegun, Body: b}, nil
}

func checkTools(tools []Tool) *Failure {
	bad := func(format string, args ...any) *Failure {
		return &Failure{Code: problem.AgentConfigInvalid, Message: problem.Format(format, args...), Final: true}
	}
	if len(tools) > MaxTools {
		return bad("there are %d tools, of at most %d: allow fewer", len(tools), MaxTools)
	}
	var names []string
	for _, t := range tools {
		switch {
		case !nameOfTool(t.Name):
			return bad("the tool name %q is not made of 1 to 64 letters, digits, \"_\" and \"-\"", t.Name)
		case slices.Contains(names, t.Name):
			return bad("two tools are called %q: deny one of them", t.Name)
		case t.Gate != "" && !isDecision(t.Gate), !slices.Contains([]string{"", crashRepeat, crashReport, crashAsk}, t.OnCrash):
			return bad("tool %q: gate is allow, ask or deny, onCrash repeat, report or ask", t.Name)
		}
		names = append(names, t.Name)
	}
	return nil
}

// resultBody records the result of a tool.
func (a *agent) resultBody(c *call, in ToolReturned) body {
	b := body{"tool": c.name, "workMs": millis(in.Worked)}
	if len(in.Changed) > 0 {
		changed := make([]any, len(in.Changed))
		for i, what := range in.Changed {
			changed[i] = clean(what, maxNameBytes)
		}
		b["toolChanged"] = changed
	}
	if f := in.Failure; f != nil {
		return b.withError(string(f.Code), clean(f.Message, problem.MaxText))
	}
	if in.Large != nil {
		return b.refer(c, in.Large, a.cfg.Results.PreviewChars)
	}
	v, err := jsonvalue.Normalize(in.Output)
	if err != nil {
		return b.withError(string(problem.ActivityOutputInvalid), "the result is not JSON: "+problem.Excerpt(err.Error(), problem.MaxText))
	}
	size := jsonvalue.Size(v, maxResultBytes)
	if size > maxResultBytes {
		return b.withError(ToolResultTooLarge, fmt.Sprintf("the result is larger than %d bytes: ask for less", maxResultBytes))
	}
	b["output"], b["bytes"] = v, float64(size)
	return b
}

func (b body) withError(code, message string) body {
	b["error"] = map[string]any{"code": code, "message": message}
	return b
}

// usageBody has the fields of llm_call (chat.UsageIn).
func usageBody(u chat.Usage) map[string]any {
	m := map[string]any{"prompt_tokens": float64(u.Prompt), "cached_tokens": float64(u.Cached), "completion_tokens": float64(u.Completion)}
	if u.Estimated {
		m["estimated"] = true
	}
	return m
}

// usageOf returns a recorded usage, zero without one.
func usageOf(u *agentsteps.Usage) chat.Usage {
	if u == nil {
		return chat.Usage{}
	}
	return chat.Usage{Prompt: u.Prompt, Cached: u.Cached, Completion: u.Completion, Estimated: u.Estimated}
}

// bounded returns a usage as it is recorded, with numbers that a journal can hold.
func bounded(u chat.Usage) chat.Usage {
	within := func(n int) int {
		if n < 0 || n > maxCount {
			return 0
		}
		return n
	}
	u.Prompt, u.Cached, u.Completion = within(u.Prompt), within(u.Cached), within(u.Completion)
	u.Cached = min(u.Cached, u.Prompt)
	return u
}

func failureOf(e *agentsteps.Tried) Failure {
	return Failure{Code: problem.Code(orElse(e.Code, string(problem.Internal))), Message: e.Message, Final: e.Final}
}
