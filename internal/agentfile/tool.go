package agentfile

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/workflows-engine/workflows-engine/delegate/agentloop"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/jsonobject"
	"github.com/workflows-engine/workflows-engine/internal/jsonschema"
)

// tools reads what an agent may call. Tools of servers are known only when they are listed, so two of one name are found here where the list
// itself says so.
func (r *reader) tools(agent string, v jsonobject.Value) []Tool {
	var tools []Tool
	seen := map[string]bool{}
	elements := v.Elements()
	if len(elements) > agentloop.MaxTools {
		v.Fail("maxItems", "the list has %d entries, and an agent has at most %d tools", len(elements), agentloop.MaxTools).Hint = "Leave some of them to other agents."
		return nil
	}
	for _, e := range elements {
		o := e.Object()
		if o == nil {
			continue
		}
		t := r.tool(agent, o)
		for _, name := range t.names() {
			if seen[name] {
				o.Fail("uniqueItems", "%s is listed twice", name).Hint = "Leave one of them out."
			}
			seen[name] = true
		}
		tools = append(tools, t)
	}
	return tools
}

// names are what a tool is listed by.
func (t Tool) names() []string {
	switch {
	case t.AskPerson:
		return []string{"ask_person"}
	case t.Agent != "":
		return []string{"agent__" + t.Agent}
	case t.Step != "":
		return []string{t.Name}
	case t.APIs != nil:
		return []string{"api_call"}
	case t.Knowledge != nil:
		return []string{"search_knowledge"}
	case t.Skills != nil:
		return []string{"read_skill"}
	case t.Server == "":
		return nil
	}
	var names []string
	for _, glob := range t.Allow {
		names = append(names, t.Server+"__"+glob)
	}
	if t.Allow == nil {
		names = []string{t.Server + "__*"}
	}
	return names
}

func (r *reader) tool(agent string, o *jsonobject.Object) (t Tool) {
	server, sub, builtin := o.Get("server"), o.Get("agent"), o.Get("builtin")
	step, api, knowledge, skills := o.Get("step"), o.Get("api"), o.Get("knowledge"), o.Get("skills")
	kinds := 0
	for _, v := range []jsonobject.Value{server, sub, builtin, step, api, knowledge, skills} {
		if v.Present() {
			kinds++
		}
	}
	if kinds != 1 {
		o.Fail("oneOf", "expected exactly one of server, step, api, knowledge, skills, agent and builtin")
	}
	switch {
	case server.Present():
		r.serverTools(&t, server, o)
	case sub.Present():
		t.Agent = sub.NonBlank()
		t.parallel(o)
		t.Gate = o.Get("gate").Choice(decisions...)
		r.calls[agent] = append(r.calls[agent], called{t.Agent, sub})
		if _, known := r.agents[t.Agent]; t.Agent != "" && !known {
			sub.Fail("profile", "there is no agent %q", t.Agent).Hint = meant(t.Agent, slices.Sorted(maps.Keys(r.agents)))
		} else if len(t.Agent) > 57 || strings.ContainsFunc(t.Agent, noToolName) {
			sub.Fail("pattern", "the name of an agent that others call has at most 57 letters, digits, \"_\" and \"-\"")
		}
	case step.Present():
		r.step(&t, step, o)
	case api.Present():
		t.APIs = r.named(api, "service", func(name string) (hint string, err error) {
			if _, known := r.apis[name]; !known {
				return meant(name, slices.Sorted(maps.Keys(r.apis))), fmt.Errorf("apis has no service %q", name)
			}
			return "", nil
		})
		t.usage(o)
	case knowledge.Present():
		if r.knowledge == nil {
			knowledge.AtName().Fail("profile", "there are no knowledge bases").Hint = "Name their folder in the member knowledge of the list."
		}
		t.Knowledge = r.named(knowledge, "knowledge base", func(name string) (hint string, err error) {
			return r.inFolder(r.KnowledgeBase, r.knowledge.folder(), name)
		})
		t.usage(o)
	case skills.Present():
		if r.skills == nil {
			skills.AtName().Fail("profile", "there are no skills").Hint = "Name their folder in the member skills of the list."
		}
		t.Skills = r.named(skills, "skill", func(name string) (hint string, err error) { return r.inFolder(r.Skill, r.skills.folder(), name) })
		t.usage(o)
	case builtin.Present():
		t.AskPerson = builtin.Choice("ask_person") != ""
	default:
		o.Known("name", "description", "inputSchema", "allow", "parallel", "onCrash", "gate")
	}
	o.Close()
	return t
}

func (r *reader) serverTools(t *Tool, server jsonobject.Value, o *jsonobject.Object) {
	t.Server = server.NonBlank()
	if allow := o.Get("allow"); allow.Present() {
		t.Allow = globs(allow)
	}
	t.usage(o)
	switch {
	case t.Server == "" || slices.Contains(r.Servers, t.Server):
	case r.NoServers != "":
		server.Fail("profile", "there is no MCP server %q: %s", t.Server, r.NoServers)
	case len(r.Servers) > 0:
		server.Fail("profile", "the manifest has no server %q", t.Server).Hint = meant(t.Server, r.Servers)
	}
}

// step reads a step as a tool.
func (r *reader) step(t *Tool, step jsonobject.Value, o *jsonobject.Object) {
	t.Step = strings.TrimSpace(step.NonBlank())
	name := o.Require("name")
	if t.Name = name.NonBlank(); t.Name != "" && (len(t.Name) > 64 || strings.ContainsFunc(t.Name, noToolName)) {
		name.Fail("pattern", "the name of a tool has at most 64 letters, digits, \"_\" and \"-\"")
	}
	t.Description = o.Require("description").NonBlank()
	schema := o.Get("inputSchema")
	if t.InputSchema = schema.Map(); t.InputSchema != nil {
		if _, err := jsonschema.Compile(t.InputSchema); err != nil {
			schema.Fail("format", "the schema does not compile: %v", err)
		} else if t.InputSchema["type"] != "object" {
			schema.Fail("profile", "the arguments of a tool are an object: its schema has \"type\": \"object\"")
		}
	}
	t.usage(o)
	switch {
	case t.Step == "" || slices.Contains(r.Steps, t.Step):
	case r.NoSteps != "":
		step.Fail("profile", "there is no step handler %q: %s", t.Step, r.NoSteps)
	case len(r.Steps) > 0:
		step.Fail("profile", "there is no step handler %q", t.Step).Hint = meant(t.Step, r.Steps)
	}
}

// named reads a list of at least one name. check says why there is nothing of a name.
func (r *reader) named(v jsonobject.Value, what string, check func(name string) (hint string, err error)) []string {
	elements := v.Elements()
	if elements != nil && len(elements) == 0 {
		v.Fail("minItems", "the list names no %s", what)
	}
	names := []string{}
	for _, e := range elements {
		name := e.NonBlank()
		if slices.Contains(names, name) {
			e.Fail("uniqueItems", "%s %q stands there twice", what, name)
		} else if name != "" {
			if hint, err := check(name); err != nil {
				e.Fail("profile", "%v", err).Hint = hint
			}
		}
		names = append(names, name)
	}
	return names
}

// inFolder asks whether something is in a folder of the list.
func (r *reader) inFolder(check func(folder, name string) error, folder, name string) (hint string, err error) {
	if check == nil || folder == "" {
		return "", nil
	}
	if err = check(folder, name); err == nil {
		return "", nil
	}
	if p, ok := problem.As(err); ok {
		hint = p.Hint
	}
	return hint, err
}

// usage reads how calls are made.
func (t *Tool) usage(o *jsonobject.Object) {
	t.parallel(o)
	t.OnCrash = o.Get("onCrash").Choice("repeat", "report", "ask")
	t.Gate = o.Get("gate").Choice(decisions...)
}

func (t *Tool) parallel(o *jsonobject.Object) {
	if v := o.Get("parallel"); v.Present() {
		parallel := v.Bool()
		t.Parallel = &parallel
	}
}

func noToolName(r rune) bool {
	return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-')
}

// circles reports agents that call themselves, directly or by others: once for each circle. found says whether there are any.
func (r *reader) circles() (found bool) {
	const above, seen = 1, 2
	state := map[string]int{}
	var walk func(name string)
	walk = func(name string) {
		state[name] = above
		for _, c := range r.calls[name] {
			switch state[c.name] {
			case above:
				c.at.Fail("profile", "agents call each other in a circle: %s calls %s, which leads back to %s", name, c.name, name)
				found = true
			case seen:
			default:
				walk(c.name)
			}
		}
		state[name] = seen
	}
	for _, name := range slices.Sorted(maps.Keys(r.calls)) {
		if state[name] == 0 {
			walk(name)
		}
	}
	return found
}

// crowds reports agents with more sub-agents than a configuration may have, or nested deeper: the outermost, which nobody calls. It is for
// agents that do not call each other in a circle.
func (r *reader) crowds() {
	sizes, inner := map[string]crowd{}, map[string]bool{}
	for _, calls := range r.calls {
		for _, c := range calls {
			inner[c.name] = true
		}
	}
	for name, v := range r.agents {
		switch c := r.crowd(name, sizes); {
		case inner[name]:
		case c.nested > agentloop.MaxNesting:
			v.Fail("profile", "sub-agents of %s are nested more than %d deep", name, agentloop.MaxNesting).Hint = "Let agents call fewer others."
		case c.agents > agentloop.MaxAgents:
			v.Fail("profile", "%s has more than %d sub-agents, each counted once for every agent that calls it", name, agentloop.MaxAgents).Hint = "Let agents call fewer others."
		}
	}
}

// crowd is how many agents there are in the configuration of one, itself included, and how deep.
type crowd struct{ agents, nested int }

func (r *reader) crowd(name string, sizes map[string]crowd) crowd {
	if c, ok := sizes[name]; ok {
		return c
	}
	all := crowd{agents: 1, nested: 1}
	for _, sub := range r.calls[name] {
		c := r.crowd(sub.name, sizes)
		all.agents, all.nested = min(all.agents+c.agents, agentloop.MaxAgents+1), max(all.nested, c.nested+1)
	}
	sizes[name] = all
	return all
}

// unpriced warns of budgets of money that do not count all: an agent below has a model without a price. For an agent's own models that is an
// error. It is for agents that do not call each other in a circle.
func (r *reader) unpriced(agents map[string]Agent) {
	for _, name := range slices.Sorted(maps.Keys(r.costs)) {
		seen := map[string]bool{}
		var walk func(above string)
		walk = func(above string) {
			for _, c := range r.calls[above] {
				if seen[c.name] {
					continue
				}
				seen[c.name] = true
				sub := agents[c.name]
				asked := slices.Clone(sub.Models)
				if !slices.Contains(asked, sub.SummaryModel) {
					asked = append(asked, sub.SummaryModel)
				}
				for _, model := range asked {
					if m, known := r.models[model]; known && m.Price == nil {
						f := r.costs[name].Fail("profile", "model %q of agent %q has no price: what it costs does not count", model, c.name)
						f.Severity, f.Hint = problem.SeverityWarning, "Give it priceUsdPerMTok, with zeros if it costs nothing."
					}
				}
				walk(c.name)
			}
		}
		walk(name)
	}
}
