package manifest

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
	"github.com/workflows-engine/workflows-engine/internal/suggest"
)

// checker walks a parsed text and gathers what is wrong with it.
type checker struct{ findings problem.Findings }

// place is a value with the pointer that leads to it.
type place struct {
	node    *jsonvalue.Node
	pointer string
}

func (p place) at(member jsonvalue.Member) place {
	return place{member.Value, p.pointer + "/" + jsonvalue.EscapePointer(member.Name)}
}

// The members that mean something, and the values of "type".
var (
	rootMembers   = []string{"mcpServers", "delegateAgents", "$schema"}
	serverMembers = []string{"command", "args", "env", "cwd", "type", "url", "headers", "disabled"}
	agentMembers  = []string{"server", "tool"}
	commandTypes  = []string{"stdio"}
	addressTypes  = []string{"http", "streamable-http", "streamableHttp", "streamable_http"}
)

func (c *checker) manifest(root *jsonvalue.Node) *Manifest {
	m := &Manifest{}
	p := place{root, ""}
	if !c.is(p, jsonvalue.Object, "the manifest") {
		return m
	}
	for _, member := range root.Members {
		if !slices.Contains(rootMembers, member.Name) {
			c.ignored(p, member, rootMembers)
		}
	}
	if servers := root.Get("mcpServers"); servers != nil {
		m.Servers = c.servers(place{servers, "/mcpServers"})
	} else {
		c.missing(p, "mcpServers", `Write {"mcpServers": {"name": {"command": "npx", "args": ["…"]}}}.`)
	}
	if agents := root.Get("delegateAgents"); agents != nil {
		m.Agents = c.agents(place{agents, "/delegateAgents"}, root.Get("mcpServers"))
	}
	return m
}

func (c *checker) servers(p place) map[string]Server {
	if !c.is(p, jsonvalue.Object, "mcpServers") {
		return nil
	}
	if len(p.node.Members) == 0 {
		c.add(p, problem.ManifestInvalid, "minProperties", "mcpServers names no server").Hint = "Name at least one server."
	}
	servers := map[string]Server{}
	for _, member := range p.node.Members {
		at := p.at(member)
		if strings.TrimSpace(member.Name) == "" {
			c.warn(at, problem.ConfigBlank, "a server has a blank name, which no tool_call can name readably")
		}
		servers[member.Name] = c.server(at)
	}
	return servers
}

func (c *checker) server(p place) (s Server) {
	if !c.is(p, jsonvalue.Object, "a server") {
		return s
	}
	for _, member := range p.node.Members {
		at := p.at(member)
		switch member.Name {
		case "command":
			s.Command = c.text(at, "command")
			if s.Command != "" && strings.TrimSpace(s.Command) == "" {
				c.warn(at, problem.ConfigBlank, "command is blank, so that every call of this server fails")
			}
		case "args":
			s.Args = c.texts(at, "args")
		case "env":
			s.Env = c.textMap(at, "env")
		case "cwd":
			s.Directory = c.text(at, "cwd")
		case "url":
			s.URL = c.address(at)
		case "headers":
			s.Headers = c.textMap(at, "headers")
		case "disabled":
			if c.is(at, jsonvalue.Bool, "disabled") {
				s.Disabled = at.node.Bool
			}
		case "type":
			c.kind(at, p.node)
		default:
			c.ignored(p, member, serverMembers)
		}
	}
	switch command, address := p.node.Get("command"), p.node.Get("url"); {
	case command == nil && address == nil:
		c.missing(p, "command", "A server needs a command that starts it, or a url.")
	case command != nil && address != nil:
		c.add(p, problem.ManifestInvalid, "oneOf", "the server has a command and a url").Hint = "Leave one of them out."
	}
	return s
}

// kind checks that "type" names the way of reaching the server that its other members describe.
func (c *checker) kind(p place, server *jsonvalue.Node) {
	if !c.is(p, jsonvalue.String, "type") {
		return
	}
	known, member := commandTypes, "command"
	if server.Get("url") != nil {
		known, member = addressTypes, "url"
	}
	if !slices.Contains(known, p.node.Str) {
		c.add(p, problem.ManifestInvalid, "enum", "a server of type %q cannot be reached by its %s", p.node.Str, member).Hint =
			`Servers with a command are of type "stdio", servers with a url of type "http" (streamable HTTP). Leave type out: the other members say it.`
	}
}

func (c *checker) address(p place) string {
	text := c.text(p, "url")
	if text == "" {
		return ""
	}
	u, err := url.Parse(strings.TrimSpace(text))
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		c.add(p, problem.ManifestInvalid, "format", "url is not an absolute http or https address")
		return ""
	}
	return u.String()
}

func (c *checker) agents(p place, servers *jsonvalue.Node) map[string]Agent {
	if !c.is(p, jsonvalue.Object, "delegateAgents") {
		return nil
	}
	agents := map[string]Agent{}
	for _, member := range p.node.Members {
		agents[strings.TrimSpace(member.Name)] = c.agent(p.at(member), servers)
	}
	return agents
}

func (c *checker) agent(p place, servers *jsonvalue.Node) (a Agent) {
	if !c.is(p, jsonvalue.Object, "a delegate agent") {
		return a
	}
	for _, member := range p.node.Members {
		at := p.at(member)
		switch member.Name {
		case "server":
			if a.Server = strings.TrimSpace(c.text(at, "server")); a.Server != "" {
				c.knownServer(at, a.Server, servers)
			}
		case "tool":
			text := c.text(at, "tool")
			if a.Tool = strings.TrimSpace(text); a.Tool == "" && text != "" {
				c.warn(at, problem.ConfigBlank, "tool is blank, so that this agent is never found")
			}
		default:
			f := c.add(at, problem.ManifestInvalid, "additionalProperties", "a delegate agent has no member %q", member.Name)
			f.At.Line, f.At.Column = member.Line, member.Column
			f.Hint = "The members are " + strings.Join(agentMembers, " and ") + "."
			f.Params = map[string]any{"additionalProperty": member.Name}
		}
	}
	for _, name := range agentMembers {
		if p.node.Get(name) == nil {
			c.missing(p, name, "An agent is a tool of a server.")
		}
	}
	return a
}

// knownServer checks that a binding names a member of mcpServers.
func (c *checker) knownServer(p place, name string, servers *jsonvalue.Node) {
	if servers == nil || servers.Kind != jsonvalue.Object || servers.Get(name) != nil {
		return
	}
	names := make([]string, len(servers.Members))
	for i, member := range servers.Members {
		names[i] = member.Name
	}
	f := c.add(p, problem.ManifestServerUnknown, "profile", "mcpServers has no server %q", name)
	f.Hint = "Name one of mcpServers."
	if near := suggest.Nearest(name, names); near != "" {
		f.Hint = fmt.Sprintf("Did you mean %q?", near)
	}
}
