package delegate_test

import (
	"context"
	"slices"
	"testing"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/delegate"
)

func performs(x activities.Executor, protocol, agent string) bool {
	return capabilities(x, protocol, agent).Missing == activities.MissingNothing
}

func capabilities(x activities.Executor, protocol, agent string) activities.Capabilities {
	return activities.CapabilitiesOf(x, activities.Node{Type: "agent_delegate", Protocol: protocol, AgentID: agent})
}

// A delegation is performed where its agent is.
func TestPerformsAgent(t *testing.T) {
	t.Parallel()
	var sdk delegate.SDK
	if err := sdk.Register("go", func(context.Context, activities.Request) (any, error) { return nil, nil }); err != nil {
		t.Fatal(err)
	}
	remote, err := delegate.NewA2A(delegate.A2AConfig{BaseURL: "http://localhost", NoAuth: true})
	if err != nil {
		t.Fatal(err)
	}
	c := activities.Composite{
		SDK: &sdk, A2A: &delegate.A2AAgents{Agents: map[string]activities.Executor{"far": remote}},
		MCP: delegate.NewMCP(map[string]delegate.Tool{"tool": {Server: "s", Name: "t"}, "half": {Server: "s"}}, nil),
	}
	for _, q := range []struct {
		protocol, agent string
		want            bool
	}{
		{"sdk", " go ", true}, {"sdk", "far", false}, {"a2a", "far", true}, {"a2a", "go", false},
		{"mcp", "tool", true}, {"mcp", "half", false}, {"mcp", "go", false}, {"other", "go", false},
	} {
		if got := performs(c, q.protocol, q.agent); got != q.want {
			t.Errorf("%s %q: %v", q.protocol, q.agent, got)
		}
	}
	for protocol, want := range map[string][]string{"sdk": {"go"}, "a2a": {"far"}, "mcp": {"tool"}} {
		if got := capabilities(c, protocol, "").Targets(); !slices.Equal(got, want) {
			t.Errorf("%s: targets %q", protocol, got)
		}
	}
	if c.A2A = (&delegate.A2AAgents{Default: remote}); !performs(c, "a2a", "any") || !performs(activities.Composite{A2A: remote}, "a2a", "any") {
		t.Error("one endpoint for all serves all")
	}
	if capabilities(c, "a2a", "").Targets != nil {
		t.Error("one endpoint for all lists agents")
	}
}
