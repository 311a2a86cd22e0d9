package config

import (
	"context"
	"log/slog"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/activities/toolcall"
	"github.com/workflows-engine/workflows-engine/delegate"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/config/envname"
	"github.com/workflows-engine/workflows-engine/internal/manifest"
)

// loadManifest reads the operator's manifest. An invalid one ends the start with all its findings.
func loadManifest(c *Config, path setting, env Environment) error {
	if path.value == "" {
		return nil
	}
	text, err := env.read(env.absolute(path.value))
	if err != nil {
		return problem.New(problem.UsageError, "%s: cannot read the operator manifest", path.from).WithCause(err)
	}
	m, findings := manifest.Parse(text)
	if m == nil {
		e := problem.New(problem.UsageError, "%s: invalid operator manifest %s", path.from, path.value).
			WithHint("See workflows-engine tool validate %s.", path.value)
		e.Findings = findings
		return e
	}
	for _, warning := range findings {
		c.Warnings = append(c.Warnings, "operator manifest "+path.value+", "+warning.At.Pointer+": "+warning.Message)
	}
	c.Manifest = m
	return nil
}

// Tools makes an executor for the servers of a manifest. Log receives the output of the servers; nil discards it. The caller closes the
// executor.
func (c *Config) Tools(m *manifest.Manifest, log *slog.Logger) (*toolcall.Executor, error) {
	servers := make(map[string]toolcall.Server, len(m.Servers))
	for name, s := range m.Servers {
		if s.Directory != "" {
			s.Directory = c.env.absolute(s.Directory)
		}
		c.env.secrets.addNamed(s.Env)
		if c.env.secrets.addNamed(s.Headers); len(s.Headers) > 0 {
			c.env.notePlain("MCP server "+name, s.URL)
		}
		servers[name] = s
	}
	return toolcall.New(toolcall.Config{
		Servers: servers, AllowCommands: c.env.lookup(envname.MCPAllowCommands), AllowSetting: envname.MCPAllowCommands, Environ: c.env.Variables,
		Secret: c.env.secret, Logger: log,
	})
}

// toolDelegates passes delegations of protocol mcp to the tools that the manifest binds them to.
func toolDelegates(tools *toolcall.Executor, agents map[string]manifest.Agent) delegate.MCP {
	bound := make(map[string]delegate.Tool, len(agents))
	for id, agent := range agents {
		bound[id] = delegate.Tool{Server: agent.Server, Name: agent.Tool}
	}
	return delegate.NewMCP(bound, func(ctx context.Context, tool delegate.Tool, req activities.Request) (any, error) {
		return tools.Call(ctx, toolcall.Call{
			Server: tool.Server, Tool: tool.Name, Arguments: req.Input,
			IdempotencyKey: req.IdempotencyKey, Heartbeat: req.Heartbeat,
		})
	})
}
