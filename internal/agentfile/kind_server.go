package agentfile

import (
	"github.com/workflows-engine/workflows-engine/delegate/agent"
	"github.com/workflows-engine/workflows-engine/delegate/agent/mcptools"
	"github.com/workflows-engine/workflows-engine/graph/problem"
)

var serverKind = kind{field: "server", tool: func() Tool { return &serverTool{} }}

// serverTool are tools of an MCP server.
type serverTool struct {
	Server string `json:"server"`
	// Allow are patterns of the names of tools, nil for all tools.
	Allow []string `json:"allow,omitempty"`
	Options
}

func (t *serverTool) String() string {
	if t.Allow == nil {
		return t.Server
	}
	return t.Server + " (" + problem.AndList(t.Allow) + ")"
}

func (t *serverTool) names() []string {
	if t.Allow == nil {
		return []string{t.Server + "__*"}
	}
	var names []string
	for _, glob := range t.Allow {
		names = append(names, t.Server+"__"+glob)
	}
	return names
}

func (t *serverTool) check(p *parser, _, at string) {
	p.globs(at+"/allow", t.Allow)
	p.configured(at+"/server", "MCP server", t.Server, p.Servers, p.NoServers)
}

func (t *serverTool) add(to *agent.Agent, r Runtime, _ any) error {
	to.Tools = append(to.Tools, mcptools.New(r.Servers, t.Server, t.Allow, t.list()...))
	return nil
}
