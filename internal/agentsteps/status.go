package agentsteps

import (
	"fmt"
	"strings"

	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// Status is the progress of an agent, from the first and the newest entry of its attempt.
type Status struct {
	Name string
	// Path is the call of the sub-agent that recorded the newest entry, "" for the agent itself.
	Path string
	// Turn is the newest turn of the agent itself.
	Turn int
	// Totals and Budgets are as recorded. Budgets has a field for each limit.
	Totals, Budgets map[string]any
}

// StatusOf returns the status of an agent; ok is false for another executor. begun, reconfigured and newest are the recorded fields of the
// first entry, of the newest one with another configuration, which may be nil, and of the newest one.
func StatusOf(begun, reconfigured, newest, totals map[string]any) (s Status, ok bool) {
	first, ok := Body(begun, nil).(*Begun)
	if !ok {
		return Status{}, false
	}
	s = Status{Name: first.Agent, Totals: totals, Budgets: first.Config.Budgets}
	if config := body(reconfigured).object("config"); config != nil {
		s.Budgets = config.object("budgets")
	}
	key := body(newest).text("key")
	if q, ok := Body(newest, nil).(*Question); ok && len(q.Calls) > 0 {
		key = q.Calls[0].Key
	}
	if i := strings.LastIndex(key, "/"); i >= 0 {
		s.Path = key[:i]
	}
	root, _, _ := strings.Cut(key, "/")
	s.Turn = TurnOf(root)
	return s, true
}

// TurnOf returns the number of the turn in a key such as t3, t1.c2/t4 or t3.c1; 0 for another.
func TurnOf(key string) (turn int) {
	own, _, _ := strings.Cut(key[strings.LastIndex(key, "/")+1:], ".")
	if _, err := fmt.Sscanf(own, "t%d", &turn); err != nil {
		return 0
	}
	return turn
}

// JSON returns the status for answers.
func (s *Status) JSON() jsonvalue.Ordered {
	m := jsonvalue.Ordered{{"name", s.Name}}
	m.Text("path", s.Path)
	m.Put("turn", float64(s.Turn))
	t := ReadTotals(s.Totals)
	totals := jsonvalue.Ordered{
		{"turns", float64(t.Turns)}, {"tool_calls", float64(t.ToolCalls)}, {"prompt_tokens", float64(t.Prompt)}, {"cached_tokens", float64(t.Cached)},
		{"completion_tokens", float64(t.Completion)}, {"work_ms", float64(t.WorkMS)},
	}
	if t.Estimated {
		totals.Put("estimated", true)
	}
	m.Put("totals", totals)
	m.Put("cost_usd", float64(t.CostMicros)/1e6)
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

// CallsJSON returns the calls of a question for answers, as a plain value.
func CallsJSON(calls []Ask) []any {
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
