package mcpserver_test

import (
	"encoding/json"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/internal/mcpserver"
	"github.com/workflows-engine/workflows-engine/internal/mcpserver/elicit"
)

// TestOnlyAPersonMayAnswer: with required no answer that a model passes on is taken, whatever it says, wherever the run stands; one that
// the host brings from the person is.
func TestOnlyAPersonMayAnswer(t *testing.T) {
	eachRevision(t, append([]string{"2025-03-26"}, askingRevisions...), func(t *testing.T, revision string) {
		p := says(declines, accepts(object{"approve": true}))
		asking := revision != "2025-03-26"
		o := newOffice(t, graph.Options{}, mcpserver.Options{Elicit: elicit.Required, StoreFlags: []string{"--db", "/my runs.db"}})
		h := o.host(revision, p)
		start := h.ok("workflow_start", object{"execution_id": "r", "definition": walk(approval)})
		for _, args := range []object{
			{"resume_payload": object{"approve": true}}, {"resume_payload": object{}}, {"resume_payload": `{"approve":true}`},
			{"resume_payload": object{"approve": true}, "interrupt_id": "r:ask#1"}, {"resume_payload": object{"approve": true}, "interrupt_id": "nothing"},
		} {
			args["execution_id"] = "r"
			r := h.refused("INVALID_RESUME_PAYLOAD", "workflow_resume", args)
			hint := "Call workflow_resume without resume_payload"
			if !asking {
				hint = "Tell the user to answer at a terminal, with the command `workflows-engine resume r --db '/my runs.db'`."
			}
			if r.details()["engineCode"] != "PERSON_REQUIRED" || !contains(r.text, hint) {
				t.Errorf("%v: %s", args, r.text)
			}
		}
		note := at(t, start, "next", "note").(string)
		if !asking {
			if at(t, start, "next", "tool") != "workflow_status" || !contains(note, "Only a person may answer") || !contains(note, "`workflows-engine resume r --db '/my runs.db' --interrupt r:ask#1`. Then make this call.") {
				t.Errorf("next is %v", start["next"])
			}
			r := h.refused("INVALID_RESUME_PAYLOAD", "workflow_resume", object{"execution_id": "r"})
			if r.details()["engineCode"] != "PERSON_REQUIRED" || !contains(r.text, "`workflows-engine resume r --db '/my runs.db' --interrupt r:ask#1`.") {
				t.Errorf("without a payload: %s", r.text)
			}
			if by := resumed(t, h, "r"); len(by) != 0 {
				t.Errorf("recorded %q", by)
			}
			return
		}
		if !contains(note, "declined") || contains(note, "resume_payload") {
			t.Errorf("next is %v", start["next"])
		}
		// Another host has not asked yet.
		if next := at(t, o.host(revision, nil).ok("workflow_status", object{"execution_id": "r"}), "next").(object); next["tool"] != "workflow_status" {
			t.Errorf("for a host that cannot ask next is %v", next)
		}
		if answer := h.ok("workflow_resume", object{"execution_id": "r"}); answer["status"] != "completed" {
			t.Errorf("asked again: %v", answer)
		}
		if by := resumed(t, h, "r"); !slices.Equal(by, []string{"desk 3 (elicitation)"}) {
			t.Errorf("recorded %q", by)
		}
		h.refused("INVALID_RESUME_PAYLOAD", "workflow_resume", object{"execution_id": "r"})
	})
}

// TestAnAnswerNobodyWaitsFor: with required, an answer to a run without an open question has the error that it has anywhere: no person is sent
// to a terminal, where the same answer would fail.
func TestAnAnswerNobodyWaitsFor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := newOffice(t, graph.Options{}, mcpserver.Options{Elicit: elicit.Required})
		h := o.host("2025-03-26", nil)
		h.ok("workflow_start", object{"execution_id": "r", "definition": walk(work)})
		for _, id := range []string{"r", "none"} {
			r := h.raw("workflow_resume", object{"execution_id": id, "resume_payload": object{"approve": true}})
			if r.code == "" || r.details()["engineCode"] == "PERSON_REQUIRED" || contains(r.text, "terminal") {
				t.Errorf("%s: %s", id, r.text)
			}
			if id == "r" && (r.code != "INVALID_RESUME_PAYLOAD" || !contains(r.text, "awaiting_activity") || !contains(r.text, "workflow_submit_activity")) {
				t.Errorf("%s: %s", id, r.text)
			}
		}
	})
}

// TestWaysAroundThePerson: with required, other calls do not answer for a person either, and no fork takes an answer over that was given to
// another run, in a subworkflow neither.
func TestWaysAroundThePerson(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		child := walk(approval)
		child["document"].(object)["name"] = "asks"
		text, _ := json.Marshal(child)
		o := newOffice(t, graph.Options{Workflows: oneWorkflow(text)}, mcpserver.Options{Elicit: elicit.Required})
		model, desk := o.host(lastAsking, nil), o.host(lastAsking, says(accepts(object{"approve": true})))
		def := walk(approval, work)
		model.ok("workflow_start", object{"execution_id": "r", "definition": def})
		for _, c := range []struct {
			tool string
			args object
		}{
			{"workflow_signal", object{"signal_name": "ask", "payload": object{"approve": true}}},
			{"workflow_submit_activity", object{"node_id": "ask", "outcome": object{"ok": true, "result": object{"approve": true}}}},
		} {
			c.args["execution_id"] = "r"
			if r := model.raw(c.tool, c.args); r.code == "" {
				t.Errorf("%s: %s", c.tool, r.text)
			}
		}
		records := len(records(t, model, "r"))
		// A start with a version that asks nobody gets the run as it is.
		again := model.ok("workflow_start", object{"execution_id": "r", "definition": walk(work), "allow_existing_execution_id": true})
		if again["status"] != "interrupted" || len(again["warnings"].([]any)) == 0 {
			t.Errorf("started again: %v", again)
		}
		for seq := 1; seq <= records; seq++ { // whatever is kept, the fork waits for the person
			answer := model.ok("workflow_fork", object{"execution_id": "r", "seq": seq})
			if answer["status"] != "interrupted" {
				t.Errorf("forked at %d: %v", seq, answer)
			}
		}
		if answer := desk.ok("workflow_resume", object{"execution_id": "r"}); answer["status"] != "awaiting_activity" {
			t.Fatalf("%v", answer)
		}
		model.raw("workflow_submit_activity", object{"execution_id": "r", "node_id": "work", "outcome": object{"ok": false, "error": "no"}})
		for _, args := range []object{{}, {"node_id": "work"}, {"seq": records + 2}, {"definition": def, "node_id": "work"}} {
			args["execution_id"] = "r"
			r := model.refused("VALIDATION_ERROR", "workflow_fork", args)
			if r.details()["engineCode"] != "PERSON_REQUIRED" || !contains(r.text, `node_id "ask"`) {
				t.Errorf("%v: %s", args, r.text)
			}
		}
		if answer := model.ok("workflow_fork", object{"execution_id": "r", "node_id": "ask"}); answer["status"] != "interrupted" {
			t.Errorf("forked before the question: %v", answer)
		}
		sub := object{"id": "sub", "type": "subworkflow", "config": object{"workflow_ref": "asks", "input_mapping": object{}}}
		desk.ok("workflow_start", object{"execution_id": "p", "definition": walk(sub, work)})
		if r := model.refused("VALIDATION_ERROR", "workflow_fork", object{"execution_id": "p", "node_id": "work"}); !contains(r.text, `node_id "sub"`) {
			t.Errorf("%s", r.text)
		}
		// Where a model may pass on what people say, forks keep it too.
		o.options.Elicit = elicit.Auto
		if answer := o.host(lastAsking, nil).ok("workflow_fork", object{"execution_id": "p", "node_id": "work"}); answer["status"] != "awaiting_activity" {
			t.Errorf("%v", answer)
		}
	})
}
