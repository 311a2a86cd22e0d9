package mcpserver_test

import (
	"strings"
	"testing"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/machine"
)

// TestStatusWarnsOfLimits: a run that nears a limit says so, with what to do; others say nothing.
func TestStatusWarnsOfLimits(t *testing.T) {
	t.Parallel()
	for most, warns := range map[int64]bool{0: false, 9: true} {
		h := newHost(t, graph.Options{DefaultMode: machine.HostMediated, MaxRecords: most})
		answer := h.ok("workflow_start", object{"definition": definitionFile(t, "tickets"), "input": object{"ticket": "x"}})
		status := h.ok("workflow_status", object{"execution_id": answer["execution_id"]})
		if _, warned := status["warnings"]; warned != warns {
			t.Fatalf("limit %d: %v", most, status["warnings"])
		}
		if !warns {
			continue
		}
		w := status["warnings"].([]any)[0].(map[string]any)
		if w["code"] != "RECORD_LIMIT_EXCEEDED" || w["limit"] != 9.0 || w["used"].(float64) < 8 || w["hint"] == "" || w["message"] == "" {
			t.Errorf("warned %v", w)
		}
	}
}

// TestACallThatARunHasNoRoomFor is refused like other arguments that are wrong: the run has not failed, and takes a shorter one.
func TestACallThatARunHasNoRoomFor(t *testing.T) {
	t.Parallel()
	h := newHost(t, graph.Options{DefaultMode: machine.HostMediated, MaxBytes: 20 << 10})
	start := object{"definition": definitionFile(t, "tickets"), "input": object{"ticket": strings.Repeat("x", 30_000)}, "execution_id": "r"}
	r := h.refused("VALIDATION_ERROR", "workflow_start", start)
	if r.details()["engineCode"] != "BYTE_LIMIT_EXCEEDED" || !strings.Contains(r.text, "Nothing was started") {
		t.Errorf("start: %s", r.text)
	}
	start["input"] = object{"ticket": "x"}
	answer := h.ok("workflow_start", start)
	pending := answer["pending"].([]any)[0].(map[string]any)
	submit := object{"execution_id": "r", "node_id": pending["node_id"], "outcome": object{"ok": true, "result": object{"intent": strings.Repeat("x", 15_000), "confidence": 1}}}
	r = h.refused("SUBMIT_VALIDATION_ERROR", "workflow_submit_activity", submit)
	if r.details()["engineCode"] != "BYTE_LIMIT_EXCEEDED" || !strings.Contains(r.text, "20480 bytes") || !strings.Contains(r.text, "the run stands and waits as before") {
		t.Errorf("submit: %s", r.text)
	}
	if status := h.ok("workflow_status", object{"execution_id": "r"}); status["phase"] != "awaiting_activity" {
		t.Errorf("the run is %v", status["phase"])
	}
}
