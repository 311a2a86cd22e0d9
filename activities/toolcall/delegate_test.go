package toolcall_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/activities/toolcall"
	"github.com/workflows-engine/workflows-engine/delegate"
	"github.com/workflows-engine/workflows-engine/internal/enginetest"
)

// Delegates over MCP use the same sessions (spec: activities, 11).
func TestDelegate(t *testing.T) {
	t.Parallel()
	h := open(t, "plain", func(c *toolcall.Config) { c.Timeout = 10 * time.Second })
	agents := delegate.NewMCP(map[string]delegate.Tool{
		"coder": {Server: " s ", Name: " echo "}, "broken": {Server: "s", Name: "failing"}, "lost": {Server: "x", Name: "echo"}, "blank": {Server: "s", Name: " "},
	}, func(ctx context.Context, tool delegate.Tool, req activities.Request) (any, error) {
		return h.Call(ctx, toolcall.Call{Server: tool.Server, Tool: tool.Name, Arguments: req.Input, IdempotencyKey: req.IdempotencyKey})
	})
	request := activities.Request{AgentID: " coder ", Protocol: "mcp", Input: object{"task": "T"}, CorrelationID: "r:delegate:n"}
	result, err := agents.Execute(t.Context(), request)
	if err != nil || string(enginetest.Must(json.Marshal(result.Output))) != `{"task":"T"}` || result.ExternalTaskID != "mcp-task-r-delegate-n" {
		t.Errorf("%+v, %v", result, err)
	}
	for _, c := range []struct{ agent, protocol, code, text string }{
		{"coder", "a2a", "DELEGATE_PROTOCOL_UNSUPPORTED", "a2a"},
		{"", "mcp", "DELEGATE_AGENT_NOT_FOUND", "delegateAgents"},
		{"nobody", "mcp", "DELEGATE_AGENT_NOT_FOUND", "nobody"},
		{"blank", "mcp", "DELEGATE_AGENT_NOT_FOUND", "blank"},
		{"lost", "mcp", "DELEGATE_AGENT_NOT_FOUND", `"x" is not configured`},
		{"broken", "mcp", "DELEGATE_PROTOCOL_ERROR", "MCP_TOOL_EXECUTION_ERROR: agent \"broken\": disk full"},
	} {
		request.AgentID, request.Protocol = c.agent, c.protocol
		_, err := agents.Execute(t.Context(), request)
		failure, ok := errors.AsType[*activities.Failure](err)
		if !ok || failure.Code != c.code {
			t.Errorf("%+v: %v", c, err)
			continue
		}
		wants(t, failure, c.text)
	}
}
