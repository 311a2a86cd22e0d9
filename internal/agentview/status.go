package agentview

import (
	"strings"

	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// Status is where an agent stands, from the first and the newest step of its attempt.
type Status struct {
	Name string
	// Path is the call by which the sub-agent is at work that recorded the newest step, "" for the agent itself.
	Path string
	// Turn is the newest one of the agent, without those of sub-agents.
	Turn int
	// Totals and Budgets are as recorded; Budgets has no member for what has no bound.
	Totals, Budgets map[string]any
}

// StatusOf returns where an agent stands; ok is false for another executor. begun and newest are the members of the steps (agentStep), and
// reconfigured those of the one that says with which configuration it goes on, if there is one.
func StatusOf(begun, reconfigured, newest, totals map[string]any) (s Status, ok bool) {
	b := body(begun)
	if b.text("kind") != "begun" || !isAgents("begun", b) {
		return Status{}, false
	}
	s = Status{Name: b.text("agent"), Totals: totals, Budgets: b.object("config").object("budgets")}
	if config := body(reconfigured).object("config"); config != nil {
		s.Budgets = config.object("budgets")
	}
	key := body(newest).text("key")
	if calls := Calls(newest); body(newest).text("kind") == "question" && len(calls) > 0 {
		key = calls[0].Key
	}
	if i := strings.LastIndex(key, "/"); i >= 0 {
		s.Path = key[:i]
	}
	root, _, _ := strings.Cut(key, "/")
	s.Turn = turnOf(root)
	return s, true
}

// JSON is the status as answers have it.
func (s *Status) JSON() jsonvalue.Ordered {
	m := jsonvalue.Ordered{{"name", s.Name}}
	m.Text("path", s.Path)
	m.Put("turn", float64(s.Turn))
	t := body(s.Totals)
	totals := jsonvalue.Ordered{}
	for _, name := range []string{"turns", "tool_calls", "prompt_tokens", "cached_tokens", "completion_tokens", "work_ms"} {
		totals.Put(name, float64(t.number(name)))
	}
	if t.flag("estimated") {
		totals.Put("estimated", true)
	}
	m.Put("totals", totals)
	m.Put("cost_usd", float64(t.number("cost_micros"))/1e6)
	b := body(s.Budgets)
	budgets := jsonvalue.Ordered{}
	for _, name := range [][2]string{{"turns", "turns"}, {"toolCalls", "tool_calls"}, {"tokens", "tokens"}, {"workMs", "work_ms"}} {
		if n := b.number(name[0]); n > 0 {
			budgets.Put(name[1], float64(n))
		}
	}
	if n := b.number("costMicros"); n > 0 {
		budgets.Put("cost_usd", float64(n)/1e6)
	}
	m.Put("budgets", budgets)
	return m
}

// CallsJSON are the calls of a question as answers have them: a plain value.
func CallsJSON(calls []Call) []any {
	list := make([]any, len(calls))
	for i, c := range calls {
		m := map[string]any{"key": c.Key, "tool": c.Tool, "arguments": c.Arguments, "digest": c.Digest}
		if c.MayHaveHappened {
			m["may_have_happened"] = true
		}
		list[i] = m
	}
	return list
}
