package conformance_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/workflows-engine/workflows-engine/activities/chat"
	"github.com/workflows-engine/workflows-engine/activities/chat/chattest"
	"github.com/workflows-engine/workflows-engine/delegate/agent"
	"github.com/workflows-engine/workflows-engine/delegate/agentloop"
	"github.com/workflows-engine/workflows-engine/internal/enginetest"
)

// team are the agents of a crash case: what they are, and what their model says. A reply depends on the conversation alone, so that a
// process that takes over is told the same; only the failures of a model are used up.
type team struct {
	agents func(o *office) map[string]agent.Agent
	script []chattest.Reply
	// before are the agents of the run failedRun, which fails; the run of the case is a retry of it with today's configuration.
	before func(o *office) map[string]agent.Agent
	// atOnce is how many requests to the model a death can cost: one for each branch.
	atOnce int
	office *office
}

// staffed is a case with an office of its own, if it has agents. It is called outside of bubbles.
func (c *crashCase) staffed(t *testing.T) *crashCase {
	t.Helper()
	if c.team == nil {
		return c
	}
	staffed, team := *c, *c.team
	team.office = openOffice(t)
	staffed.team = &team
	return &staffed
}

// always is a reply to all conversations in which the text stands.
func always(when string, r chattest.Reply) chattest.Reply {
	r.When, r.Always = when, true
	return r
}

const unknown = "TOOL_OUTCOME_UNKNOWN"

// agentCases are workflows with agents: each has a way of its own to be in the middle of something.
func agentCases(t *testing.T) []*crashCase {
	t.Helper()
	price := func(item string) chat.Call { return chattest.Call("shop__price", fmt.Sprintf(`{"item":%q}`, item)) }
	note := chattest.Call("shop__note", `{"item":"tea"}`)
	refund := chattest.Call("shop__refund", `{"item":"tea"}`)
	ship := chattest.Call("shop__ship", `{"item":"tea"}`)
	letter := chattest.Call("agent__writer", `{"task":"Write to the customer."}`)
	report := func(number string) chattest.Reply { // whose tokens nobody counts
		return chattest.Reply{NoUsage: true, Calls: []chat.Call{chattest.Call("shop__report", fmt.Sprintf(`{"item":%q}`, number))}}
	}
	mail := chattest.Call("shop__mail", `{"item":"letter"}`)
	clerk := func(change func(*agent.Agent)) func(o *office) map[string]agent.Agent {
		return func(o *office) map[string]agent.Agent {
			a := agent.Agent{Config: agentloop.Config{Instructions: "You work in a shop."}, Tools: o.tools()}
			if change != nil {
				change(&a)
			}
			return map[string]agent.Agent{"clerk": a}
		}
	}
	gated := []agentloop.Gate{{Tools: []string{"shop__refund"}, Do: agent.Ask}}
	answers := func(member string) *agentloop.Output {
		return &agentloop.Output{Repairs: 1, Schema: object{"type": "object", "required": []any{member}, "properties": object{member: object{"type": "number"}}}}
	}
	writers := func(o *office) map[string]agent.Agent {
		return map[string]agent.Agent{
			"clerk":  {Config: agentloop.Config{Instructions: "You work in a shop."}, Agents: []agent.SubAgent{{Name: "writer"}}},
			"writer": {Config: agentloop.Config{Instructions: "You write letters."}, Tools: []agent.Toolset{o.tool("mail", agent.WithGate(agent.Ask))}},
		}
	}
	written := []chattest.Reply{
		always("LETTER SENT", chattest.Text("Done.")), always("MAILED", chattest.Text("LETTER SENT")), always(unknown, chattest.Text("LETTER SENT")),
		always("You write letters.", chattest.Calls(mail)), always("You work in a shop.", chattest.Calls(letter)),
	}
	one := func(name string, agents func(o *office) map[string]agent.Agent, script ...chattest.Reply) *crashCase {
		return agentCase(t, name, strings.ReplaceAll(oneAgent, "NAME", name), agents, script...)
	}
	retried := one("reconfigured", clerk(nil),
		always("PRICED", chattest.Text("Tea costs 3.50.")), always("NOTED", chattest.Calls(price("tea"))), always("", chattest.Calls(note)))
	retried.team.before = clerk(func(a *agent.Agent) { a.Budgets.Turns = 1 })
	return []*crashCase{
		retried,
		one("plain", clerk(nil), always("PRICED", chattest.Text("Tea costs 3.50.")), always("", chattest.Calls(price("tea")))),
		one("batch", clerk(nil),
			always("NOTED", chattest.Text("Noted.")), always(unknown, chattest.Text("Noted.")),
			always("", chattest.Calls(price("tea"), price("milk"), note))),
		one("gate", clerk(func(a *agent.Agent) { a.Gates = gated }),
			always("REFUNDED", chattest.Text("Paid back.")), always(unknown, chattest.Text("Paid back.")),
			always("PRICED", chattest.Calls(refund)), always("", chattest.Calls(price("tea")))),
		one("asked", clerk(nil), always("SHIPPED", chattest.Text("Sent.")), always("", chattest.Calls(ship, price("tea")))),
		one("sub", writers, written...),
		one("rest", clerk(nil),
			chattest.Reply{When: "PRICED", Status: http.StatusTooManyRequests, Header: http.Header{"Retry-After": {"20"}}, Body: `{"error":{"message":"slow down"}}`},
			always("PRICED", chattest.Text("Tea costs 3.50.")), always("", chattest.Calls(price("tea")))),
		agentCase(t, "continued", strings.Replace(strings.ReplaceAll(oneAgent, "NAME", "continued"), "type: agent_delegate,", "type: agent_delegate, retry: {max_attempts: 3, initial_interval: 1s},", 1),
			clerk(func(a *agent.Agent) { a.Output = answers("price") }),
			always("did not count", chattest.Text(`{"price":3.5}`)), always("NOTED", chattest.Text("It costs 3.50.")), always(unknown, chattest.Text("It costs 3.50.")),
			always("", chattest.Calls(note))),
		one("repair", clerk(func(a *agent.Agent) { a.Output = answers("price") }),
			always("It costs", chattest.Text(`{"price":3.5}`)), always("PRICED", chattest.Text("It costs 3.50.")), always("", chattest.Calls(price("tea")))),
		one("compaction", clerk(func(a *agent.Agent) {
			a.Compaction, a.Results = agentloop.Compaction{KeepTurns: 1, SummaryMaxTokens: 300}, agentloop.Results{PreviewChars: 4000}
		}),
			always("SUMMED UP", chattest.Text("Done.")), always("You sum up the beginning", chattest.Text("SUMMED UP: tea and milk.")),
			always("REPORT n5", chattest.Text("Not summed up.")), always("REPORT n4", report("n5")), always("REPORT n3", report("n4")),
			always("REPORT n2", report("n3")), always("REPORT n1", report("n2")), always("", report("n1"))),
		agentCase(t, "llm_call", modelNode, clerk(nil), always("PRICED", chattest.Text("Tea costs 3.50.")), always("", chattest.Calls(price("tea")))),
		agentCase(t, "branches", twoAgents, func(o *office) map[string]agent.Agent {
			team := writers(o)
			team["cashier"] = agent.Agent{Config: agentloop.Config{Instructions: "You are at the till.", Gates: gated, Output: answers("paid")}, Tools: o.tools()}
			return team
		}, append([]chattest.Reply{
			always("PRICED", chattest.Text(`{"paid":1}`)), always("You are at the till.", chattest.Calls(refund, price("tea"))),
		}, written...)...),
	}
}

func agentCase(t *testing.T, name, text string, agents func(o *office) map[string]agent.Agent, script ...chattest.Reply) *crashCase {
	t.Helper()
	return &crashCase{
		name: "agents/" + name, doc: enginetest.Define(t, text), input: object{"task": "What about the tea?"}, signals: map[string][]object{},
		answers: []object{{"decision": "approve"}}, team: &team{agents: agents, script: script, atOnce: 1 + strings.Count(text, "name: money")},
	}
}

const oneAgent = `
document: {schema: "https://agent-workflow.dev/schemas/workflow-definition.json", name: NAME, version: 1.0.0}
state_schema: {type: object}
nodes:
  - {id: start, type: start}
  - {id: work, type: agent_delegate, config: {agent_id: clerk, protocol: sdk, input_mapping: {task: "${ .task }"}}}
  - {id: end, type: end, config: {output_mapping: .}}
edges:
  - {source: __start__, target: start}
  - {source: start, target: work}
  - {source: work, target: end}
`

const modelNode = `
document: {schema: "https://agent-workflow.dev/schemas/workflow-definition.json", name: llm-call, version: 1.0.0}
state_schema: {type: object}
nodes:
  - {id: start, type: start}
  - {id: work, type: llm_call, config: {agent: clerk, user_prompt: "${ .task }", output_schema: {type: object}}}
  - {id: end, type: end, config: {output_mapping: .}}
edges:
  - {source: __start__, target: start}
  - {source: start, target: work}
  - {source: work, target: end}
`

const twoAgents = `
document: {schema: "https://agent-workflow.dev/schemas/workflow-definition.json", name: branches, version: 1.0.0}
state_schema: {type: object}
nodes:
  - {id: start, type: start}
  - {id: both, type: parallel, config: {join: all, branches: [{name: letter, entry: write}, {name: money, entry: pay}]}}
  - {id: write, type: agent_delegate, config: {agent_id: clerk, protocol: sdk, input_mapping: {task: "${ .task }"}}}
  - {id: pay, type: agent_delegate, config: {agent_id: cashier, protocol: sdk, input_mapping: {task: "${ .task }"}}}
  - {id: end, type: end, config: {output_mapping: .}}
edges:
  - {source: __start__, target: start}
  - {source: start, target: both}
  - {source: both, target: end}
  - {source: write, target: end}
  - {source: pay, target: end}
`
