package toolcall_test

import (
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/activities/toolcall"
	"github.com/workflows-engine/workflows-engine/internal/enginetest"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// TestDescribe: a call is described by its server, tool and arguments, with the time of the request, and the address without what
// authorizes. No server is started for that.
func TestDescribe(t *testing.T) {
	t.Parallel()
	x := enginetest.Closing(t, enginetest.Must(toolcall.New(toolcall.Config{Servers: map[string]toolcall.Server{
		"far":  {URL: "https://user:pass@mcp.example/v1/mcp?key=k#f", Headers: map[string]string{"Authorization": "Bearer t"}},
		"near": {Command: "node", Args: []string{"--token", "t"}, Env: map[string]string{"KEY": "literal:t"}},
		"off":  {Command: "node", Disabled: true},
	}})))
	templates := map[string]any{"argument_templates": true}
	config := func(server string, arguments any) map[string]any {
		c := map[string]any{"server": server, "tool": "read"}
		if arguments != nil {
			c["arguments"] = arguments
		}
		return c
	}
	for _, tt := range []struct {
		name string
		req  activities.Request
		want any
	}{
		{"by address", activities.Request{Config: config("far", map[string]any{"path": "a"})},
			map[string]any{"server": "far", "tool": "read", "endpoint": "https://mcp.example", "arguments": map[string]any{"path": "a"}}},
		{"a program", activities.Request{Config: config("near", nil)},
			map[string]any{"server": "near", "tool": "read", "arguments": map[string]any{}}},
		{"as written", activities.Request{Config: config("near", map[string]any{"path": "${ .p }"})},
			map[string]any{"server": "near", "tool": "read", "arguments": map[string]any{"path": "${ .p }"}}},
		{"templates", activities.Request{Config: config("near", map[string]any{"path": "${ .p }", "at": map[string]any{"jq": "now"}}), Metadata: templates},
			map[string]any{"server": "near", "tool": "read", "arguments": map[string]any{"path": "b", "at": 1893456000.0}}},
		{"a template that fails", activities.Request{Config: config("near", map[string]any{"path": "${ error }"}), Metadata: templates}, nil},
		{"no such server", activities.Request{Config: config("none", nil)}, nil},
		{"a disabled server", activities.Request{Config: config("off", nil)}, nil},
		{"no object", activities.Request{Config: config("near", "x")}, nil},
	} {
		tt.req.NodeType, tt.req.RequestedAt = "tool_call", time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
		tt.req.State = func() map[string]any { return map[string]any{"p": "b"} }
		got := x.Capabilities(tt.req.Node()).Describe(tt.req)
		if tt.want == nil && got != nil || tt.want != nil && !jsonvalue.Equal(got, tt.want) {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}
