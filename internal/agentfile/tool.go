package agentfile

import (
	"fmt"
	"maps"
	"slices"

	"github.com/workflows-engine/workflows-engine/delegate/agentloop"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/document"
)

// tools checks the tools of an agent. Tools of servers are known only when they are listed, so two of one name are found here only where
// the list itself names both.
func (p *parser) tools(agent, at string, tools []Entry) {
	seen := map[string]bool{}
	for i := range tools {
		at, t := at+document.At(i), tools[i]
		if t.Tool == nil {
			continue
		}
		t.check(p, agent, at)
		if slices.ContainsFunc([]string{t.kind.field, "name", "allow"}, func(field string) bool { return !p.d.Intact(at + document.At(field)) }) {
			continue
		}
		for _, name := range t.names() {
			if seen[name] {
				p.d.Fail(at, "uniqueItems", "%s is listed twice", name).Hint = "Leave one of them out."
			}
			seen[name] = true
		}
	}
}

// configured checks that a server or a step is configured. Without any the reason, if it is known, is the mistake.
func (p *parser) configured(at, thing, name string, known []string, why string) {
	switch {
	case slices.Contains(known, name):
	case why != "":
		p.d.Fail(at, "profile", "there is no %s %q: %s", thing, name, why)
	case len(known) > 0:
		p.unknown(at, fmt.Sprintf("there is no %s %q", thing, name), name, known)
	}
}

// inDirectory reports the names that a directory does not have.
func (p *parser) inDirectory(at string, names []string, check func(name string) error) {
	if !p.Directories {
		return
	}
	for i, name := range names {
		if err := check(name); err != nil {
			p.d.FailWith(at+document.At(i), err)
		}
	}
}

// checkCycles reports agents that call themselves, directly or through others: once for each cycle. found reports whether there are any.
func (p *parser) checkCycles() (found bool) {
	const above, seen = 1, 2
	state := map[string]int{}
	var walk func(name string)
	walk = func(name string) {
		state[name] = above
		for _, c := range p.calls[name] {
			switch state[c.agent] {
			case above:
				p.d.Fail(c.at, "profile", "agents call each other in a circle: %s calls %s, which leads back to %s", name, c.agent, name)
				found = true
			case seen:
			default:
				walk(c.agent)
			}
		}
		state[name] = seen
	}
	for _, name := range slices.Sorted(maps.Keys(p.calls)) {
		if state[name] == 0 {
			walk(name)
		}
	}
	return found
}

// checkSizes reports agents with more sub-agents than a configuration may have, or nested deeper: the outermost ones. There must be no
// cycles.
func (p *parser) checkSizes() {
	sizes, inner := map[string]size{}, map[string]bool{}
	for _, calls := range p.calls {
		for _, c := range calls {
			inner[c.agent] = true
		}
	}
	for name := range p.list.Agents {
		at := document.At("agents", name)
		switch s := p.sizeOf(name, sizes); {
		case inner[name]:
		case s.nested > agentloop.MaxNesting:
			p.d.Fail(at, "profile", "sub-agents of %s are nested more than %d deep", name, agentloop.MaxNesting).Hint = "Let agents call fewer others."
		case s.agents > agentloop.MaxAgents:
			p.d.Fail(at, "profile", "%s has more than %d sub-agents, each counted once for every agent that calls it", name, agentloop.MaxAgents).Hint = "Let agents call fewer others."
		}
	}
}

// size is the number of agents in the configuration of one, itself included, and their depth.
type size struct{ agents, nested int }

func (p *parser) sizeOf(name string, sizes map[string]size) size {
	if s, ok := sizes[name]; ok {
		return s
	}
	all := size{agents: 1, nested: 1}
	for _, sub := range p.calls[name] {
		s := p.sizeOf(sub.agent, sizes)
		all.agents, all.nested = min(all.agents+s.agents, agentloop.MaxAgents+1), max(all.nested, s.nested+1)
	}
	sizes[name] = all
	return all
}

// warnOfCosts warns of budgets of money that do not count everything: a called agent has a model without a price. There must be no cycles.
func (p *parser) warnOfCosts(f *File) {
	for _, name := range slices.Sorted(maps.Keys(f.Agents)) {
		if f.Agents[name].Budgets.CostMicros == 0 {
			continue
		}
		seen := map[string]bool{}
		var walk func(above string)
		walk = func(above string) {
			for _, c := range p.calls[above] {
				if seen[c.agent] {
					continue
				}
				seen[c.agent] = true
				sub := f.Agents[c.agent]
				asked := slices.Clone(sub.Models)
				if !slices.Contains(asked, sub.SummaryModel) {
					asked = append(asked, sub.SummaryModel)
				}
				for _, model := range asked {
					if p.unpriced(model) {
						w := p.d.Fail(document.At("agents", name, "budgets", "costUsd"), "profile", "model %q of agent %q has no price: its cost is not counted", model, c.agent)
						w.Severity, w.Hint = problem.SeverityWarning, "Give it priceUsdPerMTok, with zeros if it costs nothing."
					}
				}
				walk(c.agent)
			}
		}
		walk(name)
	}
}
