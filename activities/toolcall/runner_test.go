package toolcall_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historymem"
	"github.com/workflows-engine/workflows-engine/internal/enginetest"
)

// A run through the engine: a tool that works, one whose server dies once and is tried again, one that times out.
func TestRun(t *testing.T) {
	t.Parallel()
	doc := enginetest.Define(t, `
document: {schema: "https://agent-workflow.dev/schemas/workflow-definition.json", name: tools, version: 1.0.0}
state_schema: {type: object, properties: {x: {type: number}, y: {type: number}}}
nodes:
  - {id: start, type: start}
  - {id: add, type: tool_call, metadata: {argument_templates: true}, config: {server: s, tool: echo, arguments: {y: "${ .x + 1 }"}}}
  - {id: die, type: tool_call, retry: {max_attempts: 2, initial_interval: 1ms}, config: {server: s, tool: die}}
  - {id: end, type: end}
edges:
  - {source: __start__, target: start}
  - {source: start, target: add}
  - {source: add, target: die}
  - {source: die, target: end}
`)
	h := open(t, "plain", nil)
	store := historymem.New()
	runner := enginetest.Closing(t, enginetest.Must(graph.New(store, graph.Options{Activities: activities.Composite{ToolCall: h}, WaitLimit: time.Minute})))
	run, err := runner.Start(t.Context(), graph.StartRequest{ExecutionID: "r", Definition: doc, Input: object{"x": 4.0}})
	if err != nil {
		t.Fatal(err)
	}
	if run.Status != machine.Failed {
		t.Errorf("status %s", run.Status)
	}
	var got []any
	for _, r := range enginetest.Must(store.Read(t.Context(), "r", 1, 0)) {
		switch r.Name {
		case history.ActivityCompleted:
			got = append(got, r.Payload.NodeID, r.Payload.Result.Value)
		case history.ActivityFailed:
			got = append(got, r.Payload.NodeID, r.Payload.Code)
		}
	}
	if text, want := string(enginetest.Must(json.Marshal(got))), `["add",{"y":5},"die","MCP_CONNECTION_CLOSED","die","MCP_CONNECTION_CLOSED"]`; text != want {
		t.Errorf("history %s, want %s", text, want)
	}
	if n := len(h.started()); n != 2 {
		t.Errorf("%d processes, want 2", n)
	}
}
