package mcpserver_test

import "testing"

// TestAnAnswerSentTwiceLeavesTheNextQuestionOpen: a host repeats a call whose answer was lost, with the id that next has or without one.
func TestAnAnswerSentTwiceLeavesTheNextQuestionOpen(t *testing.T) {
	t.Parallel()
	h := newHost(t, hostMediated)
	ok := object{"ok": object{"type": "boolean"}}
	definition := walk(formNode("clerk", "Clerk?", ok, "ok"), formNode("boss", "Boss?", ok, "ok"),
		object{"id": "wait", "type": "wait", "config": object{"kind": "signal", "signal": "go"}},
		object{"id": "last", "type": "wait", "config": object{"kind": "signal", "signal": "go"}})
	h.ok("workflow_start", object{"execution_id": "r", "definition": definition})
	args := object{"execution_id": "r", "resume_payload": object{"ok": true}}
	want(t, h.ok("workflow_resume", args), object{"status": "interrupted", "node_id": "boss"})
	for range 2 {
		want(t, h.ok("workflow_resume", args), object{"status": "interrupted", "node_id": "boss", "repeated": true})
	}
	next := h.ok("workflow_status", object{"execution_id": "r"})["next"].(object)["arguments"].(object)
	next["resume_payload"] = object{"ok": true}
	want(t, h.ok("workflow_resume", next), object{"status": "awaiting_signal", "node_id": "wait"})
	want(t, h.ok("workflow_resume", next), object{"status": "awaiting_signal", "node_id": "wait", "repeated": true})

	next = h.ok("workflow_status", object{"execution_id": "r"})["next"].(object)["arguments"].(object)
	next["payload"] = object{}
	want(t, h.ok("workflow_signal", next), object{"status": "awaiting_signal", "node_id": "last"})
	want(t, h.ok("workflow_signal", next), object{"status": "awaiting_signal", "node_id": "last", "repeated": true})
}
