package agent

import (
	"cmp"
	"context"
	"slices"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/delegate"
	"github.com/workflows-engine/workflows-engine/delegate/agentloop"
)

// Config returns an agent as resolved, with its models, sub-agents and defaults; false if there is none of the name.
func (a *Agents) Config(name string) (agentloop.Config, bool) {
	c, ok := a.resolved[name]
	return c, ok
}

// Tools lists the tools of an agent, as a run of it would: servers are connected to. Those of the engine itself are not among them.
func (a *Agents) Tools(ctx context.Context, name string) ([]Tool, error) {
	l, err := a.list(ctx, name, &delegate.Request{})
	return l.tools, err
}

// listing is what the toolsets of an agent have, and say in the system text.
type listing struct {
	tools []Tool
	said  []string
}

// list lists the tools of an agent as a node narrows them, and notes whose they are.
func (a *Agents) list(ctx context.Context, agent string, req *delegate.Request) (l listing, err error) {
	for _, set := range a.config.Agents[agent].Tools {
		less, err := narrowed(set, agent, req)
		if err != nil {
			return l, err
		}
		listed, err := less.Tools(ctx)
		if err != nil {
			return l, err
		}
		a.own(agent, set, listed)
		l.tools = append(l.tools, listed...)
		if p, ok := less.(Prompter); ok {
			text, err := p.Prompt()
			if err != nil {
				return l, err
			}
			l.said = append(l.said, text)
		}
	}
	return l, nil
}

// owner returns the toolset of a tool. The lists are read once in a process, and again for a tool that is not on them. What one toolset
// cannot list does not keep the others from being used.
func (a *Agents) owner(ctx context.Context, agent, tool string) (Toolset, error) {
	a.mu.Lock()
	set := a.owners[agent][tool]
	a.mu.Unlock()
	if set != nil {
		return set, nil
	}
	var failed error
	for _, set := range a.config.Agents[agent].Tools {
		listed, err := set.Tools(ctx)
		if err != nil {
			failed = cmp.Or(failed, err)
			continue
		}
		a.own(agent, set, listed)
		if slices.ContainsFunc(listed, func(t Tool) bool { return t.Name == tool }) {
			return set, nil
		}
	}
	return nil, cmp.Or(failed, error(activities.Fail(agentloop.ToolUnknown, "tool %q is not here any more", tool)))
}

func (a *Agents) own(agent string, set Toolset, listed []Tool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.owners[agent] == nil {
		a.owners[agent] = map[string]Toolset{}
	}
	for i := range listed {
		a.owners[agent][listed[i].Name] = set
	}
}
