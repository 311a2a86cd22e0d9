package mcpserver_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/internal/mcpserver"
)

// TestGuide: every topic is a page that fits an answer, and the first one lists them.
func TestGuide(t *testing.T) {
	t.Parallel()
	h := newHost(t, graph.Options{})
	first := h.ok("workflow_guide", nil)
	topics, _ := first["topics"].([]any)
	if len(topics) < 30 || first["topic"] != "definition" {
		t.Errorf("%v", first["topics"])
	}
	for _, topic := range topics {
		r := h.raw("workflow_guide", object{"topic": topic})
		page := r.content["guide"].(string)
		if len(page) > mcpserver.DefaultAnswerBytes/2 || !strings.Contains(r.text, page) {
			t.Errorf("%s: %d bytes", topic, len(page))
		}
	}
	if r := h.refused("VALIDATION_ERROR", "workflow_guide", object{"topic": "mapp"}); !contains(r.text, `did you mean "map"?`) {
		t.Errorf("%s", r.text)
	}
	if r := h.refused("VALIDATION_ERROR", "workflow_guide", object{"topic": "xyz"}); !contains(r.text, "jq-and-templates") {
		t.Errorf("%s", r.text)
	}
}

func TestValidate(t *testing.T) {
	t.Parallel()
	h := newHost(t, graph.Options{})
	r := h.raw("workflow_validate", object{"definition": definitionFile(t, "tickets")})
	if r.content["valid"] != true || !contains(r.content["graph"].(string), "(start) → ") || !contains(r.text, "is valid") {
		t.Errorf("%s", r.text)
	}
	broken := chainOf(2)
	broken["nodes"].([]any)[1].(object)["typo"] = 1
	broken["edges"].([]any)[0].(object)["source"] = "nowhere"
	r = h.raw("workflow_validate", object{"definition": broken})
	if found := r.content["errors"].([]any); r.code != "" || r.content["valid"] != false || len(found) < 2 || r.content["graph"] != nil ||
		!contains(r.text, "/nodes/1") || !contains(r.text, "typo") {
		t.Errorf("%s", r.text)
	}
	r = h.raw("workflow_validate", object{"definition": "{\"nodes\": [}"})
	if r.code != "" || r.content["valid"] != false || len(r.content["errors"].([]any)) != 1 {
		t.Errorf("%s", r.text)
	}
	// Of many problems the first are listed, and all are counted.
	broken = chainOf(36)
	for _, n := range broken["nodes"].([]any) {
		n.(object)["typo"] = 1
	}
	total := len(broken["nodes"].([]any))
	r = h.raw("workflow_validate", object{"definition": broken})
	if !contains(r.text, fmt.Sprintf("is not valid: %d problems.", total)) || !contains(r.text, fmt.Sprintf("- and %d more: fix these first", total-20)) ||
		r.content["errors_left_out"] != float64(total-20) {
		t.Errorf("%.200s … %v", r.text, r.content["errors_left_out"])
	}
	h.refused("VALIDATION_ERROR", "workflow_validate", nil)
}

// TestABlindStart: a model that knows the tools' descriptions alone sends something; the refusal shows it a definition and names
// the tools that help, and what it shows is valid.
func TestABlindStart(t *testing.T) {
	t.Parallel()
	h := boundedHost(t)
	r := h.refused("VALIDATION_ERROR", "workflow_start", object{"definition": object{"name": "summary", "steps": []any{"read", "summarise"}}})
	if !contains(r.text, "workflow_guide") || !contains(r.text, "workflow_validate") {
		t.Errorf("%s", r.text)
	}
	_, shown, _ := strings.Cut(r.text, "calls a model:\n")
	shown, _, _ = strings.Cut(shown, "\n")
	content := h.ok("workflow_start", object{"definition": shown})
	want(t, content, object{"status": "awaiting_activity"})
	if example, err := json.Marshal(r.details()["example"]); err != nil || !sameJSON(t, example, []byte(shown)) {
		t.Errorf("%s", example)
	}
}

// TestHistoryTool: pages of short rows that lead from one to the next, and one record whole.
func TestHistoryTool(t *testing.T) {
	t.Parallel()
	h := boundedHost(t)
	content := h.ok("workflow_start", object{"definition": chainOf(8), "input": object{"documents": documents(50_000)}, "execution_id": "r"})
	for content["status"] != "completed" {
		args := at(t, content, "next", "arguments").(map[string]any)
		args["outcome"] = object{"ok": true, "result": object{args["node_id"].(string): "done"}}
		content = h.ok("workflow_submit_activity", args)
	}
	if text := h.raw("workflow_history", object{"execution_id": "r"}).text; !contains(text, `Earlier ones: workflow_history with {"from_seq":`) {
		t.Errorf("the text does not say how to go on:\n%s", text)
	}
	page := h.ok("workflow_history", object{"execution_id": "r"})
	total := page["total"].(float64)
	seen := map[float64]bool{}
	for {
		records := page["records"].([]any)
		for _, r := range records {
			seen[r.(object)["seq"].(float64)] = true
		}
		if later, ok := page["later"].(object); ok && !seen[later["from_seq"].(float64)] {
			later["execution_id"] = "r"
			page = h.ok("workflow_history", later)
			continue
		}
		earlier, ok := page["earlier"].(object)
		if !ok {
			break
		}
		earlier["execution_id"] = "r"
		page = h.ok("workflow_history", earlier)
	}
	if float64(len(seen)) != total || total < 30 {
		t.Errorf("%d of %v records", len(seen), total)
	}
	one := h.ok("workflow_history", object{"execution_id": "r", "seq": 1, "answer_bytes": 100_000})
	if records := one["records"].([]any); len(records) != 1 || at(t, records, 0, "name") != "ExecutionStarted" || at(t, records, 0, "payload", "workflowName") != "chain" {
		t.Errorf("%.300v", one)
	}
	h.refused("VALIDATION_ERROR", "workflow_history", object{"execution_id": "r", "seq": total + 1})
	h.refused("EXECUTION_NOT_FOUND", "workflow_history", object{"execution_id": "x"})
}

// TestForkTool: a failed run is tried again before the node that failed, also with a corrected definition; any run from a node or
// a record on.
func TestForkTool(t *testing.T) {
	t.Parallel()
	h := boundedHost(t)
	content := h.ok("workflow_start", object{"definition": chainOf(2), "execution_id": "r"})
	args := at(t, content, "next", "arguments").(map[string]any)
	args["outcome"] = object{"ok": true, "result": object{"first": 1}}
	content = h.ok("workflow_submit_activity", args)
	h.refused("VALIDATION_ERROR", "workflow_fork", object{"execution_id": "r"})
	args = at(t, content, "next", "arguments").(map[string]any)
	args["outcome"] = object{"ok": false, "error": "boom"}
	h.refused("ENGINE_FAILURE", "workflow_submit_activity", args)

	again := h.ok("workflow_fork", object{"execution_id": "r", "new_execution_id": "again"})
	want(t, again, object{"execution_id": "again", "status": "awaiting_activity", "node_id": "step1", "state": object{"first": 1}})
	corrected := chainOf(2)
	corrected["nodes"].([]any)[2].(object)["config"] = object{"model": "large", "prompt": "another"}
	again = h.ok("workflow_fork", object{"execution_id": "r", "again": true, "definition": corrected})
	if at(t, again, "pending", 0, "config", "prompt") != "another" {
		t.Errorf("%v", again["pending"])
	}
	want(t, h.ok("workflow_fork", object{"execution_id": "r", "node_id": "step0"}), object{"node_id": "step0", "state": object{}})
	want(t, h.ok("workflow_fork", object{"execution_id": "r", "seq": 1}), object{"node_id": "step0"})
	h.refused("VALIDATION_ERROR", "workflow_fork", object{"execution_id": "r", "seq": 1, "node_id": "step0"})
	h.refused("VALIDATION_ERROR", "workflow_fork", object{"execution_id": "r", "node_id": "nobody"})
}

// TestTheTextOfAnEndedRunSaysHow, with the call that tries again; that of a run that waits says what is in the state, and what an
// answer has to fit.
func TestTheTextOfAnEndedRunSaysHow(t *testing.T) {
	t.Parallel()
	h := boundedHost(t)
	content := h.ok("workflow_start", object{"definition": chainOf(1), "input": object{"topic": "x"}, "execution_id": "r"})
	args := at(t, content, "next", "arguments").(map[string]any)
	args["outcome"] = object{"ok": false, "error": "boom", "code": "REFUSED"}
	failed := h.refused("ENGINE_FAILURE", "workflow_submit_activity", args)
	r := h.raw("workflow_status", object{"execution_id": "r"})
	for _, next := range []any{failed.details()["next"], r.content["next"]} {
		want(t, next.(object), object{"tool": "workflow_fork"})
		want(t, at(t, next, "arguments").(object), object{"execution_id": "r"})
	}
	if !contains(r.text, `Failed at node "step0": boom (REFUSED)`) || !contains(r.text, `Next: workflow_fork {"execution_id":"r"}`) {
		t.Errorf("%s", r.text)
	}
	h.ok("workflow_start", object{"definition": chainOf(1), "execution_id": "c"})
	h.ok("workflow_cancel", object{"execution_id": "c", "reason": "not needed"})
	if r = h.raw("workflow_status", object{"execution_id": "c"}); !contains(r.text, "not needed") {
		t.Errorf("%s", r.text)
	}
	r = h.raw("workflow_start", object{"definition": definitionFile(t, "approval"), "input": object{"topic": "x"}, "execution_id": "a"})
	for !contains(r.text, "interrupt at node") && r.content["status"] == "awaiting_activity" {
		args := at(t, r.content, "next", "arguments").(map[string]any)
		args["outcome"] = object{"ok": true}
		r = h.raw("workflow_submit_activity", args)
	}
	if !contains(r.text, `State: {"topic":"x"}`) {
		t.Errorf("%s", r.text)
	}
	bad := h.refused("VALIDATION_ERROR", "workflow_status", object{"execution_id": "a", "select": `error("no")`})
	if !contains(bad.text, "the run is not affected") {
		t.Errorf("%s", bad.text)
	}
}

// TestReferencesOfAHistoryLeadToRecords by read and as resources.
func TestReferencesOfAHistoryLeadToRecords(t *testing.T) {
	t.Parallel()
	h := boundedHost(t)
	h.ok("workflow_start", object{"definition": chainOf(1), "input": object{"documents": documents(20_000)}, "execution_id": "r"})
	page := h.ok("workflow_history", object{"execution_id": "r"})
	var ref object
	var find func(v any)
	find = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			if v["$ref"] != nil && ref == nil {
				ref = v
			}
			for _, m := range v {
				find(m)
			}
		case []any:
			for _, e := range v {
				find(e)
			}
		}
	}
	find(page["records"])
	if ref == nil {
		t.Fatalf("no reference in %.500v", page)
	}
	address := ref["$ref"].(string) + ref["pointer"].(string)
	read := h.ok("workflow_status", object{"execution_id": "r", "read": []any{address}, "answer_bytes": 100_000})
	whole, _ := json.Marshal(at(t, read, "values", 0, "value"))
	if float64(len(whole)) != ref["bytes"] {
		t.Errorf("%d bytes for %v", len(whole), ref)
	}
	res, err := h.session.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: address})
	if err != nil || !sameJSON(t, []byte(res.Contents[0].Text), whole) {
		t.Errorf("%s: %v", address, err)
	}
}
