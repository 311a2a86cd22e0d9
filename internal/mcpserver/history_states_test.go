package mcpserver_test

import (
	"encoding/json"
	"strings"
	"testing"
)

// counting is a workflow that sets members of its state one after the other, with a checkpoint behind each node.
func counting(texts ...string) object {
	nodes := []any{object{"id": "s", "type": "start"}}
	edges := []any{object{"source": "__start__", "target": "s"}}
	last := "s"
	for i, text := range texts {
		id := string(rune('a' + i))
		nodes = append(nodes, object{"id": id, "type": "set_state", "config": object{"assignments": object{"last": object{"literal": text}, "n": object{"literal": i}}}})
		edges = append(edges, object{"source": last, "target": id})
		last = id
	}
	nodes = append(nodes, object{"id": "e", "type": "end"})
	edges = append(edges, object{"source": last, "target": "e"})
	return object{
		"document": object{"schema": "s", "name": "counting", "version": "1"}, "state_schema": object{"type": "object"},
		"checkpointing": object{"policy": "after_each_node"}, "nodes": nodes, "edges": edges,
	}
}

// TestHistoryShowsWhatStatesChange: a page shows of each state what the record changes, whatever the page begins with; a record alone shows
// all of it. What does not fit can be read by its place in the record.
func TestHistoryShowsWhatStatesChange(t *testing.T) {
	t.Parallel()
	h := newHost(t, hostMediated)
	long := strings.Repeat("long ", 2000)
	h.ok("workflow_start", object{"execution_id": "r", "definition": counting("x", "x", long), "input": object{"kept": strings.Repeat("as it is ", 100)}})
	find := func(args object) []object {
		t.Helper()
		args["execution_id"] = "r"
		var updates []object
		for _, v := range h.ok("workflow_history", args)["records"].([]any) {
			if r := v.(map[string]any); r["name"] == "StateUpdated" {
				updates = append(updates, r)
			}
		}
		return updates
	}
	state := func(r object) string {
		text, err := json.Marshal(r["payload"].(map[string]any)["state"])
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	whole := find(object{"from_seq": 1, "limit": 100, "answer_bytes": 60000})
	if len(whole) != 4 || !strings.Contains(state(whole[0]), `"head":"as it is`) {
		t.Fatalf("states %v", whole)
	}
	for i, want := range []string{`{"changed":{"/last":"x","/n":0}}`, `{"changed":{"/n":1}}`} {
		if got := state(whole[i+1]); got != want {
			t.Errorf("state %d is shown as %s, want %s", i+1, got, want)
		}
	}
	last := whole[3]["seq"].(float64)
	part := find(object{"from_seq": last, "limit": 2})
	if len(part) != 1 || !strings.Contains(state(part[0]), `"/n":2`) || strings.Contains(state(part[0]), "as it is") {
		t.Fatalf("the page that begins with a state shows %s", state(part[0]))
	}
	ref := at(t, part[0], "payload", "state", "changed", "/last").(map[string]any)
	read := h.ok("workflow_status", object{"execution_id": "r", "read": []any{ref["$ref"].(string) + ref["pointer"].(string)}, "answer_bytes": 60000})
	if got := at(t, read["values"].([]any)[0], "value"); got != long {
		t.Errorf("the reference leads to %.80v", got)
	}
	if alone := find(object{"seq": last, "answer_bytes": 60000}); len(alone) != 1 || !strings.Contains(state(alone[0]), `"kept":"as it is`) {
		t.Errorf("alone it is shown as %.200s", state(alone[0]))
	}
	for _, v := range h.ok("workflow_history", object{"execution_id": "r", "from_seq": 1, "limit": 100, "answer_bytes": 60000})["records"].([]any) {
		if r := v.(map[string]any); r["name"] == "CheckpointWritten" && strings.Contains(string(mustJSON(t, r)), "as it is") {
			t.Errorf("a checkpoint repeats the state: %v", r)
		}
	}
	// However little room there is, a page is JSON of about that size.
	for _, bytes := range []int{4096, 4500, 6000} {
		if text := mustJSON(t, h.ok("workflow_history", object{"execution_id": "r", "from_seq": 1, "limit": 100, "answer_bytes": bytes})); len(text) > bytes {
			t.Errorf("%d bytes, %d asked for", len(text), bytes)
		}
	}
}

func mustJSON(t *testing.T, v any) []byte {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
