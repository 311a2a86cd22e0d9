package config_test

import (
	"slices"
	"testing"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/graph/problem"
)

func TestManifest(t *testing.T) {
	t.Parallel()
	c, err := load(t, environment("WORKFLOW_ENGINE_MCP_CONFIG=missing.json"), "--mcp-config", "tools.json")
	if err != nil {
		t.Fatal(err)
	}
	want := []string{`operator manifest tools.json, /mcpServers/s/x: field "x" has no effect here`}
	if !slices.Equal(c.Warnings, want) {
		t.Errorf("warnings %q", c.Warnings)
	}
	e := executors(t, "WORKFLOW_ENGINE_MCP_CONFIG=tools.json", "WORKFLOW_ENGINE_MCP_ALLOW_COMMANDS=uvx")
	defer e.Close()
	request := activities.Request{NodeID: "n", NodeType: "tool_call", Config: map[string]any{"server": "s", "tool": "t"}}
	_, err = e.Activities.Execute(t.Context(), request)
	requireCode(t, err, problem.MCPCommandNotAllowed)
	_, err = e.Delegates.Execute(t.Context(), activities.Request{NodeType: "agent_delegate", Protocol: "mcp", AgentID: "b"})
	requireCode(t, err, problem.DelegateAgentNotFound)
	_, err = e.Delegates.Execute(t.Context(), activities.Request{NodeType: "agent_delegate", Protocol: "mcp", AgentID: "a"})
	requireCode(t, err, problem.DelegateProtocolError)
}

func TestManifestRefused(t *testing.T) {
	t.Parallel()
	for _, file := range []string{"missing.json", "broken.json", "handlers.json"} {
		_, err := load(t, environment(), "--mcp-config", file)
		e, ok := problem.As(err)
		if !ok || e.Code != problem.UsageError {
			t.Errorf("%s: %v", file, err)
			continue
		}
		if found := len(e.Findings) > 0; found == (file == "missing.json") {
			t.Errorf("%s: findings %v", file, e.Findings)
		}
	}
}
