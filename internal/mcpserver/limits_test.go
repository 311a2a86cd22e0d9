package mcpserver_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/machine"
)

// TestStatusWarnsOfLimits: the status of a run near a limit has a warning with what to do; that of others has none.
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

// TestACallThatARunHasNoRoomFor: a call that would exceed a limit of the run is refused; the run does not fail, and accepts a
// shorter one.
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
	if r.details()["engineCode"] != "BYTE_LIMIT_EXCEEDED" || !strings.Contains(r.text, "20480 bytes") || !strings.Contains(r.text, "the run is still waiting") {
		t.Errorf("submit: %s", r.text)
	}
	if status := h.ok("workflow_status", object{"execution_id": "r"}); status["phase"] != "awaiting_activity" {
		t.Errorf("the run is %v", status["phase"])
	}
}

// TestAnAnswerDoesNotSendBackWhatWasSent: a model pays for every word of an answer. An error quotes only the beginning of an
// argument, and a page of the list only the beginning of each run's error.
func TestAnAnswerDoesNotSendBackWhatWasSent(t *testing.T) {
	t.Parallel()
	h := newHost(t, graph.Options{DefaultMode: machine.HostMediated})
	long := strings.Repeat("x", 100_000)
	h.ok("workflow_start", object{"definition": definitionFile(t, "tickets"), "input": object{"ticket": "x"}, "execution_id": "r"})
	done := object{"ok": true, "result": object{}}
	for _, c := range []struct {
		tool string
		args object
	}{
		{"workflow_start", object{"definition_ref": long}},
		{"workflow_status", object{"execution_id": long}},
		{"workflow_status", object{"execution_id": "r", long: 1}},
		{"workflow_list", object{"phase": long}},
		{"workflow_list", object{"cursor": long}},
		{"workflow_list", object{"updated_after": long}},
		{"workflow_submit_activity", object{"execution_id": "r", "node_id": long, "outcome": done}},
		{"workflow_submit_activity", object{"execution_id": "r", "node_id": "classify", "idempotency_key": long, "outcome": done}},
		{"workflow_submit_activity", object{"execution_id": "r", "node_id": "classify", "outcome": object{"ok": true, long: 1}}},
		{"workflow_signal", object{"execution_id": "r", "signal_name": long}},
		{"workflow_resume", object{"execution_id": "r", "interrupt_id": long, "resume_payload": object{}}},
	} {
		r := h.raw(c.tool, c.args)
		all, err := json.Marshal(r.content)
		if err != nil {
			t.Fatal(err)
		}
		if r.code == "" || len(r.text) > 2500 || len(all) > 2500 {
			t.Errorf("%s: code %q, text of %d bytes, content of %d: %.300s", c.tool, r.code, len(r.text), len(all), r.text)
		}
	}
	pending := at(t, h.ok("workflow_status", object{"execution_id": "r"}), "pending", 0).(map[string]any)
	for pending != nil { // until no attempt is left
		r := h.raw("workflow_submit_activity", object{"execution_id": "r", "node_id": pending["node_id"], "outcome": object{"ok": false, "error": long}})
		if len(r.text) > 16<<10 {
			t.Errorf("submit: text of %d bytes", len(r.text))
		}
		pending = nil
		if r.code == "" {
			pending = at(t, r.content, "pending", 0).(map[string]any)
		}
	}
	row := at(t, h.ok("workflow_list", object{}), "executions", 0).(map[string]any)
	if text := row["last_error"].(string); row["phase"] != "failed" || !strings.Contains(text, "xxx") || len(text) > 400 {
		t.Errorf("row %v", row)
	}
}
