// Package manifest reads two lists of the operator: MCP servers for tool_call nodes, and programs for step nodes.
//
//	m, findings := manifest.Parse(text)
//	if findings.HasErrors() { … } // m is nil then
//
// Both are checked by their published schemas (package schemas). A field of an MCP host that has no effect here is a warning.
package manifest

import (
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/workflows-engine/workflows-engine/activities/toolcall"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/document"
	"github.com/workflows-engine/workflows-engine/internal/suggest"
	"github.com/workflows-engine/workflows-engine/schemas"
)

// MaxBytes bounds the text of a manifest.
const MaxBytes = 1 << 20

// Manifest is a valid manifest.
type Manifest struct {
	// Servers holds the MCP servers by name; there is at least one.
	Servers map[string]Server
	// Agents holds the delegate agents by id; nil if the manifest has no "delegateAgents".
	Agents map[string]Agent
}

// Server describes how one MCP server is reached. Values of Env and Headers may be references to secrets; they are as written here.
type Server = toolcall.Server

// Agent is the tool that performs the work of a delegate agent.
type Agent struct {
	Server string `json:"server"`
	Tool   string `json:"tool"`
}

var manifests = document.Kind{
	Schema: schemas.MCPManifest, Code: problem.ManifestInvalid, Syntax: problem.ManifestSyntax, MaxBytes: MaxBytes,
}

// server is a server as written in the file.
type server struct {
	Type      string            `json:"type"`
	Command   string            `json:"command"`
	Args      []string          `json:"args"`
	Env       map[string]string `json:"env"`
	Directory string            `json:"cwd"`
	URL       string            `json:"url"`
	Headers   map[string]string `json:"headers"`
	Disabled  bool              `json:"disabled"`
}

// Parse reads and checks a manifest. The manifest is nil if one of the findings is an error; all problems are listed, each with its line, in
// the order of the text. Keywords and pointers are those of the schema, "parse" for a text that is not JSON.
func Parse(text []byte) (*Manifest, problem.Findings) {
	var written struct {
		Servers map[string]server `json:"mcpServers"`
		Agents  map[string]Agent  `json:"delegateAgents"`
	}
	d := manifests.Read(text, &written)
	if !d.Decoded() {
		return nil, d.Findings()
	}
	m := &Manifest{Servers: map[string]Server{}}
	warnOfIgnored(d, "", "")
	for name, s := range written.Servers {
		at := document.At("mcpServers", name)
		if strings.TrimSpace(name) == "" {
			warnOfBlank(d, at, "a server has a blank name")
		}
		s.check(d, at)
		m.Servers[name] = Server{Command: s.Command, Args: s.Args, Env: s.Env, Directory: s.Directory, URL: s.URL, Headers: s.Headers, Disabled: s.Disabled}
	}
	for id, a := range written.Agents {
		at := document.At("delegateAgents", id)
		a.Server, a.Tool = strings.TrimSpace(a.Server), strings.TrimSpace(a.Tool)
		if _, known := m.Servers[a.Server]; !known && a.Server != "" && d.Intact(document.At("mcpServers", a.Server)) {
			f := d.Fail(at+"/server", "profile", "mcpServers has no server %q", a.Server)
			f.Code, f.Hint = problem.ManifestServerUnknown, suggest.DidYouMean(a.Server, slices.Sorted(maps.Keys(m.Servers)))
			if f.Hint == "" {
				f.Hint = "Name one of mcpServers."
			}
		}
		if a.Tool == "" {
			warnOfBlank(d, at+"/tool", "tool is blank, so this agent is never found")
		}
		if m.Agents == nil {
			m.Agents = map[string]Agent{}
		}
		m.Agents[strings.TrimSpace(id)] = a
	}
	if written.Agents != nil && m.Agents == nil {
		m.Agents = map[string]Agent{}
	}
	if !d.Valid() {
		return nil, d.Findings()
	}
	return m, d.Findings()
}

// The values of "type" by transport.
var (
	commandTypes = []string{"stdio"}
	addressTypes = []string{"http", "streamable-http", "streamableHttp", "streamable_http"}
)

func (s *server) check(d *document.Document, at string) {
	if s.Command != "" && strings.TrimSpace(s.Command) == "" {
		warnOfBlank(d, at+"/command", "command is blank, so every call of this server fails")
	}
	known, field := commandTypes, "command"
	if s.URL != "" {
		known, field = addressTypes, "url"
		if u, err := url.Parse(strings.TrimSpace(s.URL)); err != nil {
			d.Fail(at+"/url", "format", "must be an absolute http or https address")
		} else {
			s.URL = u.String()
		}
	}
	if d.Has(at+"/type") && d.Intact(at+"/url") && !slices.Contains(known, s.Type) {
		d.Fail(at+"/type", "enum", "a server of type %q cannot be reached by its %s", s.Type, field).Hint =
			`Servers with a command are of type "stdio", servers with a url of type "http" (streamable HTTP). Leave type out: the other fields decide.`
	}
	warnOfIgnored(d, at, "/properties/mcpServers/additionalProperties")
}

// warnOfBlank reports a blank value, which is valid and probably a mistake.
func warnOfBlank(d *document.Document, at, message string) {
	f := d.Fail(at, "profile", "%s", message)
	f.Code, f.Severity = problem.ConfigBlank, problem.SeverityWarning
}

// warnOfIgnored warns of fields without effect: hosts have their own fields.
func warnOfIgnored(d *document.Document, at, schema string) {
	names, declared := d.Undeclared(at, schema)
	for _, name := range names {
		f := d.FailName(at+document.At(name), "additionalProperties", "field %q has no effect here", name)
		f.Code, f.Severity, f.Params = problem.FieldIgnored, problem.SeverityWarning, map[string]any{"additionalProperty": name}
		if f.Hint = suggest.DidYouMean(name, declared); name == "envFile" {
			f.Hint = `Put the variables of the server under "env"; "env:NAME" and "file:path" refer to secrets.`
		}
	}
}
