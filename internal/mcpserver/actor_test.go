package mcpserver_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historymem"
	"github.com/workflows-engine/workflows-engine/internal/enginetest"
	"github.com/workflows-engine/workflows-engine/internal/mcpserver"
)

// clients connects one client for each name to an engine that leaves activities to the host.
func clients(t *testing.T, who ...*mcp.Implementation) []*host {
	t.Helper()
	store := enginetest.Closing(t, historymem.New())
	runner := enginetest.Closing(t, enginetest.Must(graph.New(store, graph.Options{DefaultMode: machine.HostMediated})))
	var hosts []*host
	for _, w := range who {
		h := connectAs(t, w, runner, mcpserver.Options{Definitions: store})
		h.runner, h.store = runner, store
		hosts = append(hosts, h)
	}
	return hosts
}

// questioned is a definition with an activity, a signal and an interrupt.
func questioned() object {
	return object{
		"document": object{"schema": "s", "name": "w", "version": "1"}, "state_schema": object{"type": "object"},
		"nodes": []any{
			object{"id": "s", "type": "start"},
			object{"id": "a", "type": "step", "config": object{"handler": "h"}},
			object{"id": "g", "type": "wait", "config": object{"kind": "signal", "signal": "go"}},
			object{"id": "ask", "type": "interrupt", "config": object{"prompt": "?", "resume_schema": object{"type": "object"}}},
			object{"id": "b", "type": "step", "config": object{"handler": "h"}},
			object{"id": "z", "type": "end"},
		},
		"edges": []any{
			object{"source": "__start__", "target": "s"}, object{"source": "s", "target": "a"}, object{"source": "a", "target": "g"},
			object{"source": "g", "target": "ask"}, object{"source": "ask", "target": "b"}, object{"source": "b", "target": "z"},
		},
	}
}

// TestACallRecordsItsClient: each tool call that changes a run records the client that made it, also where two clients work on one run;
// the resource that shows a history shows it, and answers of tools do not.
func TestACallRecordsItsClient(t *testing.T) {
	t.Parallel()
	both := clients(t, &mcp.Implementation{Name: "desk", Title: "The Desk", Version: "2.1-rc"}, &mcp.Implementation{Name: "phone", Version: "7"})
	desk, phone := both[0], both[1]
	var answers []map[string]any
	for _, c := range []struct {
		h    *host
		tool string
		args object
	}{
		{desk, "workflow_start", object{"definition": questioned(), "execution_id": "r"}},
		{phone, "workflow_submit_activity", object{"execution_id": "r", "node_id": "a", "outcome": object{"ok": true, "result": object{}}}},
		{phone, "workflow_status", object{"execution_id": "r"}},
		{desk, "workflow_signal", object{"execution_id": "r", "signal_name": "go"}},
		{phone, "workflow_resume", object{"execution_id": "r", "resume_payload": object{}}},
		{desk, "workflow_cancel", object{"execution_id": "r"}},
		{phone, "workflow_cancel", object{"execution_id": "r"}}, // it is cancelled already
		{phone, "workflow_list", object{}},
	} {
		answers = append(answers, c.h.ok(c.tool, c.args))
	}
	var got []string
	for _, r := range records(t, desk, "r") {
		if a := r.Payload.Actor; a != nil {
			got = append(got, fmt.Sprintf("%s by %s", r.Name, a))
		}
	}
	want := []string{
		"ExecutionStarted by desk 2.1-rc (mcp)", "ActivityCompleted by phone 7 (mcp)", "DeliverSignal by desk 2.1-rc (mcp)",
		"ResumeInterrupt by phone 7 (mcp)", "CancelExecution by desk 2.1-rc (mcp)",
	}
	if !slices.Equal(got, want) {
		t.Errorf("recorded %q, want %q", got, want)
	}
	shown, err := phone.session.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "awp://runs/r/history"})
	if err != nil || !strings.Contains(shown.Contents[0].Text, `"actor":{"via":"mcp","name":"desk","title":"The Desk","version":"2.1-rc"}`) {
		t.Errorf("shown %v, %v", shown, err)
	}
	if text := fmt.Sprint(answers); strings.Contains(text, "actor") || strings.Contains(text, "2.1-rc") {
		t.Errorf("tools answer %s", text)
	}
}

// TestAHostileClientNameIsHarmless: a client that calls itself something very long, or something that acts on a terminal, is recorded
// with a short text that does not.
func TestAHostileClientNameIsHarmless(t *testing.T) {
	t.Parallel()
	evil := "\x1b[2J\u202e\nrecord 7 "
	h := clients(t, &mcp.Implementation{Name: evil + strings.Repeat("x", 1<<20), Title: strings.Repeat("\x00", 1<<12), Version: evil})[0]
	h.ok("workflow_start", object{"definition": questioned(), "execution_id": "r"})
	a := records(t, h, "r")[0].Payload.Actor
	want := history.Actor{
		Via: "mcp", Name: `\x1b[2J\u202e\nrecord 7 ` + strings.Repeat("x", 40) + "…", Title: strings.Repeat(`\x00`, 16) + "…", Version: `\x1b[2J\u202e\nrecord 7 `,
	}
	if a == nil || *a != want {
		t.Errorf("recorded %+v, want %+v", a, want)
	}
}

// TestAClientWithoutAName: the way of the call is recorded all the same.
func TestAClientWithoutAName(t *testing.T) {
	t.Parallel()
	h := clients(t, &mcp.Implementation{})[0]
	h.ok("workflow_start", object{"definition": questioned(), "execution_id": "r"})
	if a := records(t, h, "r")[0].Payload.Actor; a == nil || *a != (history.Actor{Via: "mcp"}) || a.String() != "mcp" {
		t.Errorf("recorded %+v", a)
	}
}
