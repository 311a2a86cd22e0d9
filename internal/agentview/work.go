package agentview

import (
	"fmt"
	"strings"

	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/agentsteps"
)

// Work is what an agent does now: it follows the steps of one attempt. What it keeps does not grow with their number.
type Work struct {
	agents map[string]*worker // by the prefix of their keys, "" for the first
	models map[string]string  // that each agent asks first, by the agent's name
	totals body
	budget body
}

// worker is an agent or a sub-agent.
type worker struct {
	name, model string
	turn        int
	calls       []outstanding
	// done says that its last reply had no calls.
	done bool
}

type outstanding struct{ key, tool string }

// Step takes the next step of the attempt. It returns false for one that is no agent's.
func (w *Work) Step(r *history.Record) bool {
	key, kind, _, ok := r.Payload.Step()
	b := body(r.Payload.AgentStep)
	if !ok || !isAgents(kind, b) && w.agents == nil {
		return false
	}
	if totals := b.object("totals"); totals != nil {
		w.totals = totals
	}
	prefix := key[:strings.LastIndex(key, "/")+1]
	switch kind {
	case "begun":
		a := &worker{name: b.text("agent")}
		if w.agents == nil {
			w.agents, w.models = map[string]*worker{}, map[string]string{}
			config := b.object("config")
			w.budget = config.object("budgets")
			w.learn(a.name, config, 0)
		}
		a.model = w.models[a.name]
		w.agents[prefix] = a
	case agentsteps.Reconfigured:
		if a := w.agents[""]; a != nil {
			config := b.object("config")
			w.models, w.budget = map[string]string{}, config.object("budgets")
			w.learn(a.name, config, 0)
			for _, a := range w.agents {
				a.model = w.models[a.name]
			}
		}
	case "reply":
		a := w.agents[prefix]
		if a == nil {
			return true
		}
		a.turn, a.model, a.calls = turnOf(key), b.text("model"), nil
		for i, c := range b.list("calls") {
			a.calls = append(a.calls, outstanding{fmt.Sprintf("%s.c%d", key, i+1), body(object(c)).text("name")})
		}
		a.done = len(a.calls) == 0
	case "result":
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
	return true
}

// learn notes the models of an agent and of those that it may call.
func (w *Work) learn(name string, config body, depth int) {
	if models := config.list("models"); len(models) > 0 && w.models[name] == "" {
		w.models[name] = body(object(models[0])).text("model")
	}
	for _, sub := range config.list("agents") {
		if below := body(object(sub)).object("config"); depth < maxNamed {
			w.learn(below.text("name"), below, depth+1)
		}
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

// Text says what the agent does: its turn, and the model that it asks or the tool that it calls.
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

// Spent says what the agent has taken so far: tokens, and money where its model has a price. "" before its first reply.
func (w *Work) Spent() string { return SpentText(w.totals, w.budget) }

// SpentText is what totals come to, with the budgets of tokens and money that there are.
func SpentText(totals, budgets map[string]any) string {
	t, b := body(totals), body(budgets)
	in, out := t.number("prompt_tokens"), t.number("completion_tokens")
	if in+out == 0 {
		return ""
	}
	text := fmt.Sprintf("%d+%d tokens", in, out)
	if most := b.number("tokens"); most > 0 {
		text += fmt.Sprintf(" of %d", most)
	}
	if cost := t.number("cost_micros"); cost > 0 {
		text += ", " + USD(cost)
		if most := b.number("costMicros"); most > 0 {
			text += " of " + USD(most)
		}
	}
	return text
}

// turnOf is the number of the turn in a key such as t3, t1.c2/t4 or t3.c1; 0 for another.
func turnOf(key string) (turn int) {
	own, _, _ := strings.Cut(key[strings.LastIndex(key, "/")+1:], ".")
	if _, err := fmt.Sscanf(own, "t%d", &turn); err != nil {
		return 0
	}
	return turn
}
