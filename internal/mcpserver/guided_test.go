package mcpserver_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// TestARefusedOutcomeHasTheCallThatHelps: the refusal of an outcome that names the wrong node, branch or key has the keys of what is pending,
// and the call for the attempt that was meant: with the same outcome where that is certain, else with a blank, so that nothing is taken for
// another attempt.
func TestARefusedOutcomeHasTheCallThatHelps(t *testing.T) {
	t.Parallel()
	outcome := object{"ok": true, "result": object{"found": "much"}}
	for name, c := range map[string]struct {
		args  object
		code  problem.Code
		node  string
		again bool   // the same outcome is sent
		whose string // the key
	}{
		"a node that is not":           {object{"node_id": "read99"}, problem.SubmitNodeMismatch, "read0", false, ""},
		"the key is another branch's":  {object{"node_id": "read99", "idempotency_key": "r:read3#1.1"}, problem.SubmitNodeMismatch, "read3", false, `node "read3" in branch "b3"`},
		"neither branch nor key":       {object{"node_id": "read2"}, problem.SubmitParallelMismatch, "read2", true, ""},
		"the span of another":          {object{"node_id": "read2", "parallel_span": spanOf(1)}, problem.SubmitParallelMismatch, "read2", true, ""},
		"the span of another, its key": {object{"node_id": "read2", "parallel_span": spanOf(1), "idempotency_key": "r:read2#1.1"}, problem.SubmitParallelMismatch, "read2", true, `node "read2" in branch "b2"`},
		"node and key differ":          {object{"node_id": "read2", "idempotency_key": "r:read1#1.1"}, problem.SubmitNotAwaiting, "read1", false, `node "read1" in branch "b1"`},
		"a key of nothing":             {object{"node_id": "read2", "idempotency_key": "r:read2#1.7"}, problem.SubmitNotAwaiting, "read2", false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := boundedHost(t)
			h.ok("workflow_start", object{"definition": branchesOf(4), "execution_id": "r"})
			args := object{"execution_id": "r", "outcome": outcome}
			for name, v := range c.args {
				args[name] = v
			}
			r := h.refused(string(c.code), "workflow_submit_activity", args)
			var keys []any
			for i := range 4 {
				keys = append(keys, object{"node_id": fmt.Sprint("read", i), "branch_name": fmt.Sprint("b", i), "idempotency_key": fmt.Sprintf("r:read%d#1.1", i)})
			}
			want(t, r.details(), object{"pending": keys, "pending_total": nil})
			next := r.details()["next"].(object)
			want(t, next, object{"tool": "workflow_submit_activity"})
			call := next["arguments"].(object)
			want(t, call, object{"execution_id": "r", "node_id": c.node, "idempotency_key": "r:" + c.node + "#1.1", "since_seq": nil})
			if !contains(r.text, `"r:read3#1.1"`) || !contains(r.text, "\nNext: workflow_submit_activity {") || c.whose != "" && !contains(r.text, "belongs to "+c.whose) {
				t.Errorf("%s", r.text)
			}
			if c.again {
				want(t, h.ok("workflow_submit_activity", call), object{"repeated": nil})
				return
			}
			if blank := h.refused("VALIDATION_ERROR", "workflow_submit_activity", call); !contains(blank.text, "found the placeholder") {
				t.Errorf("%s", blank.text)
			}
		})
	}
	h := boundedHost(t)
	h.ok("workflow_start", object{"definition": branchesOf(60), "execution_id": "r"})
	r := h.refused("ACTIVITY_SUBMIT_NODE_MISMATCH", "workflow_submit_activity", object{"execution_id": "r", "node_id": "x", "outcome": outcome})
	if n := len(r.details()["pending"].([]any)); n < 10 || n > 20 || r.details()["pending_total"] != 60.0 {
		t.Errorf("%d keys of %v", n, r.details()["pending_total"])
	}
}

// spanOf is the span of a branch of branchesOf.
func spanOf(i int) object {
	return object{"parallel_node_id": "fan", "join_target_id": "join", "branch_name": fmt.Sprint("b", i), "branch_entry_node_id": fmt.Sprint("read", i)}
}

// TestRefusalsHaveTheCallThatIsAwaited: whoever answers or signals what is not awaited, or was answered before, is given the call that is.
func TestRefusalsHaveTheCallThatIsAwaited(t *testing.T) {
	t.Parallel()
	h := newHost(t, hostMediated)
	answer := h.ok("workflow_start", object{"definition": definitionFile(t, "step"), "execution_id": "s"})
	submit := object{"tool": "workflow_submit_activity"}
	want(t, h.refused("INVALID_RESUME_PAYLOAD", "workflow_resume", object{"execution_id": "s", "resume_payload": object{}}).details()["next"].(object), submit)
	want(t, h.refused("SIGNAL_NOT_AWAITING", "workflow_signal", object{"execution_id": "s", "signal_name": "x"}).details()["next"].(object), submit)
	args := at(t, answer, "next", "arguments").(object)
	args["outcome"] = object{"ok": true}
	h.ok("workflow_submit_activity", args)
	args["outcome"] = object{"ok": true, "result": object{"other": 1}}
	ended := h.refused("ACTIVITY_SUBMIT_NOT_AWAITING", "workflow_submit_activity", args)
	want(t, ended.details(), object{"next": nil})
	want(t, at(t, ended.details(), "recorded").(object), object{"outcome": object{"ok": true, "result": object{}}})
	if !strings.Contains(ended.text, `Recorded by test 0 (mcp) at `) {
		t.Errorf("%s", ended.text)
	}

	h.ok("workflow_start", object{"definition": definitionFile(t, "approval"), "execution_id": "a"})
	mismatch := h.refused("SIGNAL_NAME_MISMATCH", "workflow_signal", object{"execution_id": "a", "signal_name": "x"})
	want(t, mismatch.details()["next"].(object), object{"tool": "workflow_signal"})
}
