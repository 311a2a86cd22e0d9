// Package mcptools makes the tools of MCP servers available to agents.
package mcptools

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/activities/toolcall"
	"github.com/workflows-engine/workflows-engine/delegate/agent"
	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// Toolset are tools of one MCP server.
type Toolset struct {
	calls   *toolcall.Executor
	server  string
	allow   []string
	options []agent.Option

	mu    sync.Mutex
	names map[string][]string // of the server's tools as listed last, by what the model calls them
}

// New returns the tools of a server that an executor of tool_call nodes knows, those that match one of the globs (path.Match), or all. What
// the server says of a tool decides how calls are made: one that only reads runs beside others and is repeated after a crash, one that is
// idempotent is repeated too. The options decide for all of them.
func New(calls *toolcall.Executor, server string, allow []string, options ...agent.Option) *Toolset {
	return &Toolset{calls: calls, server: server, allow: allow, options: options}
}

// Changes implements agent.Changing.
func (t *Toolset) Changes() int64 { return t.calls.Changes(t.server) }

// Tools implements agent.Toolset. Tools of the server that no glob matches are left out.
func (t *Toolset) Tools(ctx context.Context) ([]agent.Tool, error) {
	listed, err := t.list(ctx)
	if err != nil {
		return nil, err
	}
	var tools []agent.Tool
	names := map[string][]string{}
	for _, l := range listed {
		if !t.allowed(l.Name) {
			continue
		}
		tool := agent.Tool{
			Name: agent.Name(t.server, l.Name), Description: l.Description, Parameters: l.InputSchema, Source: "mcp:" + t.server,
			ReadOnly: l.ReadOnly, Parallel: l.ReadOnly, OnCrash: agent.Report,
		}
		if l.ReadOnly || l.Idempotent {
			tool.OnCrash = agent.Repeat
		}
		for _, o := range t.options {
			o(&tool)
		}
		tools = append(tools, tool)
		if !slices.Contains(names[tool.Name], l.Name) {
			names[tool.Name] = append(names[tool.Name], l.Name)
		}
	}
	t.mu.Lock()
	t.names = names
	t.mu.Unlock()
	return tools, nil
}

// Warnings implements agent.Warner: it names the globs that match no tool of the server.
func (t *Toolset) Warnings(ctx context.Context) ([]string, error) {
	listed, err := t.list(ctx)
	if err != nil {
		return nil, err
	}
	var warnings []string
	for _, glob := range t.allow {
		if !slices.ContainsFunc(listed, func(l toolcall.Tool) bool { ok, _ := path.Match(glob, l.Name); return ok }) {
			warnings = append(warnings, fmt.Sprintf("server %q: the pattern %q matches none of its %d tools%s", t.server, glob, len(listed), some(listed)))
		}
	}
	return warnings, nil
}

// some names the first tools of a server.
func some(listed []toolcall.Tool) string {
	const most = 8
	var names []string
	for _, l := range listed[:min(len(listed), most)] {
		names = append(names, problem.Excerpt(l.Name, 64))
	}
	switch {
	case len(names) == 0:
		return ""
	case len(listed) > most:
		names = append(names, "…")
	}
	return ": " + strings.Join(names, ", ")
}

func (t *Toolset) list(ctx context.Context) ([]toolcall.Tool, error) {
	if t.calls == nil {
		return nil, activities.Fail(problem.MCPServerNotConfigured, "MCP server %q is not configured: there is no manifest", t.server)
	}
	return t.calls.Tools(ctx, t.server)
}

func (t *Toolset) allowed(name string) bool {
	if len(t.allow) == 0 {
		return true
	}
	for _, glob := range t.allow {
		if ok, _ := path.Match(glob, name); ok {
			return true
		}
	}
	return false
}

// Call implements agent.Toolset. After a restart the agent's tools are those that were recorded, so the list is read again for the name of
// the first one that is called.
func (t *Toolset) Call(ctx context.Context, c agent.Call) (any, error) {
	name, err := t.name(ctx, c.Name)
	if err != nil {
		return nil, err
	}
	return t.calls.Call(ctx, toolcall.Call{Server: t.server, Tool: name, Arguments: c.Arguments, IdempotencyKey: c.Key, Heartbeat: c.Heartbeat})
}

func (t *Toolset) name(ctx context.Context, called string) (string, error) {
	for range 2 {
		t.mu.Lock()
		names := t.names[called]
		t.mu.Unlock()
		switch len(names) {
		case 0:
		case 1:
			return names[0], nil
		default: // a rule or a person has decided about one of them
			return "", activities.Fail(problem.AgentConfigInvalid, "server %q has several tools that are called %q here: %s; allow one of them", t.server, called, problem.AndList(names))
		}
		if _, err := t.Tools(ctx); err != nil {
			return "", err
		}
	}
	return called, nil // the server says that it has no such tool
}

var _ agent.Warner = (*Toolset)(nil)
