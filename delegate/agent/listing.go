package agent

import (
	"cmp"
	"context"
	"slices"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/delegate/agentloop"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// Config returns an agent as resolved, with its models, sub-agents and defaults; false if it does not exist.
func (a *Agents) Config(name string) (agentloop.Config, bool) {
	c, ok := a.resolved[name]
	return c, ok
}

// Tools lists the tools of an agent, as a run of it would: servers are connected to. Those of the engine itself are not among them.
func (a *Agents) Tools(ctx context.Context, name string) ([]Tool, error) {
	l, err := a.list(ctx, name, &activities.Request{})
	return l.tools, err
}

// listing holds the tools of an agent's toolsets, and their parts of the system text.
type listing struct {
	tools []Tool
	said  []string
}

// list lists the tools of an agent as a node narrows them, and notes whose they are.
func (a *Agents) list(ctx context.Context, agent string, req *activities.Request) (l listing, err error) {
	for _, set := range a.config.Agents[agent].Tools {
		less, err := narrowed(set, agent, req)
		if err != nil {
			return l, err
		}
		changes := changesOf(set)
		listed, err := less.Tools(ctx)
		if err != nil {
			return l, err
		}
		a.own(agent, set, changes, listed)
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

// Changing is a toolset whose tools may change while they are used.
type Changing interface {
	Toolset
	// Changes returns a number that rises whenever Tools may return another list than before.
	Changes() int64
}

// owned is a tool as it was listed last, and its toolset.
type owned struct {
	set     Toolset
	tool    Tool
	changes int64 // of the toolset, before it was listed
}

func changesOf(set Toolset) int64 {
	if c, ok := set.(Changing); ok {
		return c.Changes()
	}
	return 0
}

// owner returns the toolset of a tool, and the tool as it is now. The lists are read once in a process, again for a tool that is not on them,
// and where a toolset may have changed. A toolset that cannot list does not prevent the use of others.
func (a *Agents) owner(ctx context.Context, agent, tool string) (Toolset, Tool, error) {
	a.mu.Lock()
	o := a.owners[agent][tool]
	a.mu.Unlock()
	if o.set != nil && o.changes == changesOf(o.set) {
		return o.set, o.tool, nil
	}
	var failed error
	for _, set := range a.config.Agents[agent].Tools {
		changes := changesOf(set)
		listed, err := set.Tools(ctx)
		if err != nil {
			failed = cmp.Or(failed, err)
			continue
		}
		a.own(agent, set, changes, listed)
		if at := slices.IndexFunc(listed, func(t Tool) bool { return t.Name == tool }); at >= 0 {
			return set, listed[at], nil
		}
	}
	return nil, Tool{}, cmp.Or(failed, error(activities.Fail(agentloop.ToolUnknown, "tool %q is not here any more", tool)))
}

func (a *Agents) own(agent string, set Toolset, changes int64, listed []Tool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.owners[agent] == nil {
		a.owners[agent] = map[string]owned{}
	}
	for i := range listed {
		a.owners[agent][listed[i].Name] = owned{set, listed[i], changes}
	}
}

// changed names the fields of a tool that differ from those listed at the start of the agent.
func (w *attempt) changed(began, now *Tool) (what []string) {
	description := now.Description
	if mask := w.agents.config.Mask; mask != nil {
		description = mask(description)
	}
	if description != began.Description {
		what = append(what, "description")
	}
	if plain, err := jsonvalue.Normalize(now.Parameters); err == nil && !jsonvalue.Equal(plain, any(began.Parameters)) && len(now.Parameters)+len(began.Parameters) > 0 {
		what = append(what, "parameters")
	}
	if now.ReadOnly != began.ReadOnly {
		what = append(what, "readOnly")
	}
	return what
}
