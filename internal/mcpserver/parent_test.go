package mcpserver_test

import (
	"encoding/json"
	"testing"

	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/internal/enginetest"
	"github.com/workflows-engine/workflows-engine/internal/mcpserver"
)

// TestParentOfARun: every answer names the run that started one, and none for a root; --full-answers speak of the newest subworkflow, as the
// protocol has it.
func TestParentOfARun(t *testing.T) {
	t.Parallel()
	h := newHost(t, hostMediated)
	calls := func(name, ref string) object {
		d := orderDefinition(t, "parent")
		at(t, d, "document").(object)["name"] = name
		at(t, d, "nodes", 1, "config").(object)["workflow_ref"] = ref
		return d
	}
	for ref, d := range map[string]object{"urn:leaf": definitionFile(t, "step"), "urn:middle": calls("middle", "urn:leaf")} {
		if err := h.runner.RegisterWorkflow(ref, enginetest.Must(definition.Parse(enginetest.Must(json.Marshal(d))))); err != nil {
			t.Fatal(err)
		}
	}
	started := h.ok("workflow_start", object{"definition": calls("top", "urn:middle"), "execution_id": "top"})
	leaf := at(t, started, "pending", 0, "execution_id").(string)
	middle := h.ok("workflow_status", object{"execution_id": leaf})["parent_execution_id"].(string)
	whole := connectHost(t, h.runner, mcpserver.Options{AnswerBytes: mcpserver.FullAnswers})
	listed := map[string]any{}
	for _, row := range h.ok("workflow_list", nil)["executions"].([]any) {
		listed[row.(object)["execution_id"].(string)] = row.(object)["parent_execution_id"]
	}
	for _, run := range []struct {
		id               string
		parent, protocol any
	}{{"top", nil, "top"}, {middle, "top", middle}, {leaf, middle, middle}} {
		got := h.ok("workflow_status", object{"execution_id": run.id})
		want(t, got, object{"parent_execution_id": run.parent})
		if listed[run.id] != run.parent {
			t.Errorf("the list says that the parent of %s is %v", run.id, listed[run.id])
		}
		want(t, whole.ok("workflow_status", object{"execution_id": run.id}), object{"parent_execution_id": run.protocol})
	}
}
