package mcpserver_test

import (
	"context"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/graph"
)

// TestTheTraceParentOfACallReachesExecutors: a tool call's _meta.traceparent is that of what the call begins and, if it starts a run,
// of the whole run; anything else there is left out.
func TestTheTraceParentOfACallReachesExecutors(t *testing.T) {
	t.Parallel()
	const ofStart, ofResume = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01"
	seen := make(chan string, 10)
	h := newHost(t, graph.Options{Activities: activities.ExecutorFunc(func(ctx context.Context, req activities.Request) (activities.Result, error) {
		seen <- req.NodeID + " " + graph.TraceParent(ctx)
		return activities.Result{}, nil
	})})
	call := func(name string, meta mcp.Meta, args map[string]any) {
		t.Helper()
		res, err := h.session.CallTool(t.Context(), &mcp.CallToolParams{Name: name, Meta: meta, Arguments: args})
		if err != nil || res.IsError {
			t.Fatalf("%s: %v %+v", name, err, res)
		}
	}
	step := func(id string) map[string]any {
		return map[string]any{"id": id, "type": "step", "config": map[string]any{"handler": "h"}}
	}
	edges, last := []any{}, "__start__"
	for _, id := range []string{"s", "a", "ask", "b", "c", "z"} {
		edges, last = append(edges, map[string]any{"source": last, "target": id}), id
	}
	definition := map[string]any{
		"document": map[string]any{"schema": "s", "name": "w", "version": "1"}, "state_schema": map[string]any{"type": "object"},
		"nodes": []any{
			map[string]any{"id": "s", "type": "start"}, step("a"),
			map[string]any{"id": "ask", "type": "interrupt", "config": map[string]any{"prompt": "?", "resume_schema": map[string]any{"type": "object"}}},
			step("b"), step("c"), map[string]any{"id": "z", "type": "end"},
		},
		"edges": edges,
	}
	expect := func(wants ...string) {
		t.Helper()
		for _, want := range wants {
			if got := <-seen; got != want {
				t.Errorf("seen %q, want %q", got, want)
			}
		}
	}
	call("workflow_start", mcp.Meta{"traceparent": ofStart}, map[string]any{"definition": definition, "execution_id": "r"})
	expect("a " + ofStart)
	call("workflow_resume", mcp.Meta{"traceparent": ofResume}, map[string]any{"execution_id": "r", "resume_payload": map[string]any{}})
	expect("b "+ofResume, "c "+ofStart)
	for i, meta := range []mcp.Meta{{"traceparent": "nonsense"}, {"traceparent": 7.0}, nil} {
		call("workflow_start", meta, map[string]any{"definition": definition, "execution_id": string(rune('x' + i))})
		expect("a ")
	}
}
