package cli

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestCancelBeginsNoDelegate: cancel ends at once, so it leaves a compensation to others, also one that an agent performs, and still
// ends the task that nobody waits for any more.
func TestCancelBeginsNoDelegate(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var calls []string
	agent := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			http.NotFound(w, r) // it has no card
			return
		}
		var call struct {
			ID     json.RawMessage
			Method string
		}
		json.NewDecoder(r.Body).Decode(&call)
		mu.Lock()
		calls = append(calls, call.Method)
		mu.Unlock()
		state := "input-required"
		if call.Method == "tasks/cancel" {
			state = "canceled"
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"kind":"task","id":"t","contextId":"c","status":{"state":%q}}}`, call.ID, state)
	}))
	t.Cleanup(agent.Close)
	folder := t.TempDir()
	db, path := filepath.Join(folder, "runs.db"), filepath.Join(folder, "trip.workflow.json")
	const delegate = `"type":"agent_delegate","config":{"agent_id":"g","protocol":"a2a","input_mapping":{}}`
	if err := os.WriteFile(path, []byte(`{"document":{"schema":"s","name":"trip","version":"1"},"state_schema":{"type":"object"},
 "x-workflows-engine":{"uses":["compensate"],"rollback":["cancel"]},
 "nodes":[{"id":"a","type":"start"},{"id":"book","type":"step","config":{"handler":"h"},"compensate":{"node":"undo"}},
  {"id":"ask",`+delegate+`},{"id":"undo",`+delegate+`},{"id":"z","type":"end"}],
 "edges":[{"source":"__start__","target":"a"},{"source":"a","target":"book"},{"source":"book","target":"ask"},{"source":"ask","target":"z"}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	variables := []string{
		`WORKFLOW_ENGINE_STEP_HANDLERS={"h":{}}`,
		fmt.Sprintf(`WORKFLOW_ENGINE_A2A_CONFIG={"baseUrl":%q,"transport":"jsonrpc","noAuth":true}`, agent.URL),
	}
	now := func(*notes) time.Time { return time.Now() }
	if status, _, stderr := callWith(t, variables, now, "run", path, "--id", "r", "--db", db); status != 3 {
		t.Fatalf("run: %d, %s", status, stderr)
	}
	status, stdout, stderr := callWith(t, variables, now, "cancel", "r", "--db", db)
	if status != 0 || !strings.Contains(stdout, "workflows-engine recover r") {
		t.Errorf("cancel: %d, %s%s", status, stdout, stderr)
	}
	mu.Lock()
	defer mu.Unlock()
	if sent := strings.Join(calls, " "); strings.Count(sent, "message/send") != 1 || !slices.Contains(calls, "tasks/cancel") {
		t.Errorf("the agent was sent %s", sent)
	}
}
