package mcpserver_test

import (
	"encoding/json"
	"fmt"
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
		latin := strings.Join(w.send(call("2", "workflow_start", "{\"definition\":\"name: \xfc\",\"input\":{\"a\":\""+large+"\"}}")), "")
		if !strings.Contains(latin, `"id":2,"error":{"code":-32700,`) || !strings.Contains(latin, "UTF-8 at byte 22") {
			t.Errorf("not UTF-8: %.300s", latin)
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

// TestLargeCallsAreAppliedInTheirOrder: calls with large arguments, as an object and as its text, have their place among the small ones about
// the run, also where one of them never reaches a tool.
func TestLargeCallsAreAppliedInTheirOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWire(t)
		w.send(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"0"}}}`)
		large := strings.Repeat("x", 100_000)
		call := func(id int, params string) string {
			return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{%s}}`, id, params)
		}
		const burst = 60
		definition := fmt.Sprintf(`{"document":{"schema":"s","name":"n","version":"1"},"state_schema":{"type":"object","properties":{"l":{"type":"array","reducer":"append"}}},`+
			`"nodes":[{"id":"s","type":"start"},{"id":"n","type":"step","config":{"handler":"h"}},{"id":"m","type":"switch","config":{"cases":[{"when":"(.l | length) < %d","target":"n"}],"default":"e"}},{"id":"e","type":"end"}],`+
			`"edges":[{"source":"__start__","target":"s"},{"source":"s","target":"n"},{"source":"n","target":"m"}]}`, burst)
		w.send(call(1, `"name":"workflow_start","arguments":{"execution_id":"r","definition":`+definition+`}`))
		var lines []string
		for i := range burst {
			submit := func(more string) string {
				return fmt.Sprintf(`{"execution_id":"r","node_id":"n","outcome":{"ok":true,"result":{"l":[%d]%s}}}`, i, more)
			}
			var arguments string
			switch i % 4 {
			case 0:
				arguments = submit(`,"text":"` + large + `"`)
			case 1:
				quoted, _ := json.Marshal(submit(`,"text":"` + large + `"`))
				arguments = string(quoted)
			case 2:
				lines = append(lines, call(1000+i, `"name":7,"arguments":`+submit(`,"text":"`+large+`"`)))
				fallthrough
			default:
				arguments = submit("")
			}
			lines = append(lines, call(100+i, `"name":"workflow_submit_activity","arguments":`+arguments))
		}
		w.send(strings.Join(lines, "\n"))
		var want []string
		for i := range burst {
			want = append(want, fmt.Sprint(i))
		}
		got := strings.Join(w.send(call(2, `"name":"workflow_status","arguments":{"execution_id":"r","read":["/l"]}`)), "")
		if !strings.Contains(got, `"value":[`+strings.Join(want, ",")+`]`) {
			t.Errorf("the run has %.500s", got)
		}
	})
}
