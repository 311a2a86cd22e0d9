package mcpserver_test

import (
	"strings"
	"testing"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history/historymem"
	"github.com/workflows-engine/workflows-engine/internal/enginetest"
	"github.com/workflows-engine/workflows-engine/internal/mcpserver"
)

// TestNoMemoryForNewWork shows what a server refuses that has no memory left: starts and large calls. Whatever looks at runs, or
// brings them on with little, is answered.
func TestNoMemoryForNewWork(t *testing.T) {
	t.Parallel()
	runner := enginetest.Closing(t, enginetest.Must(graph.New(enginetest.Closing(t, historymem.New()), graph.Options{})))
	h := connectHost(t, runner, mcpserver.Options{Admit: func() error {
		return problem.New(problem.MemoryBudgetExceeded, "no memory").WithHint("Try again.")
	}})
	large := map[string]any{"text": strings.Repeat("x", 100<<10)}
	for _, call := range []struct {
		tool      string
		arguments map[string]any
		refused   bool
	}{
		{"workflow_start", map[string]any{"definition": map[string]any{}}, true},
		{"workflow_submit_activity", map[string]any{"execution_id": "r", "node_id": "n", "outcome": map[string]any{"ok": true, "result": large}}, true},
		{"workflow_submit_activity", map[string]any{"execution_id": "r", "node_id": "n", "outcome": map[string]any{"ok": true}}, false},
		{"workflow_status", map[string]any{"execution_id": "r"}, false},
		{"workflow_cancel", map[string]any{"execution_id": "r"}, false},
		{"workflow_list", map[string]any{}, false},
	} {
		res := h.raw(call.tool, call.arguments)
		if got := strings.Contains(res.text, string(problem.MemoryBudgetExceeded)); got != call.refused {
			t.Errorf("%s: %s", call.tool, res.text)
		}
	}
}
