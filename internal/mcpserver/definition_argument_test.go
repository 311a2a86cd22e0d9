package mcpserver_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// A definition that is sent as an object is read as strictly as a file: faults that decoding hides are refused too (spec:
// definition, 14.1).
func TestW33_DefinitionObjectsAreReadFromTheirText(t *testing.T) {
	t.Parallel()
	h := newHost(t, hostMediated)
	good, err := json.Marshal(definitionFile(t, "step"))
	if err != nil {
		t.Fatal(err)
	}
	with := func(old, new string) string { return strings.Replace(string(good), old, new, 1) }
	for name, tt := range map[string]struct{ text, pointer string }{
		"duplicate":      {with(`"name":"step"`, `"name":"step","name":"dupe2"`), "/document/name"},
		"__proto__":      {with(`"document":{`, `"document":{"__proto__":{},`), "/document/__proto__"},
		"lone surrogate": {with(`"name":"step"`, `"name":"\ud800"`), "/document/name"},
		"huge number":    {with(`"document":{`, `"document":{"metadata":1e999,`), "/document/metadata"},
	} {
		if tt.text == string(good) {
			t.Fatalf("%s: nothing was changed", name)
		}
		asText, _ := json.Marshal(tt.text)
		whole, _ := json.Marshal(fmt.Sprintf(`{"definition":%s}`, tt.text))
		for form, args := range map[string]string{
			"object": fmt.Sprintf(`{"input":{"definition":{}},"definition":%s}`, tt.text), "text": fmt.Sprintf(`{"definition":%s}`, asText), "all as text": string(whole),
		} {
			var line any // whoever sends an object has seen no lines
			if form == "text" {
				line = 1
			}
			r := h.raw("workflow_start", json.RawMessage(args))
			if r.code != "VALIDATION_ERROR" {
				t.Errorf("%s, %s: %s", name, form, r.text)
				continue
			}
			want(t, at(t, r.details(), "errors", 0).(map[string]any), object{"instancePath": tt.pointer, "line": line})
		}
	}
	want(t, h.raw("workflow_start", json.RawMessage(`{"definition":`+string(good)+`}`)).content, object{"status": "awaiting_activity"})
}

// The answer to a start has the definition's warnings, also if the run fails because of one.
func TestWarnings(t *testing.T) {
	t.Parallel()
	h := newHost(t, hostMediated)
	doubtful := definitionFile(t, "step")
	nodes := doubtful["nodes"].([]any)
	for i := range 12 {
		nodes = append(nodes, object{"id": fmt.Sprintf("island%d", i), "type": "step", "config": object{"handler": "h"}})
		doubtful["edges"] = append(doubtful["edges"].([]any), object{"source": fmt.Sprintf("island%d", i), "target": "finish"})
	}
	doubtful["nodes"] = nodes
	r := h.raw("workflow_start", object{"definition": doubtful, "execution_id": "d"})
	warnings, _ := r.content["warnings"].([]any)
	if len(warnings) != 10 || !strings.HasPrefix(r.text, "Execution d awaiting_activity. The definition has ") {
		t.Fatalf("%d warnings in %.3000s", len(warnings), r.text)
	}
	for _, w := range warnings {
		w := w.(map[string]any)
		if w["code"] == "" || w["message"] == "" || !strings.HasPrefix(w["pointer"].(string), "/nodes/") {
			t.Errorf("warning %v", w)
		}
	}
	want(t, h.ok("workflow_start", object{"definition": definitionFile(t, "step")}), object{"warnings": nil})
	want(t, h.ok("workflow_status", object{"execution_id": "d"}), object{"warnings": nil})
	failed := h.refused("ENGINE_FAILURE", "workflow_start", object{"definition": doubtful, "activity_execution_mode": "in_process"})
	if got, _ := failed.details()["warnings"].([]any); len(got) != 10 || !contains(failed.text, "\nwarning: /nodes/") {
		t.Errorf("%v\n%s", failed.details(), failed.text)
	}
}
