package manifest

import (
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/jsonobject"
	"github.com/workflows-engine/workflows-engine/internal/suggest"
)

// The values of "type" by the way in which a server is reached.
var (
	commandTypes = []string{"stdio"}
	addressTypes = []string{"http", "streamable-http", "streamableHttp", "streamable_http"}
)

func readManifest(root *jsonobject.Object) *Manifest {
	m := &Manifest{}
	root.Known("$schema")
	servers := root.Get("mcpServers")
	if servers.Present() {
		m.Servers = readServers(servers)
	} else {
		root.Missing("mcpServers").Hint = `Write {"mcpServers": {"name": {"command": "npx", "args": ["…"]}}}.`
	}
	if agents := root.Get("delegateAgents"); agents.Map() != nil {
		m.Agents = map[string]Agent{}
		for id, v := range agents.Members() {
			m.Agents[strings.TrimSpace(id)] = readAgent(v.Object(), m.Servers)
		}
	}
	warnOfUnknown(root)
	return m
}

func readServers(v jsonobject.Value) map[string]Server {
	if v.Map() == nil {
		return nil
	}
	if len(v.Map()) == 0 {
		v.Fail("minProperties", "mcpServers names no server").Hint = "Name at least one server."
	}
	servers := map[string]Server{}
	for name, server := range v.Members() {
		if strings.TrimSpace(name) == "" {
			warnOfBlank(server, "a server has a blank name, which no tool_call can name readably")
		}
		servers[name] = readServer(server.Object())
	}
	return servers
}

func readServer(o *jsonobject.Object) (s Server) {
	if o == nil {
		return s
	}
	command, address := o.Get("command"), o.Get("url")
	s.Command = plainText(command)
	if s.Command != "" && strings.TrimSpace(s.Command) == "" {
		warnOfBlank(command, "command is blank, so that every call of this server fails")
	}
	s.Args, s.Env, s.Directory = o.Get("args").Texts(), o.Get("env").TextMap(), plainText(o.Get("cwd"))
	s.URL, s.Headers, s.Disabled = readAddress(address), o.Get("headers").TextMap(), o.Get("disabled").Bool()
	checkType(o.Get("type"), address.Present())
	warnOfUnknown(o)
	switch {
	case !command.Present() && !address.Present():
		o.Missing("command").Hint = "A server needs a command that starts it, or a url."
	case command.Present() && address.Present():
		o.Fail("oneOf", "the server has a command and a url").Hint = "Leave one of them out."
	}
	return s
}

// checkType checks that "type" names the way of reaching the server that its other members describe.
func checkType(v jsonobject.Value, byAddress bool) {
	known, member := commandTypes, "command"
	if byAddress {
		known, member = addressTypes, "url"
	}
	if text := v.Text(); text != v.Plain || slices.Contains(known, text) {
		return
	}
	v.Fail("enum", "a server of type %q cannot be reached by its %s", v.Text(), member).Hint =
		`Servers with a command are of type "stdio", servers with a url of type "http" (streamable HTTP). Leave type out: the other members say it.`
}

func readAddress(v jsonobject.Value) string {
	text := plainText(v)
	if text == "" {
		return ""
	}
	u, err := url.Parse(strings.TrimSpace(text))
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		v.Fail("format", "url is not an absolute http or https address")
		return ""
	}
	return u.String()
}

func readAgent(o *jsonobject.Object, servers map[string]Server) (a Agent) {
	if o == nil {
		return a
	}
	server, tool := o.Require("server"), o.Require("tool")
	if a.Server = strings.TrimSpace(plainText(server)); a.Server != "" && servers != nil {
		checkServer(server, a.Server, servers)
	}
	text := plainText(tool)
	if a.Tool = strings.TrimSpace(text); a.Tool == "" && text != "" {
		warnOfBlank(tool, "tool is blank, so that this agent is never found")
	}
	o.Close()
	return a
}

// checkServer checks that a binding names a member of mcpServers.
func checkServer(v jsonobject.Value, name string, servers map[string]Server) {
	if _, known := servers[name]; known {
		return
	}
	f := v.Fail("profile", "mcpServers has no server %q", name)
	f.Code, f.Hint = problem.ManifestServerUnknown, suggest.DidYouMean(name, slices.Sorted(maps.Keys(servers)))
	if f.Hint == "" {
		f.Hint = "Name one of mcpServers."
	}
}

// plainText reads a string of at least one character, without U+0000.
func plainText(v jsonobject.Value) string {
	text := v.NonEmpty()
	if strings.ContainsRune(text, 0) {
		v.Fail("pattern", "must not contain the character U+0000")
	}
	return text
}

// warnOfBlank reports what runs, but probably not as meant.
func warnOfBlank(v jsonobject.Value, message string) {
	f := v.Fail("profile", "%s", message)
	f.Code, f.Severity = problem.ConfigBlank, problem.SeverityWarning
}

// warnOfUnknown warns of members that nothing reads: hosts have members of their own.
func warnOfUnknown(o *jsonobject.Object) {
	unknown := o.Close()
	for i := range unknown {
		f := &unknown[i]
		name := f.Params["additionalProperty"].(string)
		f.Code, f.Severity, f.Message = problem.FieldIgnored, problem.SeverityWarning, problem.Format("member %q has no effect here", name)
		switch {
		case name == "envFile":
			f.Hint = `Put what the server needs under "env"; "env:NAME" and "file:path" refer to secrets.`
		case !strings.HasPrefix(f.Hint, "did you mean"):
			f.Hint = ""
		}
	}
}
