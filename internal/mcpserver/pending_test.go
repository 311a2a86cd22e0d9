package mcpserver_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/view"
	"github.com/workflows-engine/workflows-engine/internal/mcpserver"
)

// wide is a workflow of n branches, each a step whose config has many bytes.
func wide(n int) object {
	nodes := []any{object{"id": "begin", "type": "start"}, object{"id": "join", "type": "end"}}
	edges := []any{object{"source": "__start__", "target": "begin"}, object{"source": "begin", "target": "fork"}, object{"source": "fork", "target": "join"}}
	var branches []any
	for i := range n {
		id := fmt.Sprintf("n%d", i)
		nodes = append(nodes, object{"id": id, "type": "step", "config": object{"handler": "h", "brief": strings.Repeat("x", 1000)}})
		edges = append(edges, object{"source": id, "target": "join"})
		branches = append(branches, object{"name": id, "entry": id})
	}
	nodes = append(nodes, object{"id": "fork", "type": "parallel", "config": object{"join": "all", "branches": branches}})
	return object{
		"document":     object{"schema": "https://agent-workflow.dev/schemas/workflow-definition.json", "name": "wide", "version": "1"},
		"state_schema": object{"type": "object"}, "nodes": nodes, "edges": edges,
	}
}

// An answer describes the first of many pending branches in full and others briefly, as many as fit; status describes any of them.
func TestManyPending(t *testing.T) {
	t.Parallel()
	h := newHost(t, hostMediated)
	answer := h.ok("workflow_start", object{"definition": wide(100), "execution_id": "w"})
	pending := answer["pending"].([]any)
	want(t, answer, object{"pending_total": 100})
	brief := 0
	for i, p := range pending {
		p := p.(map[string]any)
		_, full := p["config"]
		if full == (p["brief"] == true) || i == 0 && !full || p["parallel_span"] == nil || p["idempotency_key"] != fmt.Sprintf("w:n%d#1.1", i) || p["id"] != nil {
			t.Errorf("entry %d: %v", i, p)
		}
		if !full {
			brief++
		}
	}
	if brief < 10 || len(pending)-brief < 2 {
		t.Errorf("%d pending, %d in brief", len(pending), brief)
	}
	if note := at(t, answer, "next", "note").(string); !contains(note, "99 more pending") || !contains(note, "workflow_status") {
		t.Errorf("note %q", note)
	}

	// The full entry of a branch that was brief before, with its next call.
	status := h.ok("workflow_status", object{"execution_id": "w", "node_id": "n77"})
	if n := len(status["pending"].([]any)); n != 1 {
		t.Fatalf("%d entries of one node", n)
	}
	want(t, status, object{"pending_total": 100})
	want(t, at(t, status, "pending", 0).(map[string]any), object{"node_id": "n77", "config": object{"handler": "h", "brief": strings.Repeat("x", 1000)}, "brief": nil})
	args := at(t, status, "next", "arguments").(map[string]any)
	want(t, args, object{"node_id": "n77"})
	args["outcome"].(object)["result"] = object{}
	want(t, h.ok("workflow_submit_activity", args), object{"pending_total": 99})

	// A node that waits for nothing.
	r := h.raw("workflow_status", object{"execution_id": "w", "node_id": "n77"})
	if !contains(r.text, `it does not wait at node "n77"`) || r.content["pending_total"] != 99.0 {
		t.Errorf("%.200s", r.text)
	}
	few := h.ok("workflow_start", object{"definition": wide(8), "execution_id": "e", "answer_bytes": 20_000})
	want(t, few, object{"pending_total": nil})
}

// A delegate's input is in its entry, unless it is large and the entry is the first.
func TestDelegateInputInItsEntry(t *testing.T) {
	t.Parallel()
	for size, inEntry := range map[int]bool{10: true, 5000: false} {
		input := map[string]any{"task": strings.Repeat("x", size)}
		p := view.Pending{WaitInfo: machine.WaitInfo{Kind: machine.WaitDelegate, NodeID: "d", Host: true, DelegateInput: input}, ExecutionID: "r", ID: "r:d#1.1", NodeType: "agent_delegate"}
		second := p
		second.ID, second.NodeID = "r:e#1.1", "e"
		h := connectHost(t, still{run: &view.Run{ExecutionID: "r", Status: machine.AwaitingActivity, Pending: []view.Pending{p, second}}}, mcpserver.Options{AnswerBytes: mcpserver.FullAnswers})
		answer := h.ok("workflow_status", object{"execution_id": "r"})
		want(t, answer, object{"delegate_input": input})
		if _, ok := at(t, answer, "pending", 0).(map[string]any)["delegate_input"]; ok != inEntry {
			t.Errorf("%d bytes: entry %v", size, at(t, answer, "pending", 0))
		}
		want(t, at(t, answer, "pending", 1).(map[string]any), object{"delegate_input": input})
	}
}

// An id does not break the lines of an answer or an error, and shows where it begins and ends.
func TestIDsInHeadlines(t *testing.T) {
	t.Parallel()
	h := newHost(t, hostMediated)
	for id, shown := range map[string]string{"plain-1": "plain-1", "a b": "a b", " a": `" a"`, `q"`: `"q\""`, "é": "é"} {
		r := h.raw("workflow_start", object{"definition": definitionFile(t, "step"), "execution_id": id})
		if !strings.HasPrefix(r.text, "Execution "+shown+" awaiting_activity.\nWaits: ") {
			t.Errorf("start: %.80q", r.text)
		}
		r = h.raw("workflow_status", object{"execution_id": id})
		if !strings.HasPrefix(r.text, "Execution "+shown+" is awaiting_activity.\nWaits: ") {
			t.Errorf("status: %.80q", r.text)
		}
		r = h.refused("DUPLICATE_EXECUTION_ID", "workflow_start", object{"definition": definitionFile(t, "step"), "execution_id": id})
		if !contains(r.text, "\nexecution_id: "+shown+"\n") {
			t.Errorf("refusal: %q", r.text)
		}
	}
	for _, tool := range []string{"workflow_start", "workflow_status"} {
		args := object{"execution_id": "a\nb"}
		if tool == "workflow_start" {
			args["definition"] = definitionFile(t, "step")
		}
		if r := h.raw(tool, args); r.code == "" || !contains(r.text, "\nexecution_id: \"a\\nb\"\n") {
			t.Errorf("%s: %q", tool, r.text)
		}
	}
}
