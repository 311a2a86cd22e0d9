package timeline

import (
	"fmt"
	"strings"

	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/agentsteps"
)

// Work follows the journal of one attempt of an agent. Its size does not grow with the number of entries.
type Work struct {
	agents  map[string]*worker // by the prefix of their keys, "" for the first
	models  map[string]string  // the first model of each agent, by its name
	totals  map[string]any
	budgets map[string]any
}

// worker is an agent or a sub-agent.
type worker struct {
	name, model string
	turn        int
	calls       []outstanding
	// done is set by a reply without calls.
	done bool
}

type outstanding struct{ key, tool string }

// take takes the next entry.
func (w *Work) take(r *history.Record) {
	p := &r.Payload
	body := agentBody(p)
	if body == nil && w.agents == nil {
		return
	}
	if totals, ok := p.AgentStep["totals"].(map[string]any); ok {
		w.totals = totals
	}
	key, _, _, _ := p.Step()
	prefix := key[:strings.LastIndex(key, "/")+1]
	switch b := body.(type) {
	case *agentsteps.Begun:
		if w.agents == nil {
			w.agents = map[string]*worker{}
			w.configure(b.Agent, b.Config)
		}
		w.agents[prefix] = &worker{name: b.Agent, model: w.models[b.Agent]}
	case *agentsteps.Changed:
		if a := w.agents[""]; a != nil {
			w.configure(a.name, b.Config)
			for _, a := range w.agents {
				a.model = w.models[a.name]
			}
		}
	case *agentsteps.Reply:
		a := w.agents[prefix]
		if a == nil {
			return
		}
		a.turn, a.model, a.calls = agentsteps.TurnOf(key), b.Model, nil
		for i, c := range b.Calls {
			a.calls = append(a.calls, outstanding{fmt.Sprintf("%s.c%d", key, i+1), c.Name})
		}
		a.done = len(a.calls) == 0
	case *agentsteps.Result:
		delete(w.agents, key+"/")
		if a := w.agents[prefix]; a != nil {
			for i, c := range a.calls {
				if c.key == key {
					a.calls = append(a.calls[:i:i], a.calls[i+1:]...)
					break
				}
			}
		}
	}
}

// configure sets the budgets, and the models of an agent and of those that it may call.
func (w *Work) configure(name string, c agentsteps.Config) {
	w.models, w.budgets = map[string]string{}, c.Budgets
	w.learn(name, c)
}

func (w *Work) learn(name string, c agentsteps.Config) {
	if len(c.Models) > 0 && w.models[name] == "" {
		w.models[name] = c.Models[0]
	}
	for _, below := range c.Agents {
		w.learn(below.Name, below)
	}
}

// Known reports whether the steps are an agent's.
func (w *Work) Known() bool { return w.agents[""] != nil }

// Name is the agent's, "" where the steps are not an agent's.
func (w *Work) Name() string {
	if a := w.agents[""]; a != nil {
		return a.name
	}
	return ""
}

// Text describes the work: the turn, and the model that is asked or the tool that is called.
func (w *Work) Text() string { return w.text("", 0) }

// maxNamed bounds how deep sub-agents are named.
const maxNamed = 8

func (w *Work) text(prefix string, depth int) string {
	a := w.agents[prefix]
	switch {
	case a == nil:
		return ""
	case len(a.calls) == 0 && a.done:
		return fmt.Sprintf("turn %d, has answered", a.turn)
	case len(a.calls) == 0:
		model := a.model
		if model == "" {
			model = "its model"
		}
		return fmt.Sprintf("turn %d, asks %s", a.turn+1, model)
	}
	first := a.calls[0]
	text := fmt.Sprintf("turn %d, calls %s", a.turn, first.tool)
	if below := w.agents[first.key+"/"]; below != nil && depth < maxNamed {
		text = fmt.Sprintf("turn %d, %s: %s", a.turn, below.name, w.text(first.key+"/", depth+1))
	}
	if more := len(a.calls) - 1; more > 0 && depth == 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// Spent has the tokens so far, and their cost if the model has a price; "" before the first reply.
func (w *Work) Spent() string { return SpentText(w.totals, w.budgets) }

// SpentText describes totals, with the budgets of tokens and money if there are any; "" before the first tokens.
func SpentText(totals, budgets map[string]any) string {
	t := agentsteps.ReadTotals(totals)
	if t.Prompt+t.Completion == 0 {
		return ""
	}
	text := fmt.Sprintf("%d+%d tokens", t.Prompt, t.Completion)
	if most := budgetOf(budgets, "tokens"); most > 0 {
		text += fmt.Sprintf(" of %d", most)
	}
	if t.CostMicros > 0 {
		text += ", " + USD(t.CostMicros)
		if most := budgetOf(budgets, "costMicros"); most > 0 {
			text += " of " + USD(most)
		}
	}
	return text
}

func budgetOf(budgets map[string]any, name string) int64 {
	n, _ := budgets[name].(float64)
	if !(n >= 0 && n < 1<<53) {
		return 0
	}
	return int64(n)
}
