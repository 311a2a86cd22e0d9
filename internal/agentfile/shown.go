package agentfile

import "github.com/workflows-engine/workflows-engine/delegate/agentloop"

// Shown is a resolved agent as JSON shows it to operators: with money in dollars, as in the list. The history has millionths.
type Shown struct {
	agentloop.Config
	Budgets shownBudgets `json:"budgets"`
	Agents  []shownSub   `json:"agents,omitempty"`
}

type shownBudgets struct {
	agentloop.Budgets
	CostMicros *int    `json:"costMicros,omitempty"` // hides that of Budgets
	CostUSD    float64 `json:"costUsd,omitempty"`
}

type shownSub struct {
	Config Shown `json:"config"`
	agentloop.Sub
}

// InDollars returns a resolved agent, and those below it, as they are shown.
func InDollars(c agentloop.Config) Shown {
	s := Shown{Config: c, Budgets: shownBudgets{Budgets: c.Budgets, CostUSD: float64(c.Budgets.CostMicros) / 1e6}}
	for _, sub := range c.Agents {
		s.Agents = append(s.Agents, shownSub{Config: InDollars(sub.Config), Sub: sub})
	}
	return s
}
