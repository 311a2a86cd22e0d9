package mcpserver_test

import (
	"context"
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/machine"
)

var hostMediated = graph.Options{DefaultMode: machine.HostMediated}

var order = []string{
	"workflow_start", "workflow_status", "workflow_resume", "workflow_submit_activity", "workflow_signal",
	"workflow_cancel", "workflow_list", "workflow_guide", "workflow_validate", "workflow_history", "workflow_fork",
}

func TestToolList(t *testing.T) {
	t.Parallel()
	h := newHost(t, hostMediated)
	list, err := h.session.ListTools(context.Background(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, tool := range list.Tools {
		names = append(names, tool.Name)
		if tool.Title == "" || tool.Description == "" || tool.Annotations == nil {
			t.Errorf("%s lacks a title, a description or annotations", tool.Name)
		}
		in := tool.InputSchema.(map[string]any)
		if in["type"] != "object" || in["additionalProperties"] != false {
			t.Errorf("%s: input schema is not a closed object", tool.Name)
		}
		everyProperty(t, tool.Name+" input", in)
		everyProperty(t, tool.Name+" output", tool.OutputSchema)
	}
	if len(names) != len(order) {
		t.Fatalf("tools %v", names)
	}
	for i := range order {
		if names[i] != order[i] {
			t.Errorf("tool %d is %s, want %s", i, names[i], order[i])
		}
	}
	for _, tool := range list.Tools {
		a := tool.Annotations
		readOnly := slices.Contains([]string{"workflow_status", "workflow_list", "workflow_guide", "workflow_validate", "workflow_history"}, tool.Name)
		if a.ReadOnlyHint != readOnly || *a.DestructiveHint != (tool.Name == "workflow_cancel") {
			t.Errorf("%s: annotations %+v", tool.Name, a)
		}
	}
}

// everyProperty checks that each property of a schema has a description.
func everyProperty(t *testing.T, where string, schema any) {
	t.Helper()
	m, ok := schema.(map[string]any)
	if !ok {
		return
	}
	properties, _ := m["properties"].(map[string]any)
	for name, p := range properties {
		if d, _ := p.(map[string]any)["description"].(string); d == "" {
			t.Errorf("%s: %s has no description", where, name)
		}
		everyProperty(t, where+"."+name, p)
	}
	everyProperty(t, where+"[]", m["items"])
}

func TestInitialize(t *testing.T) {
	t.Parallel()
	h := newHost(t, hostMediated)
	res := h.session.InitializeResult()
	if n := len(res.Instructions); n == 0 || n >= 2000 {
		t.Errorf("instructions of %d bytes", n)
	}
	// The capabilities name only what exists: no logging, no lists that change.
	if got, err := json.Marshal(res.Capabilities); err != nil || string(got) != `{"completions":{},"prompts":{},"resources":{},"tools":{}}` {
		t.Errorf("capabilities %s, %v", got, err)
	}
}

// The whole loop: definition and input are sent once, and each call that next names works.
func TestFollowingNext(t *testing.T) {
	t.Parallel()
	h := newHost(t, hostMediated)
	answer := h.ok("workflow_start", object{"definition": definitionFile(t, "tickets"), "input": object{"ticket": "x"}})
	fill := map[string]func(args object){
		"classify":    func(a object) { a["outcome"].(object)["result"] = object{"intent": "a", "confidence": 0.1} },
		"review":      func(a object) { a["resume_payload"] = object{"intent": "b"} },
		"open_ticket": func(a object) { a["outcome"].(object)["result"] = object{"id": "T-1"} },
	}
	var visited []string
	for answer["status"] != "completed" {
		node := answer["node_id"].(string)
		visited = append(visited, node)
		// Status returns what the answer returned.
		status := h.ok("workflow_status", object{"execution_id": answer["execution_id"]})
		want(t, status, object{
			"phase": answer["status"], "current_node_id": node, "state": answer["state"], "pending": answer["pending"],
			"next": answer["next"], "activity_execution_mode": "host_mediated",
		})
		args := at(t, answer, "next", "arguments").(map[string]any)
		fill[node](args)
		answer = h.ok(at(t, answer, "next", "tool").(string), args)
		if len(visited) > 5 {
			t.Fatalf("visited %v", visited)
		}
	}
	want(t, answer, object{"result": object{"intent": "b", "id": "T-1"}, "pending": nil, "next": nil, "state": nil, "node_id": nil})
	want(t, h.ok("workflow_status", object{"execution_id": answer["execution_id"]}), object{
		"phase": "completed", "current_node_id": nil, "result": answer["result"], "final_state": answer["final_state"],
		"definition_name": "tickets", "definition_version": "1.0.0", "next": nil,
	})
}

// A repeated submit gets the same answer, with its idempotency key or with the same content; other content is refused.
func TestRepeatedSubmit(t *testing.T) {
	t.Parallel()
	h := newHost(t, hostMediated)
	answer := h.ok("workflow_start", object{"definition": definitionFile(t, "step"), "execution_id": "r"})
	args := at(t, answer, "next", "arguments").(map[string]any)
	args["outcome"].(object)["result"] = object{}
	want(t, h.ok("workflow_submit_activity", args), object{"status": "completed", "result": null, "repeated": nil})
	again := object{"status": "completed", "result": null, "repeated": true}
	want(t, h.ok("workflow_submit_activity", args), again)
	args["outcome"].(object)["result"] = object{"other": 1}
	h.refused("ACTIVITY_SUBMIT_NOT_AWAITING", "workflow_submit_activity", args)
	delete(args, "idempotency_key")
	h.refused("ACTIVITY_SUBMIT_NOT_AWAITING", "workflow_submit_activity", args)
	args["outcome"].(object)["result"] = object{}
	want(t, h.ok("workflow_submit_activity", args), again)
}

func TestParallelPending(t *testing.T) {
	t.Parallel()
	h := newHost(t, hostMediated)
	answer := h.ok("workflow_start", object{"definition": definitionFile(t, "fork"), "execution_id": "f"})
	if n := len(answer["pending"].([]any)); n != 2 {
		t.Fatalf("%d pending: %v", n, answer)
	}
	want(t, answer, object{"node_id": "a", "parallel_span": at(t, answer, "pending", 0, "parallel_span")})
	// The second branch first, by its own entry.
	right := at(t, answer, "pending", 1).(map[string]any)
	args := object{
		"execution_id": "f", "node_id": right["node_id"], "parallel_span": right["parallel_span"],
		"idempotency_key": right["idempotency_key"], "outcome": object{"ok": true, "result": object{"right": 2}},
	}
	answer = h.ok("workflow_submit_activity", args)
	want(t, answer, object{"status": "awaiting_activity", "node_id": "a"})
	h.refused("ACTIVITY_SUBMIT_PARALLEL_MISMATCH", "workflow_submit_activity",
		object{"execution_id": "f", "node_id": "a", "outcome": object{"ok": true}})
	args = at(t, answer, "next", "arguments").(map[string]any)
	args["outcome"] = object{"ok": true, "result": object{"left": 1}}
	want(t, h.ok("workflow_submit_activity", args), object{
		"status": "completed", "result": object{"left": 1, "right": 2, "joined": true}, "final_state": nil, // result says it
	})
	sequential := h.ok("workflow_start", object{"definition_ref": "fork", "branch_order": "sequential"})
	if n := len(sequential["pending"].([]any)); n != 1 {
		t.Errorf("%d pending in sequential order", n)
	}
}

func TestDelegate(t *testing.T) {
	t.Parallel()
	h := newHost(t, hostMediated)
	answer := h.ok("workflow_start", object{"definition": definitionFile(t, "delegate"), "input": object{"task": "t"}, "execution_id": "d"})
	want(t, answer, object{
		"status": "awaiting_activity", "agent_id": "coder", "protocol": "a2a", "delegate_input": object{"task": "t"},
		"delegate_correlation_id": "d:delegate:implement",
	})
	want(t, at(t, answer, "pending", 0).(map[string]any), object{"kind": "delegate", "agent_id": "coder", "delegate_input": object{"task": "t"}, "config": nil})
	outcome := object{"ok": true, "result": object{"patch": "p"}}
	submit := object{"execution_id": "d", "node_id": "implement", "outcome": outcome}
	h.refused("SUBMIT_VALIDATION_ERROR", "workflow_submit_activity", submit)
	outcome["delegate_correlation_id"], outcome["external_task_id"] = "d:delegate:implement", ""
	want(t, h.ok("workflow_submit_activity", submit), object{"status": "completed"})
	want(t, h.ok("workflow_status", object{"execution_id": "d"}), object{"delegate_correlation_id": "d:delegate:implement", "agent_id": nil})
}

// A call is answered when its wait is over, and the run continues.
func TestWaits(t *testing.T) {
	t.Parallel()
	h := newHost(t, hostMediated)
	answer := h.ok("workflow_start", object{"definition": definitionFile(t, "nap"), "execution_id": "n"})
	want(t, answer, object{"status": "awaiting_timer", "node_id": "nap"})
	want(t, at(t, answer, "next").(map[string]any), object{"tool": "workflow_status"})
	want(t, h.ok("workflow_status", object{"execution_id": "n"}), object{"phase": "running", "current_node_id": "nap"})
	want(t, h.ok("workflow_list", object{"phase": "running"})["executions"].([]any)[0].(map[string]any), object{"execution_id": "n"})
}

// An activity that the engine performs shows as running, and cannot be submitted.
func TestInProcess(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	h := newHost(t, graph.Options{Activities: activities.ExecutorFunc(func(ctx context.Context, _ activities.Request) (activities.Result, error) {
		select {
		case <-release:
			return activities.Result{Output: map[string]any{"missing": "here"}}, nil
		case <-ctx.Done():
			return activities.Result{}, ctx.Err()
		}
	})})
	answer := h.ok("workflow_start", object{"definition": definitionFile(t, "step"), "execution_id": "p", "wait_ms": 0})
	want(t, answer, object{"status": "running", "activity_execution_mode": "in_process"})
	want(t, at(t, answer, "pending", 0).(map[string]any), object{"performed_by": "engine", "kind": "activity"})
	want(t, at(t, answer, "next").(map[string]any), object{"tool": "workflow_status"})
	h.refused("ACTIVITY_SUBMIT_NOT_AWAITING", "workflow_submit_activity",
		object{"execution_id": "p", "node_id": "work", "outcome": object{"ok": true}})
	close(release)
	want(t, h.ok("workflow_status", object{"execution_id": "p", "wait_ms": 60_000}), object{"phase": "completed", "result": "here"})
}

func TestList(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 678_000_000, time.UTC)
	h := newHost(t, graph.Options{DefaultMode: machine.HostMediated, Now: func() time.Time { return now }})
	for _, id := range []string{"a", "b", "c"} {
		h.ok("workflow_start", object{"definition": definitionFile(t, "approval"), "execution_id": id})
		now = now.Add(time.Hour)
	}
	page := h.ok("workflow_list", object{"limit": 2})
	want(t, at(t, page, "executions", 0).(map[string]any), object{
		"execution_id": "c", "phase": "awaiting_signal", "definition_name": "approval", "updated_at": "2026-01-02T05:04:05.678Z",
		"current_node_id": "await_approval",
	})
	page = h.ok("workflow_list", object{"limit": 2, "cursor": page["next_cursor"]})
	want(t, page, object{"next_cursor": nil})
	want(t, at(t, page, "executions", 0).(map[string]any), object{"execution_id": "a"})
	for name, tt := range map[string]struct {
		args object
		n    int
	}{
		"nothing":  {object{"phase": "completed"}, 0},
		"by name":  {object{"definition_name": "approval", "phase": "awaiting_signal"}, 3},
		"after":    {object{"updated_after": "2026-01-02T04:04:05.678Z"}, 2},
		"before":   {object{"updated_before": "2026-01-02T04:04:05.678Z"}, 2},
		"by zone":  {object{"updated_before": "2026-01-02T05:04:05.678+01:00"}, 2},
		"by year":  {object{"updated_after": "2026"}, 3},
		"by day":   {object{"updated_before": "2026-01-02"}, 0},
		"no limit": {object{"limit": nil, "phase": nil}, 3},
	} {
		if got := h.ok("workflow_list", tt.args)["executions"].([]any); len(got) != tt.n {
			t.Errorf("%s: %d runs, want %d", name, len(got), tt.n)
		}
	}
}

// TestForkedFrom: the status of a fork names its source, and the record up to which it is a copy.
func TestForkedFrom(t *testing.T) {
	t.Parallel()
	h := newHost(t, hostMediated)
	h.ok("workflow_start", object{"definition": definitionFile(t, "step"), "execution_id": "one"})
	want(t, h.ok("workflow_status", object{"execution_id": "one"}), object{"forked_from": nil})
	if _, err := h.runner.Fork(t.Context(), graph.ForkRequest{ExecutionID: "one", Seq: 2, NewExecutionID: "two"}); err != nil {
		t.Fatal(err)
	}
	want(t, h.ok("workflow_status", object{"execution_id": "two"}), object{"forked_from": object{"execution_id": "one", "seq": 2}})
}

func TestResources(t *testing.T) {
	t.Parallel()
	h := newHost(t, hostMediated)
	h.ok("workflow_start", object{"definition": definitionFile(t, "step"), "input": object{"password": "p"}, "execution_id": "a b/c"})
	for uri, wanted := range map[string]string{
		"awp://guide": "output_mapping", "awp://schemas/workflow-definition": `"$schema"`,
		"awp://runs/a%20b%2Fc/definition": `"name":"step"`, "awp://runs/a%20b%2Fc/history": `"password":"[REDACTED]"`,
	} {
		res, err := h.session.ReadResource(context.Background(), &mcp.ReadResourceParams{URI: uri})
		if err != nil {
			t.Errorf("%s: %v", uri, err)
			continue
		}
		if text := res.Contents[0].Text; !contains(text, wanted) {
			t.Errorf("%s does not hold %s:\n%s", uri, wanted, text)
		}
	}
	for _, uri := range []string{"awp://runs/ghost/definition", "awp://runs/ghost/history", "awp://nothing"} {
		if _, err := h.session.ReadResource(context.Background(), &mcp.ReadResourceParams{URI: uri}); err == nil {
			t.Errorf("%s was read", uri)
		}
	}
}

// The guide's example is a definition that starts.
func TestGuideExample(t *testing.T) {
	t.Parallel()
	h := newHost(t, hostMediated)
	res, err := h.session.ReadResource(context.Background(), &mcp.ReadResourceParams{URI: "awp://guide"})
	if err != nil {
		t.Fatal(err)
	}
	answer := h.ok("workflow_start", object{"definition": codeBlock(t, res.Contents[0].Text), "input": object{"ticket": "x"}})
	args := at(t, answer, "next", "arguments").(map[string]any)
	args["outcome"].(object)["result"] = object{"intent": "refund"}
	want(t, h.ok("workflow_submit_activity", args), object{"status": "interrupted", "node_id": "approve"})
}
