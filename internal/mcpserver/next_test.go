package mcpserver_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/view"
	"github.com/workflows-engine/workflows-engine/internal/enginetest"
	"github.com/workflows-engine/workflows-engine/internal/mcpserver"
)

// copied makes the call that next names with its arguments unchanged. The call must be refused and must change nothing.
func (h *host) copied(answer object) reply {
	h.t.Helper()
	id := answer["execution_id"].(string)
	before := len(records(h.t, h, id))
	r := h.refused("VALIDATION_ERROR", at(h.t, answer, "next", "tool").(string), at(h.t, answer, "next", "arguments").(map[string]any))
	if !contains(r.text, "found the placeholder") || !contains(r.text, "replace it with the object") {
		h.t.Errorf("the refusal does not name the placeholder: %s", r.text)
	}
	if after := len(records(h.t, h, id)); after != before {
		h.t.Errorf("%d records became %d", before, after)
	}
	return r
}

// A literal copy of next uses no attempt, answers no interrupt, delivers no signal and completes nothing.
func TestALiteralCopyOfNextChangesNothing(t *testing.T) {
	t.Parallel()
	h := newHost(t, hostMediated)
	answer := h.ok("workflow_start", object{"definition": definitionFile(t, "tickets"), "input": object{"ticket": "x"}})
	h.copied(answer)
	want(t, h.ok("workflow_status", object{"execution_id": answer["execution_id"]}), object{"pending": answer["pending"]})
	args := at(t, answer, "next", "arguments").(map[string]any)
	want(t, args["outcome"].(map[string]any), object{"result": "<object that fits output_schema>"})
	args["outcome"].(object)["result"] = object{"intent": "a", "confidence": 0.1}
	answer = h.ok("workflow_submit_activity", args)
	want(t, at(t, answer, "next", "arguments").(map[string]any), object{"resume_payload": "<object that fits resume_schema>"})
	h.copied(answer)
	args = at(t, answer, "next", "arguments").(map[string]any)
	args["resume_payload"] = object{"intent": "b"}
	answer = h.ok("workflow_resume", args)
	want(t, at(t, answer, "next", "arguments", "outcome").(map[string]any), object{"result": "<object: the tool's result>"})
	h.copied(answer)

	for _, name := range []string{"step", "delegate", "approval"} {
		h.copied(h.ok("workflow_start", object{"definition": definitionFile(t, name), "input": object{"task": "t"}}))
	}
}

// A run whose recorded hash the store does not know does not continue either; one whose hash is known does.
func TestNextLooksWhetherTheDefinitionIsStored(t *testing.T) {
	t.Parallel()
	known := newHost(t, hostMediated)
	known.ok("workflow_start", object{"definition": definitionFile(t, "step"), "execution_id": "k"})
	hash := known.ok("workflow_status", object{"execution_id": "k"})["definition_hash"].(string)
	for want, hash := range map[string]string{"workflow_status": hash, "workflow_start": "unknown"} {
		run := &view.Run{ExecutionID: "r", Status: machine.Running, State: map[string]any{"a": 1.0}, DefinitionHash: hash}
		h := connectHost(t, still{run: run}, mcpserver.Options{Definitions: known.store})
		next := at(t, h.ok("workflow_status", object{"execution_id": "r"}), "next").(map[string]any)
		if next["tool"] != want || contains(next["note"].(string), "by itself") != (want == "workflow_status") {
			t.Errorf("%s: %v", hash, next)
		}
	}
}

// Without a definition the engine cannot perform activities in process.
func TestNextOfAnInProcessRunWithoutADefinition(t *testing.T) {
	t.Parallel()
	h := connectHost(t, still{run: &view.Run{
		ExecutionID: "r", Status: machine.AwaitingActivity, State: map[string]any{"a": 1.0},
		Pending: []view.Pending{{WaitInfo: machine.WaitInfo{Kind: machine.WaitActivity, NodeID: "work"}, ExecutionID: "r"}},
	}}, mcpserver.Options{})
	want(t, at(t, h.ok("workflow_status", object{"execution_id": "r"}), "next").(map[string]any), object{"tool": "workflow_start"})
}

// Runs that this engine began need neither definition nor input.
func TestNextOfOwnRunsAsksForNothingMore(t *testing.T) {
	t.Parallel()
	h := newHost(t, graph.Options{Activities: activities.Stub{}})
	answer := h.ok("workflow_start", object{"definition": definitionFile(t, "nap"), "execution_id": "n", "wait_ms": 0})
	want(t, at(t, answer, "next").(map[string]any), object{"tool": "workflow_status"})
	want(t, at(t, answer, "next", "arguments").(map[string]any), object{"definition": nil, "input": nil})
}

// A run of an older release whose needed branch has failed says so in text and members, until the branches before it have ended.
func TestARunThatCanOnlyFailSaysSo(t *testing.T) {
	t.Parallel()
	h := newHost(t, hostMediated)
	file := enginetest.Must(os.Open(filepath.Join("..", "..", "graph", "testdata", "older", "plain-waiting.jsonl")))
	defer file.Close()
	id := enginetest.Must(graph.Import(t.Context(), h.store, file)).ExecutionID
	r := h.raw("workflow_status", object{"execution_id": id})
	if !contains(r.text, `Branch "check" of "both" has failed at node "check"; the run will fail`) || !contains(r.text, "stop") {
		t.Errorf("%s", r.text)
	}
	if at(t, r.content, "warnings", 0, "code") != "RUN_WILL_FAIL" || !contains(at(t, r.content, "next", "note").(string), "can only fail") {
		t.Errorf("%v", r.content)
	}
	if r := h.raw("workflow_resume", object{"execution_id": id, "resume_payload": object{"ok": true}}); !contains(r.text, "the run failed") {
		t.Errorf("%s", r.text)
	}
}

// What next says of a failed run is what the call does: it goes on with an agent, begins anew where it cannot, and tells what has to be
// corrected first.
func TestHowAFailedRunIsTriedAgain(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		run  view.Run
		how  string // the argument that is true
		note string // "" for no call
	}{
		{view.Run{ErrorNodeID: "n", ErrorCode: "LLM_PROVIDER_ERROR"}, "", "after the last result of its agent"},
		{view.Run{ErrorNodeID: "n"}, "", "before the failed node"},
		{view.Run{ErrorCode: "OUTPUT_SCHEMA_VIOLATION"}, "", "from where this one ended"},
		{view.Run{ErrorNodeID: "n", ErrorCode: "STEP_BUDGET_EXCEEDED"}, "", "raise the limit first"},
		{view.Run{ErrorNodeID: "n", ErrorCode: "AGENT_TURNS_EXCEEDED"}, "current_config", "raise the agent's budget first"},
		{view.Run{ErrorNodeID: "n", ErrorCode: "AGENT_JOURNAL_INVALID"}, "anew", "it cannot continue"},
		{view.Run{ErrorNodeID: "n", Compensated: 2}, "", "first node that was undone"},
		{view.Run{ErrorNodeID: "n", ErrorCode: "AGENT_STOPPED"}, "", ""},
	} {
		c.run.ExecutionID, c.run.Status, c.run.Error = "r", machine.Failed, "boom"
		h := connectHost(t, still{run: &c.run}, mcpserver.Options{})
		r := h.raw("workflow_status", object{"execution_id": "r"})
		next, _ := r.content["next"].(object)
		if c.note == "" {
			if next != nil || contains(r.text, "workflow_fork") {
				t.Errorf("%s: next %v, text %s", c.run.ErrorCode, next, r.text)
			}
			continue
		}
		arguments := object{"execution_id": "r", "anew": nil, "current_config": nil}
		if c.how != "" {
			arguments[c.how] = true
		}
		want(t, at(t, next, "arguments").(object), arguments)
		if note, _ := next["note"].(string); next["tool"] != "workflow_fork" || !contains(note, c.note) || !contains(r.text, "Next: workflow_fork {") || !contains(r.text, note) {
			t.Errorf("%s: next %v, text %s", c.run.ErrorCode, next, r.text)
		}
	}
	h := connectHost(t, still{run: &view.Run{ExecutionID: "r", Status: machine.Failed, ErrorNodeID: "n"}}, mcpserver.Options{Tools: enginetest.Must(mcpserver.ParseTools(mcpserver.CoreTools))})
	want(t, h.ok("workflow_status", object{"execution_id": "r"}), object{"next": nil})
}

// A run that waits for a worker says how many serve it, or what a worker needs.
func TestNextOfARunThatWaitsForAWorker(t *testing.T) {
	t.Parallel()
	h := newHost(t, graph.Options{Work: graph.WorkNone, DefaultMode: machine.InProcess})
	answer := h.ok("workflow_start", object{"definition": definitionFile(t, "step"), "execution_id": "r", "queue": "gpu", "wait_ms": 0})
	note := at(t, answer, "next", "note").(string)
	if !contains(note, "The run waits for a worker: lane gpu/step:") || !contains(note, "no worker serves it: start one with handler") || !contains(note, "for queue gpu (--queues). Tell the operator.") {
		t.Error(note)
	}
	h.refused("VALIDATION_ERROR", "workflow_start", object{"definition": definitionFile(t, "step"), "queue": "no queue"})
}
