package delegate_test

import (
	"context"
	"testing"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/delegate"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// TestDescribe: executors say where a delegation goes, through Composite and Wrap too, without what authorizes.
func TestDescribe(t *testing.T) {
	t.Parallel()
	agent := func(address string) delegate.A2AConfig {
		return delegate.A2AConfig{BaseURL: address, NoAuth: true}
	}
	rpc, err := delegate.NewA2A(agent("https://user:pass@agents.example/a/"))
	if err != nil {
		t.Fatal(err)
	}
	tasks, err := delegate.NewA2AHTTP(agent("http://127.0.0.1:9/v1"))
	if err != nil {
		t.Fatal(err)
	}
	call := func(context.Context, delegate.Tool, activities.Request) (any, error) { return nil, nil }
	var executor activities.Executor = activities.Composite{
		A2A: &delegate.A2AAgents{Default: tasks, Agents: map[string]activities.Executor{"coder": rpc}},
		MCP: delegate.NewMCP(map[string]delegate.Tool{"helper": {Server: " desk ", Name: "help"}}, call),
	}
	executor = activities.Wrap(executor, func(next activities.ExecutorFunc) activities.ExecutorFunc { return next })
	for _, tt := range []struct {
		protocol, agent string
		want            map[string]any
	}{
		{"a2a", "coder", map[string]any{"endpoint": "https://agents.example"}},
		{"a2a", "other", map[string]any{"endpoint": "http://127.0.0.1:9"}},
		{"mcp", "helper", map[string]any{"server": "desk", "tool": "help"}},
		{"mcp", "nobody", nil},
		{"sdk", "coder", nil},
	} {
		var got map[string]any
		if describe := capabilities(executor, tt.protocol, tt.agent).Describe; describe != nil {
			got = describe(activities.Request{NodeType: "agent_delegate", Protocol: tt.protocol, AgentID: tt.agent})
		}
		if (got == nil) != (tt.want == nil) || got != nil && !jsonvalue.Equal(got, tt.want) {
			t.Errorf("%s %s: %v, want %v", tt.protocol, tt.agent, got, tt.want)
		}
	}
}
