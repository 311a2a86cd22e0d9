package mcpserver_test

import (
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
