package mcpserver_test

import (
	"strings"
	"testing"
	"testing/synctest"
)

// TestLargeCalls: what the connection does with large arguments is not to be seen: the call is performed in the order of its run, and
// arguments that are not JSON are answered as a line that is not.
func TestLargeCalls(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWire(t)
		w.send(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"0"}}}`)
		large := strings.Repeat("x", 200_000)
		call := func(id, tool, arguments string) string {
			return `{"jsonrpc":"2.0","id":` + id + `,"method":"tools/call","params":{"name":"` + tool + `","arguments":` + arguments + `}}`
		}
		const definition = `{"document":{"schema":"s","name":"n","version":"1"},"state_schema":{"type":"object"},"nodes":[{"id":"s","type":"start"},` +
			`{"id":"n","type":"step","config":{"handler":"h"}},{"id":"e","type":"end"}],"edges":[{"source":"__start__","target":"s"},{"source":"s","target":"n"},{"source":"n","target":"e"}]}`
		started := strings.Join(w.send(call("1", "workflow_start", `{"execution_id":"r","input":{"a":"`+large+`"},"definition":`+definition+`}`)), "")
		if !strings.Contains(started, "awaiting_activity") || !strings.Contains(started, `"bytes":200002`) {
			t.Errorf("started: %.300s", started)
		}
		broken := strings.Join(w.send(call("2", "workflow_submit_activity", `{"execution_id":"r","node_id":"n","outcome":{"ok":true,"result":{"a":"`+large+`",,}}}`)), "")
		if !strings.Contains(broken, `"id":2,"error":{"code":-32700,`) {
			t.Errorf("broken: %.300s", broken)
		}
		bomb := `{\"execution_id\":\"r\",\"node_id\":\"n\",\"outcome\":{\"ok\":true,\"result\":{\"a\":[` + strings.Repeat(`{\"\":0},`, 600_000) + `1]}}}`
		for _, arguments := range []string{`"` + bomb + `"`, strings.ReplaceAll(bomb, `\`, "")} {
			refused := strings.Join(w.send(call("5", "workflow_submit_activity", arguments)), "")
			if !strings.Contains(refused, "VALIDATION_ERROR") || !strings.Contains(refused, "128 MiB") {
				t.Errorf("refused: %.300s", refused)
			}
		}
		// The status behind the submit sees what it has done.
		answers := w.send(call("3", "workflow_submit_activity", `"{\"execution_id\":\"r\",\"node_id\":\"n\",\"outcome\":{\"ok\":true,\"result\":{\"b\":\"`+large+`\"}}}"`) +
			"\n" + call("4", "workflow_status", `{"execution_id":"r"}`))
		if len(answers) != 2 {
			t.Fatalf("%d answers", len(answers))
		}
		for _, answer := range answers {
			if !strings.Contains(answer, "completed") {
				t.Errorf("answered %.300s", answer)
			}
		}
	})
}
