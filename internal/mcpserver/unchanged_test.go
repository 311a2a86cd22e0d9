package mcpserver_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/view"
	"github.com/workflows-engine/workflows-engine/internal/enginetest"
	"github.com/workflows-engine/workflows-engine/internal/mcpserver"
)

// maxFanOutBytes is how many bytes all answers of a host's loop over 20 branches have on their way to the host, texts and frames included.
const maxFanOutBytes = 60_000

// TestALoopOverManyBranchesIsShort: what has not changed since the answer before is not told again, on any transport line.
func TestALoopOverManyBranchesIsShort(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWire(t)
		w.send(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"0"}}}`)
		const run = "0199aabb-ccdd-7eef-8011-223344556677" // as long as the ids that the engine gives
		bytes, calls := 0, 0
		call := func(tool string, args object) object {
			calls++
			line, err := json.Marshal(object{"jsonrpc": "2.0", "id": calls, "method": "tools/call", "params": object{"name": tool, "arguments": args}})
			if err != nil {
				t.Fatal(err)
			}
			answers := w.send(string(line))
			if len(answers) != 1 {
				t.Fatalf("%d answers", len(answers))
			}
			bytes += len(answers[0]) + 1
			var answer object
			if err := json.Unmarshal([]byte(answers[0]), &answer); err != nil {
				t.Fatal(err)
			}
			return at(t, answer, "result", "structuredContent").(object)
		}
		content := call("workflow_start", object{"definition": branchesOf(20), "input": object{"documents": documents(20_000)}, "execution_id": run})
		seen := map[string]bool{} // by their keys: what was told in full
		for content["status"] != "completed" {
			entries, _ := content["pending"].([]any)
			for _, e := range entries {
				if e.(object)["config"] != nil {
					seen[e.(object)["idempotency_key"].(string)] = true
				}
			}
			known, _ := content["pending_unchanged"].([]any)
			total, some := content["pending_total"].(float64)
			if !some {
				total = float64(len(entries) + len(known))
			}
			if total != float64(21-calls) || calls > 1 && len(entries)+len(known) != 21-calls {
				t.Fatalf("call %d: %d entries, %d unchanged: %v", calls, len(entries), len(known), content)
			}
			for _, key := range known {
				if !seen[run+":"+key.(string)] {
					t.Fatalf("call %d: %v was not told before", calls, key)
				}
			}
			args := at(t, content, "next", "arguments").(object)
			if !seen[args["idempotency_key"].(string)] {
				t.Fatalf("call %d: next is of what was not told: %v", calls, args)
			}
			args["outcome"] = object{"ok": true, "result": object{"of_" + args["node_id"].(string): strings.Repeat("A sentence of a summary. ", 8)}}
			content = call("workflow_submit_activity", args)
		}
		t.Logf("%d calls, %d bytes", calls, bytes)
		if bytes > maxFanOutBytes {
			t.Errorf("%d bytes, more than %d", bytes, maxFanOutBytes)
		}
	})
}

// TestUnchangedEntriesAreLeftOut: an entry that the caller has seen whole is only named, until it changes. What next speaks of, what was
// asked for by its node, and an answer to a call without since_seq are whole.
func TestUnchangedEntriesAreLeftOut(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	entry := func(id string, attempt int) view.Pending {
		return view.Pending{
			ExecutionID: "r", ID: "r:" + id + "#1.1", IdempotencyKey: "r:" + id + "#1.1", NodeType: "step", Config: object{"handler": id},
			WaitInfo: machine.WaitInfo{
				Kind: machine.WaitActivity, NodeID: id, Host: true, Attempt: attempt, MaxAttempts: 3, Deadline: now.Add(time.Hour),
				State: object{"shared": "s"},
			},
		}
	}
	run := &view.Run{ExecutionID: "r", Status: machine.AwaitingActivity, Seq: 10, Now: now, State: object{"shared": "s"}, Pending: []view.Pending{entry("a", 1), entry("b", 1), entry("c", 1)}}
	h := connectHost(t, still{run: run}, mcpserver.Options{})
	status := h.stand
	is := func(what string, told []string, content object, want string, unchanged ...any) {
		t.Helper()
		var known any
		if unchanged != nil {
			known = unchanged
		}
		if got := strings.Join(told, " "); got != want || !sameValue(content["pending_unchanged"], known) {
			t.Errorf("%s: told %q, unchanged %v", what, got, content["pending_unchanged"])
		}
	}
	told, content, _ := status(nil)
	is("first", told, content, "a b c")
	run.Seq, run.Now = 11, now.Add(time.Minute) // fewer seconds are left
	told, content, text := status(object{"since_seq": 10})
	is("nothing has changed", told, content, "a", "b#1.1", "c#1.1")
	want(t, content, object{"pending_total": 3})
	if !contains(text, `Waits: activity at node "a" (step): {"handler":"a"}`) || !contains(text, "and 2 more, unchanged") || contains(text, "State:") {
		t.Errorf("%s", text)
	}
	run.Seq, run.Pending[1] = 12, entry("b", 2)
	told, content, _ = status(object{"since_seq": 11}) // which had left out what 10 told
	is("b is tried again", told, content, "a b", "c#1.1")
	run.Seq, run.State = 13, object{"shared": "other"} // the branches still see what was there before
	told, content, _ = status(object{"since_seq": 12})
	is("the state of the run differs from that of the branches", told, content, "a b c")
	run.Seq, run.State = 14, object{"shared": "other", "more": 1}
	told, content, _ = status(object{"since_seq": 13})
	is("another branch has added to the state", told, content, "a", "b#1.1", "c#1.1")

	told, content, _ = status(nil)
	is("without since_seq", told, content, "a b c")
	told, content, _ = status(object{"since_seq": 3})
	is("an answer that is not known", told, content, "a b c")
	told, content, _ = status(object{"since_seq": 14, "node_id": "b"})
	is("a node", told, content, "b")
	told, content, _ = connectHost(t, still{run: run}, mcpserver.Options{}).stand(object{"since_seq": 14})
	is("another client", told, content, "a b c")

	question := view.Pending{WaitInfo: machine.WaitInfo{Kind: machine.WaitInterrupt, NodeID: "q", Prompt: "Go on?"}, ExecutionID: "r", ID: "r:q#1", NodeType: "interrupt"}
	run.Seq, run.Status, run.Pending = 15, machine.Interrupted, []view.Pending{question, entry("a", 1)}
	told, content, _ = status(nil)
	is("a question", told, content, "q a")
	told, content, _ = status(object{"since_seq": 15})
	is("a question that is to be answered", told, content, "q", "a#1.1")
}

// stand asks where the run r stands, and returns the nodes of which entries are told.
func (h *host) stand(more object) (told []string, content object, text string) {
	args := object{"execution_id": "r"}
	maps.Copy(args, more)
	r := h.raw("workflow_status", args)
	entries, _ := r.content["pending"].([]any)
	for _, e := range entries {
		told = append(told, e.(object)["node_id"].(string))
	}
	return told, r.content, r.text
}

// TestUnchangedEntriesKeepToTheirSize: of many of them as many as fit are named, and all are counted.
func TestUnchangedEntriesKeepToTheirSize(t *testing.T) {
	t.Parallel()
	h := boundedHost(t)
	content := h.ok("workflow_start", object{"definition": branchesOf(120), "execution_id": "r", "answer_bytes": 4096})
	for calls := 0; content["status"] != "completed"; calls++ {
		args := at(t, content, "next", "arguments").(object)
		args["outcome"], args["answer_bytes"] = object{"ok": true, "result": object{}}, 4096
		content = h.ok("workflow_submit_activity", args)
		text := enginetest.Must(json.Marshal(content))
		if len(text) > 4096 || calls < 118 && at(t, content, "pending_total") != float64(119-calls) {
			t.Fatalf("call %d: %d bytes: %.300s", calls, len(text), fmt.Sprint(content))
		}
	}
}
