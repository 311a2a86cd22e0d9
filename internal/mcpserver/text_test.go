package mcpserver_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/workflows-engine/workflows-engine/graph"
)

// TestTextOfAMap: the text says which item is to be worked on, and how far the map is.
func TestTextOfAMap(t *testing.T) {
	t.Parallel()
	h := newHost(t, graph.Options{})
	definition := walk(object{
		"id": "each", "type": "step", "config": object{"handler": "h"},
		"map": object{"items": "[1,2,3]", "as": "n", "collect": "all", "concurrency": 2.0, "tolerate": object{"count": 1.0, "as": "lost"}},
	})
	definition["x-workflows-engine"] = object{"uses": []any{"map"}}
	h.ok("workflow_start", object{"execution_id": "r", "definition": definition, "activity_execution_mode": "host_mediated"})
	text := h.raw("workflow_submit_activity", object{
		"execution_id": "r", "node_id": "each", "idempotency_key": "r:each#2.1", "outcome": object{"ok": true, "result": object{"done": true}},
	}).text
	for _, want := range []string{
		`Waits: activity at node "each" (step), item 1 (of 3, counted from 0): {"handler":"h"} It sees in the state: {"n":2}`,
		`Waits: activity at node "each" (step), item 2 (of 3, counted from 0) It sees in the state: {"n":3}`,
		`Map at node "each": 1 of 3 items have ended, 0 of them failed, 2 are running.`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}

// TestTextOfAQuestion: the text has what is shown beside the prompt, and tells the model to pass it on.
func TestTextOfAQuestion(t *testing.T) {
	t.Parallel()
	h := newHost(t, graph.Options{})
	ask := object{
		"id": "ask", "type": "interrupt", "show": `{to: {name: "Ada", mail: "a@b"}, draft: "We move on Monday.\n\"Bye\"", count: 2}`,
		"config": object{"prompt": "Shall it go out?", "resume_schema": object{"type": "object"}},
	}
	definition := walk(ask)
	definition["x-workflows-engine"] = object{"uses": []any{"templates"}}
	r := h.raw("workflow_start", object{"execution_id": "r", "definition": definition})
	for _, want := range []string{
		"Waits: interrupt at node \"ask\" (interrupt): Shall it go out? show:\n  to:\n    name: Ada\n    mail: a@b\n  draft:\n    We move on Monday.\n    \"Bye\"\n  count: 2\n  resume_schema: ",
		"Ask the person what prompt says, with the values of show, and put their answer into resume_payload.",
	} {
		if !strings.Contains(r.text, want) {
			t.Errorf("no %q in\n%s", want, r.text)
		}
	}
	delete(ask, "show")
	plain := h.raw("workflow_start", object{"execution_id": "p", "definition": walk(ask)})
	if text, _ := json.Marshal(plain.content); strings.Contains(plain.text+string(text), "show holds") {
		t.Errorf("nothing is shown, and the text says so:\n%s", plain.text)
	}
}

// TestAQuestionIsRelayedWithWhatItIsAbout: where an author shows nothing, an answer has a bounded, readable text of what is new in the state,
// in both of its forms, and says that the person has to see it.
func TestAQuestionIsRelayedWithWhatItIsAbout(t *testing.T) {
	t.Parallel()
	h := newHost(t, graph.Options{})
	definition := walk(object{"id": "work", "type": "step", "config": object{"handler": "h"}},
		object{"id": "ask", "type": "interrupt", "config": object{"prompt": "Publish it?", "resume_schema": object{"type": "object"}}})
	h.ok("workflow_start", object{"execution_id": "r", "definition": definition, "activity_execution_mode": "host_mediated",
		"input": object{"topic": "tides", "password": "hunter2", "long": strings.Repeat("x", 5000)}})
	r := h.raw("workflow_submit_activity", object{"execution_id": "r", "node_id": "work", "outcome": object{"ok": true, "result": object{"report": "one\ntwo"}}})
	shown, _ := r.content["pending"].([]any)[0].(object)["shown"].(string)
	if !strings.HasPrefix(shown, "New since the last question:\nreport:\n  one\n  two\n") || !strings.Contains(shown, "topic: tides") ||
		!strings.Contains(shown, "the status of run r has all of it") {
		t.Errorf("shown:\n%s", shown)
	}
	if strings.Contains(shown, "hunter2") || len(shown) > 1700 {
		t.Errorf("%d bytes:\n%s", len(shown), shown)
	}
	for _, want := range []string{"Publish it? shown:\n  New since the last question:\n  report:\n    one\n    two\n", "with the text of shown"} {
		if !strings.Contains(r.text, want) {
			t.Errorf("no %q in\n%s", want, r.text)
		}
	}
}
