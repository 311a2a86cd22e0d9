package mcpserver_test

import (
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/view"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historymem"
	"github.com/workflows-engine/workflows-engine/internal/enginetest"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
	"github.com/workflows-engine/workflows-engine/internal/mcpserver"
	"github.com/workflows-engine/workflows-engine/internal/soak"
)

// TestEveryAnswerKeepsItsBound: whatever is large in a run, a definition or a call, no answer of any tool, and no refusal, has more than the
// bytes that were asked for, or the server's.
func TestEveryAnswerKeepsItsBound(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	called := map[string]bool{}
	t.Run("sizes", func(t *testing.T) {
		for _, c := range []struct{ size, bound int }{
			{300, mcpserver.MinAnswerBytes}, {3000, mcpserver.MinAnswerBytes}, {20_000, mcpserver.DefaultAnswerBytes}, {3000, mcpserver.DefaultAnswerBytes},
		}[:soak.Size(2, 1, 4)] {
			t.Run(fmt.Sprintf("%d in %d", c.size, c.bound), func(t *testing.T) {
				t.Parallel()
				store := enginetest.Closing(t, historymem.New())
				runner := enginetest.Closing(t, enginetest.Must(graph.New(store, graph.Options{DefaultMode: machine.HostMediated, AllowInterruptInBranch: true})))
				h := connectHost(t, runner, mcpserver.Options{Definitions: store, DefaultMode: machine.HostMediated, AnswerBytes: c.bound})
				b := &boundHost{h, c.size, c.bound, map[string]bool{}}
				b.play()
				mu.Lock()
				defer mu.Unlock()
				maps.Copy(called, b.called)
			})
		}
	})
	h := boundedHost(t)
	list, err := h.session.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, tool := range list.Tools {
		if !called[tool.Name] && tool.Name != "workflow_guide" { // whose pages are made to be read as a whole
			t.Errorf("%s was not called", tool.Name)
		}
	}
}

// boundHost calls tools with large values and looks how large the answers are.
type boundHost struct {
	*host
	size, bound int
	called      map[string]bool
}

// long is a text of the size, with characters that JSON writes longer.
func (b *boundHost) long() string { return strings.Repeat("x\"é\n", b.size/6)[:b.size/6*5] }

func (b *boundHost) name(i int) string {
	return fmt.Sprintf("%s%d", strings.Repeat("n", min(b.size, 2000)), i)
}

func (b *boundHost) call(tool string, args object) reply {
	b.t.Helper()
	b.called[tool] = true
	bound := b.bound
	if n, ok := args["answer_bytes"].(float64); ok {
		bound = int(n)
	}
	r := b.raw(tool, args)
	if all := jsonvalue.Canonical(r.content); len(all) > bound {
		b.t.Errorf("%s answers %d bytes instead of %d (%s): %.300s", tool, len(all), bound, r.code, all)
	}
	if len(r.text) > bound+1024 {
		b.t.Errorf("%s: the text has %d bytes instead of %d (%s): %.300s", tool, len(r.text), bound, r.code, r.text)
	}
	return r
}

// all asks for everything that there is of a run.
func (b *boundHost) all(id string) {
	b.t.Helper()
	b.call("workflow_status", object{"execution_id": id})
	b.call("workflow_status", object{"execution_id": id, "read": []any{"", "/" + b.long(), "/nothing"}, "select": "."})
	b.call("workflow_status", object{"execution_id": id, "select": "error(\"" + strings.Repeat("x", b.size) + "\")"})
	b.call("workflow_status", object{"execution_id": id, "node_id": b.name(0)})
	b.call("workflow_history", object{"execution_id": id})
	b.call("workflow_history", object{"execution_id": id, "seq": 8})
	b.call("workflow_list", object{"limit": 100})
}

// next is the call that continues the run: where an answer has no room for it, the one that it names shows it.
func (b *boundHost) next(r reply) (tool string, args object) {
	b.t.Helper()
	next, _ := r.content["next"].(object)
	if next == nil {
		return "", nil
	}
	args, _ = next["arguments"].(object)
	if args["answer_bytes"] != nil {
		next = b.call("workflow_status", args).content["next"].(object)
		args = next["arguments"].(object)
	}
	return next["tool"].(string), args
}

// finish does what next says until the run ends.
func (b *boundHost) finish(r reply, outcome object) reply {
	b.t.Helper()
	for i := 0; i < 100 && r.code == "" && r.content["next"] != nil; i++ {
		tool, args := b.next(r)
		switch tool {
		case "workflow_submit_activity":
			sent := object{}
			for k, v := range outcome {
				sent[k] = v
			}
			if id := at(b.t, args, "outcome").(object)["delegate_correlation_id"]; id != nil && outcome["ok"] == true {
				sent["delegate_correlation_id"] = id
			}
			args["outcome"] = sent
		case "workflow_resume":
			args["resume_payload"] = object{"ok": b.long()}
		case "workflow_signal":
			args["payload"] = object{"got": b.long()}
		default:
			return r
		}
		r = b.call(tool, args)
	}
	return r
}

func (b *boundHost) play() {
	long := b.long()
	texts := func() object { return object{"a": long, "list": []any{long, long, object{"deep": long}}, long: 1} }
	node := func(id, kind string, config object, more object) object {
		n := object{"id": id, "type": kind, "config": config}
		for k, v := range more {
			n[k] = v
		}
		return n
	}
	chain := func(name string, nodes ...any) object {
		all, edges, last := []any{object{"id": "start", "type": "start"}}, []any{object{"source": "__start__", "target": "start"}}, "start"
		for _, n := range append(nodes, object{"id": "end", "type": "end"}) {
			all = append(all, n)
			id := n.(object)["id"].(string)
			edges = append(edges, object{"source": last, "target": id})
			last = id
		}
		return object{"document": object{"schema": "s", "name": name, "version": "1", "description": long}, "x-workflows-engine": object{"uses": []any{"templates", "early_signals"}}, "state_schema": object{"type": "object"}, "nodes": all, "edges": edges}
	}
	schema := object{"type": "object", "description": long, "properties": object{"ok": object{"description": long}, "got": object{"description": long}}}
	work := chain("work",
		node(b.name(0), "step", object{"handler": "h", "text": long, "output_schema": schema}, object{"retry": object{"max_attempts": 2}}),
		node("llm", "llm_call", object{"model": "m", "prompt": long}, nil),
		node("delegate", "agent_delegate", object{"agent_id": b.name(1), "protocol": "a2a", "input_mapping": object{"all": object{"jq": "."}}}, nil),
		node("ask", "interrupt", object{"prompt": long, "resume_schema": schema}, nil),
		node("wait", "wait", object{"kind": "signal", "signal": b.name(2)}, nil))
	labels := object{}
	for i := range 16 {
		labels[fmt.Sprint(i, strings.Repeat("l", 60))] = strings.Repeat("\"", 200)
	}
	start := object{"definition": work, "input": texts(), "execution_id": strings.Repeat("i", min(b.size, 256)), "title": strings.Repeat("\"", 200), "labels": labels}
	r := b.call("workflow_start", start)
	id := start["execution_id"].(string)
	if r.code != "" {
		b.t.Fatalf("not started: %s", r.text)
	}
	b.all(id)
	b.call("workflow_start", start)
	for _, tool := range []struct {
		name string
		args object
	}{
		{"workflow_submit_activity", object{"node_id": long, "outcome": object{"ok": true, "result": object{"a": long}}}},
		{"workflow_submit_activity", object{"node_id": b.name(0), "idempotency_key": long, "outcome": object{"ok": true, "result": object{"a": long}}}},
		{"workflow_submit_activity", object{"node_id": b.name(0), "outcome": object{"ok": true, long: 1}}},
		{"workflow_submit_activity", object{"node_id": b.name(0), "outcome": object{"ok": true}, "definition": chain(long)}},
		{"workflow_resume", object{"resume_payload": object{"a": long}, "interrupt_id": long}},
		{"workflow_signal", object{"signal_name": long, "payload": object{"a": long}}},
		{"workflow_fork", object{"node_id": long}},
		{"workflow_fork", object{"new_execution_id": long}},
		{"workflow_history", object{"seq": long}},
		{"workflow_status", object{long: long}},
		{"workflow_cancel", object{long: long}},
	} {
		tool.args["execution_id"] = id
		b.call(tool.name, tool.args)
	}
	for _, ok := range []object{{"ok": false, "error": long, "code": long}, {"ok": true, "result": texts()}} {
		_, args := b.next(r)
		args["outcome"] = ok
		r = b.call("workflow_submit_activity", args)
		b.call("workflow_submit_activity", args)
		args["outcome"] = object{"ok": true, "result": object{"other": long}}
		b.call("workflow_submit_activity", args)
		b.all(id)
	}
	r = b.finish(r, object{"ok": true, "result": object{"of": long}})
	if r.content["status"] != "completed" {
		b.t.Errorf("not completed: %.300s", r.text)
	}
	b.all(id)
	b.call("workflow_fork", object{"execution_id": id, "node_id": "llm"})
	b.call("workflow_fork", object{"execution_id": id, "seq": 3})

	// Failures and cancels, with warnings of the definition.
	failing := chain("failing", node(b.name(0), "step", object{"handler": "h", "a": "${ " + long + " }", "b": "${ " + long + " }", "c": []any{"${ x }", "${ y }"}}, nil), node("llm", "llm_call", object{"model": "${ " + long + " }", "prompt": "p"}, nil))
	r = b.call("workflow_start", object{"definition": failing, "execution_id": "f", "input": texts()})
	b.finish(r, object{"ok": false, "error": long, "code": long})
	b.all("f")
	b.call("workflow_fork", object{"execution_id": "f"})
	b.call("workflow_start", object{"definition": failing, "execution_id": "c", "input": texts()})
	b.call("workflow_cancel", object{"execution_id": "c", "reason": long})
	b.all("c")
	b.call("workflow_cancel", object{"execution_id": "c", "reason": long})
	b.call("workflow_validate", object{"definition": failing})
	b.call("workflow_validate", object{"definition": work})

	// Definitions that are not valid, and what cannot be found.
	for _, bad := range []any{
		object{long: 1}, long, object{"document": long, "nodes": []any{long, 1, object{"id": long}}, "edges": texts()},
		chain(long, node("a", "nothing", object{}, nil), node("a", long, object{}, nil), node(long, "switch", object{"cases": []any{object{"when": ".a ==", "target": long}}, "default": long}, nil)),
		chain("jq", node("a", "set_state", object{"assignments": object{long: object{"jq": long}, "b": object{"jq": ".a | " + strings.Repeat("x", b.size)}}}, nil)),
	} {
		b.call("workflow_validate", object{"definition": bad})
		b.call("workflow_start", object{"definition": bad})
	}
	var many []any
	for i := range 30 {
		many = append(many, node(fmt.Sprint(i, b.name(0)), "llm_call", object{"model": "m", "unknown": long, "prompt": object{"a": long}}, object{"retries": 3}))
	}
	b.call("workflow_validate", object{"definition": chain("many", many...)})
	b.call("workflow_start", object{"definition": chain("many", many...)})
	b.call("workflow_start", object{"definition_ref": long})
	b.call("workflow_list", object{"phase": []any{long, long}, "cursor": long, "label": long})
	b.call("workflow_list", object{"definition_name": long})
	b.call("workflow_guide", object{"topic": long})

	// Many branches, items, questions and kept signals.
	branches, nodes := []any{}, []any{}
	edges := []any{object{"source": "__start__", "target": "s"}, object{"source": "s", "target": "fan"}, object{"source": "fan", "target": "end"}}
	for i := range 10 {
		n := node(b.name(i), "step", object{"handler": "h", "text": long[:min(len(long), 5000)]}, nil)
		if i%4 == 1 {
			n = node(b.name(i), "interrupt", object{"prompt": long[:min(len(long), 5000)], "resume_schema": object{"type": "object"}}, nil)
		}
		if i%4 == 2 {
			n = node(b.name(i), "wait", object{"kind": "signal", "signal": b.name(i)}, nil)
		}
		nodes = append(nodes, n)
		branches = append(branches, object{"name": b.name(i), "entry": b.name(i)})
		edges = append(edges, object{"source": b.name(i), "target": "end"})
	}
	wide := object{"document": object{"schema": "s", "name": "wide", "version": "1"}, "state_schema": object{"type": "object"}, "edges": edges,
		"nodes": append(nodes, object{"id": "s", "type": "start"}, object{"id": "end", "type": "end"}, node("fan", "parallel", object{"join": "all", "branches": branches}, nil))}
	r = b.call("workflow_start", object{"definition": wide, "execution_id": "w", "input": texts()})
	if r.code != "" {
		b.t.Fatalf("not started: %.600s", r.text)
	}
	b.all("w")
	b.call("workflow_resume", object{"execution_id": "w", "resume_payload": object{"ok": long}})
	b.call("workflow_submit_activity", object{"execution_id": "w", "node_id": "nobody", "outcome": object{"ok": true}})
	b.finish(r, object{"ok": true, "result": object{"a": long}})
	b.all("w")
	b.still()
}

// still looks at answers about runs whose every text is large.
func (b *boundHost) still() {
	long := b.long()
	run := &view.Run{ExecutionID: "r", Status: machine.AwaitingActivity, State: object{"a": long}, Seq: 5, Title: strings.Repeat("t", 200)}
	for i := range 30 {
		run.KeptSignals = append(run.KeptSignals, machine.KeptSignals{Name: b.name(i), Count: 3})
		run.Maps = append(run.Maps, machine.MapProgress{NodeID: b.name(i), Items: 100})
		run.Rollbacks = append(run.Rollbacks, machine.RollbackProgress{Reason: "failure", Code: long, NodeID: b.name(i), Undoing: b.name(i)})
		run.Warnings = append(run.Warnings, view.Warning{Code: "X", Message: long, Hint: long})
		run.Pending = append(run.Pending, view.Pending{
			ExecutionID: "r", ID: b.name(i), IdempotencyKey: b.name(i), NodeType: "step", Config: object{long: long},
			WaitInfo: machine.WaitInfo{
				Kind: machine.WaitActivity, NodeID: b.name(i), Host: true, Attempt: 2, MaxAttempts: 3, LastError: long, LastCode: long,
				State: object{long: long},
				Span:  &history.ParallelSpan{ParallelNodeID: b.name(0), JoinTargetID: b.name(1), BranchName: b.name(2), BranchEntryNodeID: b.name(i)},
			},
		})
	}
	h := connectHost(b.t, still{run: run}, mcpserver.Options{AnswerBytes: b.bound})
	of := &boundHost{h, b.size, b.bound, b.called}
	of.call("workflow_status", object{"execution_id": "r"})
	run.Status, run.Error, run.ErrorCode, run.ErrorNodeID, run.ErrorData, run.FinalState, run.Pending = machine.Failed, long, long, b.name(0), object{"value": long}, object{"a": long}, nil
	of.call("workflow_status", object{"execution_id": "r"})
	run.Status, run.Reason = machine.Cancelled, long
	of.call("workflow_status", object{"execution_id": "r"})
}
