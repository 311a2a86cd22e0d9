package mcpserver_test

import (
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// TestTheHostGetsFilledPromptsAndArguments: what the host's model is asked to do has the values of the state in it, in the structured
// answer and in its text. A large value stands there as a reference that can be read.
func TestTheHostGetsFilledPromptsAndArguments(t *testing.T) {
	t.Parallel()
	h := boundedHost(t)
	d := object{
		"document":     object{"schema": "https://agent-workflow.dev/schemas/workflow-definition.json", "name": "minutes", "version": "1"},
		"state_schema": object{"type": "object"},
		"nodes": []any{
			object{"id": "begin", "type": "start"},
			object{"id": "sum", "type": "llm_call", "metadata": object{"prompt_templates": true}, "config": object{"model": "m", "user_prompt": "Sum up: ${ .talk }"}},
			object{"id": "file", "type": "tool_call", "metadata": object{"argument_templates": true}, "config": object{
				"server": "files", "tool": "write", "arguments": object{"to": "${ .folder }", "page": object{"jq": ".page + 1"}, "text": "${ .talk }"}}},
			object{"id": "done", "type": "end"},
		},
		"edges": []any{object{"source": "__start__", "target": "begin"}, object{"source": "begin", "target": "sum"}, object{"source": "sum", "target": "file"}, object{"source": "file", "target": "done"}},
	}
	started := h.raw("workflow_start", object{"definition": d, "execution_id": "short", "input": object{"talk": "we met", "folder": "notes", "page": 1.0}})
	if got := at(t, started.content, "pending", 0, "config", "user_prompt"); got != "Sum up: we met" {
		t.Errorf("the prompt is %q", got)
	}
	if !contains(started.text, "Sum up: we met") || contains(started.text, "${") {
		t.Errorf("the text says %s", started.text)
	}
	submit := func(id string) map[string]any {
		return h.ok("workflow_submit_activity", object{"execution_id": id, "node_id": "sum", "outcome": object{"ok": true, "result": object{}}})
	}
	want(t, at(t, submit("short"), "pending", 0, "config").(map[string]any), object{"arguments": object{"to": "notes", "page": 2.0, "text": "we met"}})

	talk := strings.Repeat("and then we met ", 5000)
	h.ok("workflow_start", object{"definition": d, "execution_id": "long", "input": object{"talk": talk, "folder": "notes", "page": 1.0}})
	arguments := at(t, submit("long"), "pending", 0, "config", "arguments").(map[string]any)
	want(t, arguments, object{"to": "notes", "page": 2.0})
	ref := arguments["text"].(map[string]any)
	res, err := h.session.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: ref["$ref"].(string) + ref["pointer"].(string)})
	if err != nil || res.Contents[0].Text != talk && res.Contents[0].Text != `"`+talk+`"` {
		t.Errorf("%v leads to %v", ref, err)
	}
}
