package mcpserver_test

import (
	"context"
	"testing"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/machine"
)

// The tests of this file show, by number, that this server does not have the defects of the reference's MCP surface (spec:
// mcp-tools, 12.1). Package stdio tests number 13, malformed input.

func review(t *testing.T, h *host, id string) {
	t.Helper()
	h.ok("workflow_start", object{"definition": definitionFile(t, "tickets"), "input": object{"ticket": "x"}, "execution_id": id})
	answer := h.ok("workflow_submit_activity", object{
		"execution_id": id, "node_id": "classify", "outcome": object{"ok": true, "result": object{"intent": "a", "confidence": 0}},
	})
	want(t, answer, object{"status": "interrupted"})
}

func TestMCP12_1_1_WrongResumeChangesNothing(t *testing.T) {
	t.Parallel()
	h := newHost(t, hostMediated)
	review(t, h, "r")
	h.refused("INVALID_RESUME_PAYLOAD", "workflow_resume", object{"execution_id": "r", "resume_payload": object{"wrong": 1}})
	want(t, h.ok("workflow_status", object{"execution_id": "r"}), object{"phase": "interrupted"})
	want(t, h.ok("workflow_resume", object{"execution_id": "r", "resume_payload": object{"intent": "b"}}), object{"status": "awaiting_activity"})
	// A stale resume, and one of a run that does not exist.
	stale := h.refused("INVALID_RESUME_PAYLOAD", "workflow_resume", object{"execution_id": "r", "resume_payload": object{"intent": "b"}})
	if !contains(stale.text, "cannot resume") {
		t.Errorf("stale resume: %s", stale.text)
	}
	want(t, h.ok("workflow_status", object{"execution_id": "r"}), object{"phase": "awaiting_activity"})
	h.refused("INVALID_RESUME_PAYLOAD", "workflow_resume", object{"execution_id": "ghost", "resume_payload": object{}})
	h.refused("EXECUTION_NOT_FOUND", "workflow_status", object{"execution_id": "ghost"})
}

func TestMCP12_1_2_WrongInputOnSubmitChangesNothing(t *testing.T) {
	t.Parallel()
	h := newHost(t, hostMediated)
	h.ok("workflow_start", object{"definition": definitionFile(t, "step"), "input": object{"o": object{"a": 1, "b": 2}}, "execution_id": "s"})
	submit := object{"execution_id": "s", "node_id": "work", "outcome": object{"ok": true}, "input": object{"o": object{"a": 1}}}
	h.refused("SUBMIT_VALIDATION_ERROR", "workflow_submit_activity", submit)
	want(t, h.ok("workflow_status", object{"execution_id": "s"}), object{"phase": "awaiting_activity"})
	submit["input"] = `{"o":{"b":2,"a":1}}` // another member order, and as text
	want(t, h.ok("workflow_submit_activity", submit), object{"status": "completed"})
}

func TestMCP12_1_3_PhaseAfterResume(t *testing.T) {
	t.Parallel()
	h := newHost(t, hostMediated)
	review(t, h, "r")
	h.ok("workflow_resume", object{"execution_id": "r", "resume_payload": object{"intent": "b"}})
	want(t, h.ok("workflow_status", object{"execution_id": "r"}), object{"phase": "awaiting_activity", "current_node_id": "open_ticket"})
	if got := h.ok("workflow_list", object{"phase": "interrupted"})["executions"].([]any); len(got) != 0 {
		t.Errorf("listed as interrupted: %v", got)
	}
}

func TestMCP12_1_4_SignedDefinitionRuns(t *testing.T) {
	t.Parallel()
	h := newHost(t, hostMediated)
	signed := definitionFile(t, "step")
	signed["document"].(object)["signature"] = object{"alg": "EdDSA", "keyId": "k", "value": "e30.e30.e30"}
	want(t, h.ok("workflow_start", object{"definition": signed, "execution_id": "s"}), object{"status": "awaiting_activity"})
	want(t, h.ok("workflow_submit_activity", object{
		"execution_id": "s", "definition": signed, "node_id": "work", "outcome": object{"ok": true},
	}), object{"status": "completed"})
}

func TestMCP12_1_5_CancelStopsARunningRun(t *testing.T) {
	t.Parallel()
	began, stopped := make(chan struct{}), make(chan struct{})
	h := newHost(t, graph.Options{Activities: activities.ExecutorFunc(func(ctx context.Context, _ activities.Request) (activities.Result, error) {
		close(began)
		<-ctx.Done()
		close(stopped)
		return activities.Result{}, nil // too late to count
	})})
	h.ok("workflow_start", object{"definition": definitionFile(t, "step"), "execution_id": "c", "wait_ms": 0})
	<-began
	want(t, h.ok("workflow_cancel", object{"execution_id": "c", "reason": "stop"}), object{"status": "cancelled", "reason": "stop"})
	<-stopped
	want(t, h.ok("workflow_status", object{"execution_id": "c", "wait_ms": 1000}), object{"phase": "cancelled", "last_error": "stop"})
	want(t, h.ok("workflow_cancel", object{"execution_id": "c", "reason": "again"}), object{"reason": "stop"})
}

func TestMCP12_1_6_EndedRunsStayEnded(t *testing.T) {
	t.Parallel()
	h := newHost(t, hostMediated)
	step := definitionFile(t, "step")
	submit := func(id string, outcome object) object {
		return object{"execution_id": id, "node_id": "work", "outcome": outcome}
	}
	h.ok("workflow_start", object{"definition": step, "execution_id": "f"})
	h.refused("ENGINE_FAILURE", "workflow_submit_activity", submit("f", object{"ok": false, "error": "e"}))
	h.refused("ACTIVITY_SUBMIT_NOT_AWAITING", "workflow_submit_activity", submit("f", object{"ok": true}))
	h.refused("ENGINE_FAILURE", "workflow_start", object{"definition": step, "execution_id": "f", "allow_existing_execution_id": true})

	h.ok("workflow_start", object{"definition": step, "execution_id": "c"})
	done := h.ok("workflow_submit_activity", submit("c", object{"ok": true}))
	before := len(records(t, h, "c"))
	h.refused("INVALID_RESUME_PAYLOAD", "workflow_resume", object{"execution_id": "c", "resume_payload": object{}})
	again := h.ok("workflow_start", object{"definition": step, "execution_id": "c", "allow_existing_execution_id": true})
	wantSame(t, again, done)
	if after := len(records(t, h, "c")); after != before {
		t.Errorf("%d records became %d", before, after)
	}
	h.refused("DUPLICATE_EXECUTION_ID", "workflow_start", object{"definition": step, "execution_id": "c"})
	h.refused("CANCEL_NOT_ALLOWED", "workflow_cancel", object{"execution_id": "c"})
}

func TestMCP12_1_7_SignalNameAndReasonEverywhere(t *testing.T) {
	t.Parallel()
	h := newHost(t, hostMediated)
	twice := definitionFile(t, "approval")
	nodes, edges := twice["nodes"].([]any), twice["edges"].([]any)
	twice["nodes"] = append(nodes,
		object{"id": "ask", "type": "interrupt", "config": object{"prompt": "?", "resume_schema": object{"type": "object"}}},
		object{"id": "work", "type": "step", "config": object{"handler": "h"}},
		object{"id": "second", "type": "wait", "config": object{"kind": "signal", "signal": "again"}},
		object{"id": "third", "type": "wait", "config": object{"kind": "signal", "signal": "last"}})
	edges[2] = object{"source": "await_approval", "target": "ask"}
	twice["edges"] = append(edges, object{"source": "ask", "target": "second"}, object{"source": "second", "target": "work"},
		object{"source": "work", "target": "third"}, object{"source": "third", "target": "finish"})
	want(t, h.ok("workflow_start", object{"definition": twice, "execution_id": "s"}), object{"status": "awaiting_signal", "signal_name": "approved"})
	h.ok("workflow_signal", object{"execution_id": "s", "signal_name": "approved"})
	want(t, h.ok("workflow_resume", object{"execution_id": "s", "resume_payload": object{}}), object{"signal_name": "again"})
	h.ok("workflow_signal", object{"execution_id": "s", "signal_name": "again"})
	want(t, h.ok("workflow_submit_activity", object{"execution_id": "s", "node_id": "work", "outcome": object{"ok": true}}), object{"signal_name": "last"})
	h.ok("workflow_cancel", object{"execution_id": "s", "reason": "why"})
	want(t, h.ok("workflow_start", object{"definition": twice, "execution_id": "s", "allow_existing_execution_id": true}),
		object{"status": "cancelled", "reason": "why"})
}

func TestMCP12_1_8_DefinitionIsBoundAtStart(t *testing.T) {
	t.Parallel()
	h := newHost(t, hostMediated)
	h.ok("workflow_start", object{"definition": definitionFile(t, "step"), "execution_id": "b"})
	other := definitionFile(t, "step")
	other["nodes"].([]any)[2].(object)["config"] = object{"output_mapping": `"hacked"`}
	submit := object{"execution_id": "b", "definition": other, "node_id": "work", "outcome": object{"ok": true}}
	h.refused("SUBMIT_VALIDATION_ERROR", "workflow_submit_activity", submit)
	delete(submit, "definition")
	want(t, h.ok("workflow_submit_activity", submit), object{"status": "completed", "result": null})
}

func TestMCP12_1_9_NothingIsMaskedInLiveValues(t *testing.T) {
	t.Parallel()
	h := newHost(t, hostMediated)
	want(t, h.ok("workflow_start", object{"definition": definitionFile(t, "step"), "input": object{"token": "tok"}, "execution_id": "m"}),
		object{"state": object{"token": "tok"}})
	want(t, h.ok("workflow_submit_activity", object{
		"execution_id": "m", "input": object{"token": "tok"}, "node_id": "work", "outcome": object{"ok": true, "result": object{"secret": 1}},
	}), object{"final_state": object{"token": "tok", "secret": 1}})
}

func TestMCP12_1_10_DelegateInABranch(t *testing.T) {
	t.Parallel()
	h := newHost(t, hostMediated)
	fork := definitionFile(t, "fork")
	fork["nodes"].([]any)[2] = object{"id": "a", "type": "agent_delegate", "config": object{
		"agent_id": "coder", "protocol": "mcp", "input_mapping": object{"n": object{"literal": 1}},
	}}
	answer := h.ok("workflow_start", object{"definition": fork, "execution_id": "d"})
	want(t, answer, object{"node_id": "a", "agent_id": "coder", "delegate_input": object{"n": 1}})
	args := at(t, answer, "next", "arguments").(map[string]any)
	args["outcome"].(object)["result"] = object{}
	answer = h.ok("workflow_submit_activity", args)
	want(t, answer, object{"node_id": "b"})
	args = at(t, answer, "next", "arguments").(map[string]any)
	args["outcome"].(object)["result"] = object{}
	want(t, h.ok("workflow_submit_activity", args), object{"status": "completed"})
}

func TestMCP12_1_11_BrokenBranchesAndHostCodes(t *testing.T) {
	t.Parallel()
	h := newHost(t, hostMediated)
	broken := definitionFile(t, "fork")
	broken["edges"].([]any)[3] = object{"source": "a", "target": "a"}
	h.refused("VALIDATION_ERROR", "workflow_start", object{"definition": broken})
	h.ok("workflow_start", object{"definition": definitionFile(t, "step"), "execution_id": "h"})
	failed := h.refused("ENGINE_FAILURE", "workflow_submit_activity", object{
		"execution_id": "h", "node_id": "work", "outcome": object{"ok": false, "error": "x", "code": "EXECUTION_NOT_FOUND"},
	})
	want(t, failed.details(), object{
		"cause": "x", "code": "EXECUTION_NOT_FOUND", "node_id": "work", "execution_id": "h", "final_state": object{},
	})
}

func TestMCP12_1_12_CallsDoNotSleepThroughTimers(t *testing.T) {
	t.Parallel()
	h := newHost(t, hostMediated)
	want(t, h.ok("workflow_start", object{"definition": definitionFile(t, "nap"), "execution_id": "n"}), object{"status": "awaiting_timer"})
	retried := definitionFile(t, "step")
	retried["nodes"].([]any)[1].(object)["retry"] = object{"max_attempts": 2, "initial_interval": "1h"}
	h.ok("workflow_start", object{"definition": retried, "execution_id": "r"})
	answer := h.ok("workflow_submit_activity", object{"execution_id": "r", "node_id": "work", "outcome": object{"ok": false, "error": "e"}})
	want(t, answer, object{"status": "awaiting_timer"})
	want(t, at(t, answer, "pending", 0).(map[string]any), object{"kind": "backoff", "last_error": "e"})
}

func TestMCP12_1_14_ListWithoutArguments(t *testing.T) {
	t.Parallel()
	h := newHost(t, hostMediated)
	want(t, h.raw("workflow_list", nil).content, object{"executions": []any{}})
}

// TestModeIsRemembered: a host that names its mode once performs every activity (spec: mcp-tools, 5.3 and 14.8).
func TestModeIsRemembered(t *testing.T) {
	t.Parallel()
	h := newHost(t, graph.Options{DefaultMode: machine.InProcess, Activities: activities.Stub{}})
	h.ok("workflow_start", object{
		"definition": definitionFile(t, "tickets"), "input": object{"ticket": "x"}, "execution_id": "m", "activity_execution_mode": "host_mediated",
	})
	h.ok("workflow_submit_activity", object{
		"execution_id": "m", "node_id": "classify", "outcome": object{"ok": true, "result": object{"intent": "a", "confidence": 0}},
	})
	want(t, h.ok("workflow_resume", object{"execution_id": "m", "resume_payload": object{"intent": "b"}}),
		object{"status": "awaiting_activity", "activity_execution_mode": "host_mediated"})
}
