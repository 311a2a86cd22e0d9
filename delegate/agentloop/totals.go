package agentloop

import (
	"math"

	"github.com/workflows-engine/workflows-engine/activities/chat"
	"github.com/workflows-engine/workflows-engine/internal/agentsteps"
)

// Totals are the usage of an agent together with its sub-agents.
type Totals struct {
	Turns, ToolCalls                             int
	PromptTokens, CachedTokens, CompletionTokens int
	CostMicros, WorkMs                           int
	// Estimated is set if a provider did not count tokens.
	Estimated bool
}

// Map returns the totals as they are recorded.
func (t Totals) Map() map[string]any {
	m := map[string]any{
		"turns": float64(t.Turns), "tool_calls": float64(t.ToolCalls), "prompt_tokens": float64(t.PromptTokens), "cached_tokens": float64(t.CachedTokens),
		"completion_tokens": float64(t.CompletionTokens), "cost_micros": float64(t.CostMicros), "work_ms": float64(t.WorkMs),
	}
	if t.Estimated {
		m["estimated"] = true
	}
	return m
}

// maxCount bounds every number that comes from outside.
const maxCount = agentsteps.MaxCount

func (t *Totals) add(d Totals) {
	sum := func(a *int, b int) { *a = min(*a+b, maxCount) }
	sum(&t.Turns, d.Turns)
	sum(&t.ToolCalls, d.ToolCalls)
	sum(&t.PromptTokens, d.PromptTokens)
	sum(&t.CachedTokens, d.CachedTokens)
	sum(&t.CompletionTokens, d.CompletionTokens)
	sum(&t.CostMicros, d.CostMicros)
	sum(&t.WorkMs, d.WorkMs)
	t.Estimated = t.Estimated || d.Estimated
}

// price returns the cost of a request.
func price(m *Model, u chat.Usage) Totals {
	t := Totals{PromptTokens: u.Prompt, CachedTokens: u.Cached, CompletionTokens: u.Completion, Estimated: u.Estimated}
	if p := m.Price; p != nil {
		cost := float64(u.Prompt-u.Cached)*p.Input + float64(u.Cached)*p.CachedInput + float64(u.Completion)*p.Output
		t.CostMicros = int(min(math.Ceil(cost), maxCount)) // a dollar for a million tokens is a millionth for one
	}
	return t
}

// use adds to the totals of an agent and of all above it.
func (a *agent) use(d Totals) {
	for ; a != nil; a = a.parent() {
		a.spent.add(d)
	}
}

// exceeded returns the first exhausted budget of an agent, as a word of Done.Stop, or "". calls is true before a call of a tool, false
// before a call of a model.
func (a *agent) exceeded(calls bool) string {
	b, s := &a.cfg.Budgets, &a.spent
	switch {
	case !calls && s.Turns >= b.Turns:
		return stopTurns
	case calls && s.ToolCalls >= b.ToolCalls:
		return stopToolCalls
	case b.Tokens > 0 && s.PromptTokens+s.CompletionTokens >= b.Tokens:
		return stopTokens
	case b.CostMicros > 0 && s.CostMicros >= b.CostMicros:
		return stopCost
	case s.WorkMs >= b.WorkMs:
		return stopTime
	}
	return ""
}

// affords returns how many tokens of most an answer of the agent by may have within the budget of an agent, and the budget that is used up, if any.
// The turn of an early answer is within the budget: its prompt and FinishTokens are reserved.
func (a *agent) affords(m *Model, prompt, most int, by *agent) (int, string) {
	b, s := &a.cfg.Budgets, &a.spent
	least, kept, again, own := min(leastTokens, most), 0, 0, m
	switch {
	case a.finishing != "":
		least = min(1, most)
	case b.OnExceeded != "finish":
	case a == by:
		kept, again = prompt, 1 // what is answered now is in that prompt, too
	default:
		kept, own = a.prompt(), &a.cfg.Models[a.model]
	}
	finish := 0
	if a.finishing == "" && b.OnExceeded == "finish" {
		finish = b.FinishTokens
	}
	if b.Tokens > 0 {
		if left := (b.Tokens - s.PromptTokens - s.CompletionTokens - prompt - kept - finish) / (1 + again); left < most {
			if most = left; most < least {
				return 0, stopTokens
			}
		}
	}
	if p := m.Price; b.CostMicros > 0 && p != nil {
		left, each := float64(b.CostMicros-s.CostMicros)-float64(prompt)*p.Input, p.Output
		if q := own.Price; q != nil {
			left -= float64(kept)*q.Input + float64(finish)*q.Output
			each += float64(again) * q.Input
		}
		switch {
		case left < 0:
			return 0, stopCost
		case left < float64(most)*each:
			if most = int(left / each); most < least {
				return 0, stopCost
			}
		}
	}
	return most, ""
}

// leastTokens is how many tokens an answer needs: with fewer left a budget is used up.
const leastTokens = 256

// budgetRoom is affords by the rules of the first form. The budget of an agent that is finishing does not count.
func (a *agent) budgetRoom(m *Model, prompt, most int) (int, string) {
	b, s := &a.cfg.Budgets, &a.spent
	budget := ""
	least := min(leastTokens, most)
	if b.Tokens > 0 {
		if left := b.Tokens - s.PromptTokens - s.CompletionTokens - prompt; left < most {
			if most = left; most < least {
				return 0, stopTokens
			}
		}
	}
	if p := m.Price; b.CostMicros > 0 && p != nil {
		left := float64(b.CostMicros-s.CostMicros) - float64(prompt)*p.Input
		switch {
		case left < 0: // the prompt alone costs more, even where answers cost nothing
			budget = stopCost
		case left < float64(most)*p.Output:
			if most = int(left / p.Output); most < least {
				budget = stopCost
			}
		}
	}
	return most, budget
}
