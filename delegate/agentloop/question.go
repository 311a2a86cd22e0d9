package agentloop

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/agentsteps"
	"github.com/workflows-engine/workflows-engine/internal/jsonschema"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// Decisions of a person about a call.
const (
	decideApprove = "approve"
	decideDeny    = "deny"
	decideEdit    = "edit"
	decideRespond = "respond"
	decideStop    = "stop"
)

var decisions = []any{decideApprove, decideDeny, decideEdit, decideRespond, decideStop}

// question is one that is open: about calls that need approval, or the question of a call of ask_person.
type question struct {
	Question
	agent  *agent
	calls  []*call
	person bool
	schema *jsonschema.Schema
}

// raise asks a person if no effect is outstanding. Gated calls of a turn are one question; those of ask_person come after them, one by one.
// before is why the last answer could not be used, "" for a new question.
func (m *Machine) raise(before string) {
	var q *question
	m.root.each(func(a *agent) {
		if q != nil || a.phase != calling {
			return
		}
		if calls := a.in(gated); len(calls) > 0 {
			q = m.approval(a, calls)
		} else if calls := a.in(personal); len(calls) > 0 {
			q = personQuestion(a, calls[0])
		}
	})
	if q == nil {
		return
	}
	m.asked++
	q.Key = "q" + itoa(m.asked)
	about, list := "approval", []any{}
	if q.person {
		about = "person"
	}
	for _, c := range q.calls {
		shown := map[string]any{"key": c.key, "tool": c.name, "arguments": c.args, "digest": c.digest()}
		if c.begun {
			shown["mayHaveHappened"] = true
		}
		if c.why != "" {
			shown["reason"] = c.why
		}
		list = append(list, shown)
	}
	q.Body = map[string]any{"about": about, "agent": q.agent.cfg.Name, "calls": list}
	if before != "" {
		q.Body["refused"] = before
		q.Prompt = "The last answer could not be used: " + before + ".\n" + q.Prompt
	}
	m.question = q
}

func (a *agent) in(state callState) []*call {
	var calls []*call
	for _, c := range a.calls {
		if c.state == state && c.give == nil {
			calls = append(calls, c)
		}
	}
	return calls
}

func (m *Machine) approval(a *agent, calls []*call) *question {
	q := &question{agent: a, calls: calls}
	var names []string
	wait := 0
	entry := map[string]any{
		"decision": map[string]any{"enum": decisions}, "reason": map[string]any{"type": "string"}, "remember": map[string]any{"type": "boolean"},
		"arguments": map[string]any{"type": "object"}, "result": map[string]any{}, "digest": map[string]any{"type": "string"},
	}
	keys := []any{}
	for _, c := range calls {
		name := c.name
		if c.begun {
			name += " (it may have happened already, before a process died)"
		}
		names = append(names, name)
		keys = append(keys, c.key)
		if c.timeoutMs > 0 && (wait == 0 || c.timeoutMs < wait) {
			wait = c.timeoutMs
		}
	}
	// A misspelt "reason" would be lost, and without a misspelt "digest" the decision would hold for any arguments.
	each := map[string]any{"type": "object", "properties": entry, "required": []any{"decision"}, "additionalProperties": false}
	properties := map[string]any{"calls": map[string]any{"type": "object", "propertyNames": map[string]any{"enum": keys}, "additionalProperties": each}}
	for k, v := range entry {
		properties[k] = v
	}
	q.Schema = map[string]any{"type": "object", "properties": properties, "additionalProperties": false, "anyOf": []any{map[string]any{"required": []any{"decision"}}, map[string]any{"required": []any{"calls"}}}}
	q.Prompt = fmt.Sprintf("Agent %s wants to call %s. Approve?", a.cfg.Name, problem.AndList(names))
	if wait > 0 {
		q.Expires = m.now.Add(time.Duration(wait) * time.Millisecond)
		q.Otherwise = map[string]any{"decision": decideDeny, "reason": "nobody answered in time"}
	}
	return q
}

func personQuestion(a *agent, c *call) *question {
	q := &question{agent: a, calls: []*call{c}, person: true}
	q.Prompt, _ = c.args["question"].(string)
	if raw, ok := c.args["schema"].(map[string]any); ok {
		if s, err := jsonschema.Compile(raw); err == nil {
			q.Schema, q.schema = raw, s
		}
	}
	return q
}

// Check rejects an answer that fits the schema of the open question but cannot be used: a call without a decision, another digest,
// arguments that break the tool's parameters, blank text only. The error is INVALID_RESUME_PAYLOAD.
func (m *Machine) Check(answer map[string]any) error {
	if m.question == nil {
		return refuse("no question is open")
	}
	wrong := m.question.check(answer)
	if wrong == "" && m.question.person && len(m.question.Schema) == 0 && saysNothing(answer) {
		wrong = "the answer is blank" // not in check: a journal that has such an answer goes on with it
	}
	if wrong != "" {
		hint := "Answer again, in the form that the agent has asked for, or as {\"text\": \"…\"} if it has asked for none."
		if !m.question.person {
			hint = m.question.decisions()
		}
		return &problem.Error{Code: problem.InvalidResumePayload, Message: problem.Excerpt(wrong, problem.MaxText), Hint: hint}
	}
	return nil
}

// saysNothing reports whether all its fields are blank.
func saysNothing(answer map[string]any) bool {
	for _, v := range answer {
		if text, ok := v.(string); v != nil && (!ok || !isBlank(text)) {
			return false
		}
	}
	return true
}

// decisions returns the schema of answers to a question about calls.
func (q *question) decisions() string {
	const forms = `approve; deny or stop, with "reason"; edit, with "arguments"; respond, with "result"`
	if len(q.calls) == 1 {
		return `Answer again with {"decision":"approve"}, or another decision: ` + forms + "."
	}
	return fmt.Sprintf(`Answer again with {"decision":"approve"} for all calls, or {"calls":{%q:{"decision":"approve"},…}} for each its own: %s.`, q.calls[0].key, forms)
}

func (q *question) check(answer map[string]any) string {
	if q.person {
		if q.schema != nil {
			if vs := q.schema.Validate(answer); len(vs) > 0 {
				return "the answer breaks the schema: " + jsonschema.Text(vs)
			}
		}
		if jsonvalue.Size(answer, maxResultBytes) > maxResultBytes {
			return "the answer is too large"
		}
		return ""
	}
	var missing []string
	for _, key := range agentsteps.DecidedCalls(answer) {
		if !slices.ContainsFunc(q.calls, func(c *call) bool { return c.key == key }) {
			return problem.Format("there is no call %q to decide about", key)
		}
	}
	for _, c := range q.calls {
		d := agentsteps.DecisionOf(answer, c.key)
		if d == nil {
			missing = append(missing, c.key)
			continue
		}
		if wrong := q.wrong(c, d); wrong != "" {
			return c.key + ": " + wrong
		}
	}
	if len(missing) > 0 {
		return "no decision about " + problem.AndList(missing)
	}
	return ""
}

// wrong returns why a decision about a call cannot be used, "" if it can.
func (q *question) wrong(c *call, d *agentsteps.Decision) string {
	if d.HasDigest && d.Digest != c.digest() {
		return "the digest is not that of the call: it has changed, or another one is meant"
	}
	switch d.Decision {
	case decideApprove, decideDeny, decideStop:
	case decideEdit:
		args := d.Arguments
		if args == nil {
			return "edit needs \"arguments\", an object"
		}
		if wrong := q.agent.violations(c.tool, args); wrong != "" {
			return "the arguments break the tool's parameters: " + wrong
		}
		if jsonvalue.Size(args, maxArguments) > maxArguments {
			return "the arguments are too large"
		}
	case decideRespond:
		if !d.HasResult {
			return "respond needs \"result\""
		}
		if jsonvalue.Size(d.Result, maxResultBytes) > maxResultBytes {
			return "the result is too large"
		}
	default:
		return problem.Format("the decision %q is not one of approve, deny, edit, respond and stop", d.Decision)
	}
	return ""
}

// answered takes the answer to the open question. One that cannot be used is recorded as such, and the question asked again.
func (m *Machine) answered(key string, e *agentsteps.Answer) error {
	q := m.question
	if q == nil || q.Key != key {
		return fmt.Errorf("no question %q is open", problem.Clip(key, problem.MaxQuoted))
	}
	m.question = nil
	answer := e.Payload
	if e.Expired && q.Otherwise != nil {
		answer = q.Otherwise
	}
	if wrong := q.check(answer); wrong != "" {
		m.raise(problem.Excerpt(wrong, problem.MaxText))
		return nil
	}
	for _, c := range q.calls {
		if q.person {
			c.give = &outcome{output: any(answer), by: byPerson}
			continue
		}
		q.apply(c, agentsteps.DecisionOf(answer, c.key))
		if e.Expired && c.give != nil {
			c.give.by = byEngine
		}
	}
	return nil
}

func (q *question) apply(c *call, d *agentsteps.Decision) {
	reason := strings.TrimSpace(d.Reason)
	switch d.Decision {
	case decideApprove:
		if d.Remember && !c.begun {
			q.agent.m.remembered[q.agent.approval(c.name)] = true
		}
		c.state = q.agent.allowed(c)
	case decideEdit:
		c.args, c.edited = d.Arguments, true
		if do, reason, _ := q.agent.gate(c); do == doDeny { // a person cannot allow by other arguments what the operator denies
			c.deny(reason)
			return
		}
		c.state = q.agent.allowed(c)
	case decideRespond:
		c.give = &outcome{output: d.Result, by: byPerson}
	case decideDeny:
		if c.begun {
			c.refuse(ToolOutcomeUnknown, byPerson, "%s", orElse(reason, "the call may or may not have happened; a person does not want it repeated"))
			return
		}
		c.refuse(ToolDenied, byPerson, "%s", orElse(reason, "a person denies this call"))
	case decideStop:
		root := q.agent.m.root
		root.failWith(stopPerson, problem.AgentStopped, true, orElse(reason, "a person stopped the agent"))
	}
}
