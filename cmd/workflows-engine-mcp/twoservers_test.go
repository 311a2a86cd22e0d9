package main

import (
	"fmt"
	"strings"
	"testing"
)

const booking = `{"document":{"schema":"s","name":"booking","version":"1"},"state_schema":{"type":"object"},` +
	`"nodes":[{"id":"a","type":"start"},{"id":"q","type":"interrupt","config":{"prompt":"?","resume_schema":{"type":"object"}}},` +
	`{"id":"w","type":"wait","config":{"kind":"signal","signal":"paid"}},{"id":"o","type":"step","config":{"handler":"urn:other"}},{"id":"b","type":"step","config":{"handler":"urn:book"}},{"id":"z","type":"end"}],` +
	`"edges":[{"source":"a","target":"q"},{"source":"q","target":"w"},{"source":"w","target":"o"},{"source":"o","target":"b"},{"source":"b","target":"z"},{"source":"__start__","target":"a"}]}`

// Two servers on one database each lack a handler that a run needs: answers and signals sent to either count, each performs
// what it can, and the other continues the run.
func TestAServerWithoutTheHandler(t *testing.T) {
	t.Parallel()
	db := database(t)
	const setting = "WORKFLOW_ENGINE_STEP_HANDLERS="
	fit := spawnWith(t, "", []string{setting + `{"urn:book":{"booked":true}}`}, "--store-path", db)
	fit.write(hello, toolCall(1, "workflow_start", `{"execution_id":"r","definition":`+booking+`}`))
	fit.read()
	if got := structured(fit.read()); got["status"] != "interrupted" {
		t.Fatalf("started: %v", got)
	}
	fit.stdin.Close()
	fit.end()

	unfit := spawnWith(t, "", []string{setting + `{"urn:other":{}}`}, "--store-path", db)
	unfit.write(hello, toolCall(1, "workflow_resume", `{"execution_id":"r","resume_payload":{"ok":true}}`))
	unfit.read()
	if got := structured(unfit.read()); got["status"] != "awaiting_signal" {
		t.Fatalf("resumed: %v", got)
	}
	unfit.write(toolCall(2, "workflow_signal", `{"execution_id":"r","signal_name":"paid","wait_ms":0}`))
	unfit.read()
	seq, note := 1.0, ""
	for i := 3; !strings.Contains(note, "urn:book"); i++ { // it performs o first
		unfit.write(toolCall(i, "workflow_status", fmt.Sprintf(`{"execution_id":"r","since_seq":%v,"wait_ms":20000}`, seq)))
		got := structured(unfit.read())
		next, _ := got["next"].(map[string]any)
		note, _ = next["note"].(string)
		seq, _ = got["seq"].(float64)
		if got["phase"] != "running" || i > 50 {
			t.Fatalf("signalled: %v", got)
		}
	}
	if !strings.Contains(note, `lacks step handler "urn:book" (node "b")`) {
		t.Errorf("note: %s", note)
	}
	spawnWith(t, "", []string{setting + `{"urn:book":{"booked":true}}`}, "--store-path", db)
	unfit.write(toolCall(1000, "workflow_status", `{"execution_id":"r","wait_ms":25000}`))
	if got := structured(unfit.read()); got["phase"] != "completed" {
		t.Errorf("with the other server: %v", got)
	}
}
