package mcpserver_test

import (
	"fmt"
	"strings"
	"testing"
)

// TestADefinitionThatIsSentAgainIsReadAsSent: whether its text is known from an earlier call changes no answer.
func TestADefinitionThatIsSentAgainIsReadAsSent(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 5000)
	definition := func(name, more string) string {
		return fmt.Sprintf(`{"document":{"schema":"https://agent-workflow.dev/schemas/workflow-definition.json","name":%q,"version":"1.0.0","description":%q},"state_schema":{"type":"object"},`+
			`"nodes":[{"id":"s","type":"start"},{"id":"do","type":"step","config":{"handler":"h"}},{"id":"e","type":"end"}],"edges":[{"source":"__start__","target":"s"},{"source":"s","target":"do"},{"source":"do","target":"e"}]%s}`, name, long, more)
	}
	p := newAskedPeer(t)
	id := 0
	call := func(tool, arguments string) string {
		id++
		return p.send(rpc(id, "tools/call", fmt.Sprintf(`{"name":%q,"arguments":{%s}}`, tool, arguments))).text
	}
	start := func(run, definition string) string {
		return call("workflow_start", fmt.Sprintf(`"execution_id":%q,"activity_execution_mode":"host_mediated","definition":%s`, run, definition))
	}
	again := func(run, definition string) string {
		return call("workflow_submit_activity", fmt.Sprintf(`"execution_id":%q,"node_id":"do","outcome":{"ok":true,"result":{}},"definition":%s`, run, definition))
	}
	first, other := definition("one", ""), definition("two", "")
	for _, c := range []struct{ answer, want string }{
		{start("a", first), "awaiting_activity"},
		{start("b", first), "awaiting_activity"},
		{start("c", other), "awaiting_activity"},
		{again("a", other), "SUBMIT_VALIDATION_ERROR"},
		{again("a", first), "completed"},
		{again("b", strings.Replace(first, `"h"`, `"other"`, 1)), "SUBMIT_VALIDATION_ERROR"},
		{again("b", first+`,"definition":`+first), "definition"},
		{again("b", strings.Replace(first, `"nodes"`, `"nodes":[],"nodes"`, 1)), "nodes"},
		{again("b", " "+first+" "), "completed"},
		{start("d", definition("one", `,"edge":1`)), "VALIDATION_ERROR"},
		{start("d", definition("one", `,"edge":1`)), "VALIDATION_ERROR"},
	} {
		if !strings.Contains(c.answer, c.want) {
			t.Errorf("%q is not in %.600s", c.want, c.answer)
		}
	}
}
