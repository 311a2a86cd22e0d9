package agentfile

import (
	"maps"
	"slices"
	"strings"

	"github.com/workflows-engine/workflows-engine/internal/jsonobject"
)

// tools reads what an agent may call. Tools of servers are known only when they are listed, so two of one name are found here where the list
// itself says so.
func (r *reader) tools(agent string, v jsonobject.Value) []Tool {
	var tools []Tool
	seen := map[string]bool{}
	for _, e := range v.Elements() {
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
	later(o, "step", "api", "knowledge", "skills")
	server, sub, builtin := o.Get("server"), o.Get("agent"), o.Get("builtin")
	kinds := 0
	for _, v := range []jsonobject.Value{server, sub, builtin, o.Get("step"), o.Get("api"), o.Get("knowledge"), o.Get("skills")} {
		if v.Present() {
			kinds++
		}
	}
	if kinds != 1 {
		o.Fail("oneOf", "expected exactly one of server, agent and builtin")
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
	t.parallel(o)
	t.OnCrash = o.Get("onCrash").Choice("repeat", "report", "ask")
	t.Gate = o.Get("gate").Choice(decisions...)
	switch {
	case t.Server == "" || slices.Contains(r.Servers, t.Server):
	case r.NoServers != "":
		server.Fail("profile", "there is no MCP server %q: %s", t.Server, r.NoServers)
	case len(r.Servers) > 0:
		server.Fail("profile", "the manifest has no server %q", t.Server).Hint = meant(t.Server, r.Servers)
	}
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

// circles reports agents that call themselves, directly or by others.
func (r *reader) circles() {
	for name, calls := range r.calls {
		for _, c := range calls {
			if r.reaches(c.name, name, map[string]bool{}) {
				c.at.Fail("profile", "agents call each other in a circle: %s calls %s, which leads back to %s", name, c.name, name)
			}
		}
	}
}

func (r *reader) reaches(from, to string, seen map[string]bool) bool {
	if from == to {
		return true
	}
	if seen[from] {
		return false
	}
	seen[from] = true
	return slices.ContainsFunc(r.calls[from], func(c called) bool { return r.reaches(c.name, to, seen) })
}
