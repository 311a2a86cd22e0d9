package mcpserver_test

import (
	"strings"
	"testing"
)

// stays books two nights and pays; the nights are undone at each end but the good one.
const stays = `{"document":{"schema":"s","name":"stays","version":"1"},"state_schema":{"type":"object"},
	"x-workflows-engine":{"uses":["compensate","map"],"rollback":["cancel","failure"]},
	"nodes":[{"id":"a","type":"start"},
	{"id":"plan","type":"step","config":{"handler":"h"}},
	{"id":"stay","type":"step","map":{"items":"[1,2]","as":"night"},"compensate":{"node":"undo"},"config":{"handler":"h"}},
	{"id":"pay","type":"step","config":{"handler":"h"}},{"id":"undo","type":"step","config":{"handler":"h"}},{"id":"z","type":"end"}],
	"edges":[{"source":"__start__","target":"a"},{"source":"a","target":"plan"},{"source":"plan","target":"stay"},{"source":"stay","target":"pay"},{"source":"pay","target":"z"}]}`

// booked is a run of stays that is to pay.
func booked(t *testing.T) (h *host, submit func(node, key string, outcome object) reply) {
	t.Helper()
	h = newHost(t, hostMediated)
	h.ok("workflow_start", object{"definition": stays, "execution_id": "r"})
	submit = func(node, key string, outcome object) reply {
		return h.raw("workflow_submit_activity", object{"execution_id": "r", "node_id": node, "idempotency_key": "r:" + key, "outcome": outcome})
	}
	for _, key := range []string{"plan#1.1", "stay#2.1", "stay#3.1"} {
		node, _, _ := strings.Cut(key, "#")
		if answer := submit(node, key, object{"ok": true}); answer.code != "" {
			t.Fatalf("%s: %s", key, answer.text)
		}
	}
	return h, submit
}

// TestTheEndOfARollbackIsTold: who makes the last compensation of a cancelled run is told that it was the last.
func TestTheEndOfARollbackIsTold(t *testing.T) {
	t.Parallel()
	h, submit := booked(t)
	h.ok("workflow_cancel", object{"execution_id": "r", "reason": "ill"})
	submit("undo", "undo#1.1", object{"ok": true})
	last := submit("undo", "undo#2.1", object{"ok": true})
	for _, text := range []string{last.text, h.raw("workflow_status", object{"execution_id": "r"}).text} {
		if !strings.Contains(text, "The rollback is finished: 2 compensations were made.") || !strings.Contains(text, "Reason: ill") {
			t.Errorf("%s", text)
		}
	}
}

// TestARolledBackRunIsTriedAgain: the call that the text of a failed run names begins before what was undone.
func TestARolledBackRunIsTriedAgain(t *testing.T) {
	t.Parallel()
	h, submit := booked(t)
	submit("pay", "pay#1.1", object{"ok": false, "error": "no money"})
	submit("undo", "undo#1.1", object{"ok": true})
	last := submit("undo", "undo#2.1", object{"ok": true})
	for _, text := range []string{last.text, h.raw("workflow_status", object{"execution_id": "r"}).text} {
		if !strings.Contains(text, "The rollback is finished: 2 compensations were made.") || !strings.Contains(text, "workflow_fork") ||
			!strings.Contains(text, "before the first node that was undone") {
			t.Errorf("%s", text)
		}
	}
	forked := h.ok("workflow_fork", object{"execution_id": "r", "new_execution_id": "f"})
	want(t, forked, object{"node_id": "stay"})
	if pending := forked["pending"].([]any); len(pending) != 2 {
		t.Errorf("pending %v", pending)
	}
	corrected := h.ok("workflow_fork", object{"execution_id": "r", "new_execution_id": "c", "again": true, "state": object{"money": 1}})
	want(t, corrected, object{"node_id": "stay", "state": object{"money": 1.0}})
	refused := h.raw("workflow_fork", object{"execution_id": "r", "node_id": "pay"})
	if !strings.Contains(refused.text, "has undone node") || !strings.Contains(refused.text, `Next: Fork it before node "stay"`) {
		t.Errorf("%s", refused.text)
	}
}
