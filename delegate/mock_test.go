package delegate_test

import (
	"context"
	"strings"
	"testing"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/delegate"
)

func TestMock(t *testing.T) {
	t.Parallel()
	ask := func(protocol string, input map[string]any) (map[string]any, string, error) {
		got, err := delegate.Mock{}.Execute(t.Context(), activities.Request{NodeType: "agent_delegate", Protocol: protocol, Input: input, CorrelationID: "e:1:delegate:n"})
		out, _ := got.Output.(map[string]any)
		return out, got.ExternalTaskID, err
	}
	for _, protocol := range []string{"mcp", "sdk"} {
		out, id, err := ask(protocol, nil)
		if err != nil || len(out) != 2 || out["delegate_status"] != "completed" || out["protocol"] != protocol || id != "a2a-task-e-1-delegate-n" {
			t.Errorf("%s: %v, %q, %v", protocol, out, id, err)
		}
	}
	long := strings.Repeat("x", 119) + "😀y" // the emoji's second half would be unit 121
	out, _, err := ask("a2a", map[string]any{"task": long})
	patch, _ := out["patch"].(string)
	if err != nil || len(out) != 2 || out["delegate_status"] != "completed" {
		t.Errorf("a2a: %v, %v", out, err)
	}
	if !strings.HasSuffix(patch, " "+strings.Repeat("x", 119)) {
		t.Errorf("the patch does not end with the first 120 units of the task, whole characters only: %q", patch)
	}
	for _, task := range []any{nil, "", 5.0} {
		if out, _, err := ask("a2a", map[string]any{"task": task}); err != nil || out["patch"] == "" {
			t.Errorf("task %v: %v, %v", task, out, err)
		}
	}
	_, _, err = ask("http", nil)
	wantFailure(t, err, "DELEGATE_PROTOCOL_UNSUPPORTED")
}

func TestRejecting(t *testing.T) {
	t.Parallel()
	_, err := activities.Rejecting{}.Execute(t.Context(), activities.Request{NodeType: "agent_delegate", NodeID: "n 1"})
	wantFailure(t, err, "CONFORMANCE_DELEGATE_PORT_INVOKED")
}

func TestComposite(t *testing.T) {
	t.Parallel()
	named := func(name string) activities.Executor {
		return activities.ExecutorFunc(func(context.Context, activities.Request) (activities.Result, error) {
			return activities.Result{Output: name}, nil
		})
	}
	full := activities.Composite{A2A: named("a2a"), MCP: named("mcp"), SDK: named("sdk"), Fallback: named("fallback")}
	for _, c := range []struct {
		name      string
		composite activities.Composite
		protocol  string
		want      string // "" for a refusal
		immediate bool
	}{
		{"a2a", full, "a2a", "a2a", false},
		{"mcp", full, "mcp", "mcp", false},
		{"sdk", full, "sdk", "sdk", false},
		{"unknown, though there is a fallback", full, "http", "", true},
		{"fallback", activities.Composite{A2A: named("a2a"), Fallback: named("fallback")}, "mcp", "fallback", false},
		{"fallback that answers at once", activities.Composite{Fallback: activities.Rejecting{}}, "mcp", "", true},
		{"nothing configured", activities.Composite{A2A: named("a2a")}, "sdk", "", true},
	} {
		req := activities.Request{NodeID: "n", NodeType: "agent_delegate", Protocol: c.protocol}
		if got := c.composite.Capabilities(req.Node()).Immediate; got != c.immediate {
			t.Errorf("%s: immediate %v, want %v", c.name, got, c.immediate)
		}
		got, err := c.composite.Execute(t.Context(), req)
		if c.want != "" {
			if err != nil || got.Output != c.want {
				t.Errorf("%s: %v, %v, want %s", c.name, got.Output, err, c.want)
			}
			continue
		}
		if _, rejects := c.composite.Fallback.(activities.Rejecting); rejects {
			wantFailure(t, err, "CONFORMANCE_DELEGATE_PORT_INVOKED")
			continue
		}
		wantFailure(t, err, "DELEGATE_PROTOCOL_UNSUPPORTED")
	}
}
