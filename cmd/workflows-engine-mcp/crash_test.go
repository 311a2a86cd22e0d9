package main

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historysql"
)

type object = map[string]any

// step is one call of a host that follows a ticket through the lighthouse workflow.
type step struct {
	tool   string
	args   object
	status string
	node   string
}

func ticketSteps(t *testing.T, id string) []step {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "tickets.json"))
	if err != nil {
		t.Fatal(err)
	}
	key := func(attempt string) string { return id + ":" + attempt }
	return []step{
		{"workflow_start", object{
			"execution_id": id, "definition": json.RawMessage(text), "input": object{"ticket": "charged twice"}, "allow_existing_execution_id": true,
			"activity_execution_mode": "host_mediated",
		}, "awaiting_activity", "classify"},
		{"workflow_submit_activity", object{
			"execution_id": id, "node_id": "classify", "idempotency_key": key("classify#1.1"),
			"outcome": object{"ok": false, "error": "overloaded"},
		}, "awaiting_activity", "classify"},
		{"workflow_submit_activity", object{
			"execution_id": id, "node_id": "classify", "idempotency_key": key("classify#1.2"),
			"outcome": object{"ok": true, "result": object{"intent": "unclear", "confidence": 0.3, "log": []any{"classified"}}},
		}, "interrupted", "review"},
		{"workflow_resume", object{
			"execution_id": id, "interrupt_id": key("review#1"), "resume_payload": object{"intent": "refund"},
		}, "awaiting_activity", "open_ticket"},
		{"workflow_submit_activity", object{
			"execution_id": id, "node_id": "open_ticket", "idempotency_key": key("open_ticket#1.1"),
			"outcome": object{"ok": true, "result": object{"id": "T-1", "log": []any{"opened"}}},
		}, "completed", ""},
	}
}

func answerOf(t *testing.T, res *mcp.CallToolResult) object {
	t.Helper()
	content, ok := res.StructuredContent.(map[string]any)
	if !ok {
		t.Fatalf("structured content is %T", res.StructuredContent)
	}
	return content
}

// TestKilledBetweenCalls kills the server after every answer. The run completes; nothing is lost or repeated.
func TestKilledBetweenCalls(t *testing.T) {
	t.Parallel()
	db := database(t)
	var last object
	for _, s := range ticketSteps(t, "k") {
		cmd := command(t, "--store-path", db)
		session := client(t, cmd)
		res, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: s.tool, Arguments: s.args})
		if err != nil {
			t.Fatalf("%s: %v", s.tool, err)
		}
		last = answerOf(t, res)
		if node, _ := last["node_id"].(string); last["status"] != s.status || node != s.node {
			t.Fatalf("%s: %v; want %s at %q", s.tool, last, s.status, s.node)
		}
		cmd.Process.Kill()
		session.Close() // reports the kill
	}
	checkTicketRun(t, db, "k", last)
}

// TestKilledInFlight kills the server at different moments during a call, and repeats the call until it has an answer. A call
// that took effect before the kill does not take effect twice.
func TestKilledInFlight(t *testing.T) {
	t.Parallel()
	db := database(t)
	var last object
	for _, s := range ticketSteps(t, "f") {
		for try := 0; ; try++ {
			if try > 20 {
				t.Fatalf("%s: no answer", s.tool)
			}
			cmd := command(t, "--store-path", db)
			session := client(t, cmd)
			after := time.Duration(try*try) * 2 * time.Millisecond
			if try == 20 {
				after = patience // what a call takes depends on the machine
			}
			kill := time.AfterFunc(after, func() { cmd.Process.Kill() })
			res, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: s.tool, Arguments: s.args})
			kill.Stop()
			cmd.Process.Kill()
			session.Close() // reports the kill
			if err != nil {
				continue
			}
			last = answerOf(t, res)
			if res.IsError {
				t.Fatalf("%s: %v", s.tool, last)
			}
			break
		}
		if last["status"] != s.status {
			t.Fatalf("%s: %v; want %s", s.tool, last, s.status)
		}
	}
	checkTicketRun(t, db, "f", last)
}

func status(t *testing.T, db, id string) object {
	t.Helper()
	session := client(t, command(t, "--store-path", db))
	defer session.Close()
	res, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "workflow_status", Arguments: object{"execution_id": id}})
	if err != nil {
		t.Fatal(err)
	}
	return answerOf(t, res)
}

// checkTicketRun reads the history without an engine: it has every fact once, and no gaps.
func checkTicketRun(t *testing.T, db, id string, last object) {
	t.Helper()
	store, err := historysql.Open(context.Background(), db, historysql.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	checkTicketIn(t, store, id, last)
}

func checkTicketIn(t *testing.T, store history.Store, id string, last object) {
	t.Helper()
	result, _ := json.Marshal(last["result"])
	if want := `{"id":"T-1","intent":"refund","log":["classified","opened"]}`; string(result) != want {
		t.Errorf("%s: result %s, want %s", id, result, want)
	}
	records, err := store.Read(context.Background(), id, 1, 0)
	if err != nil {
		t.Fatal(err)
	}
	counts := map[string]int{}
	for i, r := range records {
		if r.Seq != int64(i+1) {
			t.Errorf("%s: record %d has seq %d", id, i+1, r.Seq)
		}
		switch r.Name {
		case history.ExecutionStarted, history.ExecutionCompleted, history.ExecutionFailed, history.InterruptRaised, history.InterruptResumed:
			counts[string(r.Name)]++
		case history.ActivityRequested, history.ActivityCompleted, history.ActivityFailed, history.ScheduleNode, history.CompleteNode:
			counts[string(r.Name)+" "+r.Payload.NodeID]++
		}
	}
	for what, want := range map[string]int{
		"ExecutionStarted": 1, "ExecutionCompleted": 1, "ExecutionFailed": 0, "InterruptRaised": 1, "InterruptResumed": 1,
		"ActivityRequested classify": 2, "ActivityFailed classify": 1, "ActivityCompleted classify": 1,
		"ActivityRequested open_ticket": 1, "ActivityCompleted open_ticket": 1,
		"ScheduleNode classify": 1, "CompleteNode classify": 1, "ScheduleNode open_ticket": 1, "CompleteNode open_ticket": 1,
	} {
		if counts[what] != want {
			t.Errorf("%s: %d times %s, want %d", id, counts[what], what, want)
		}
	}
}

// TestTwoServersOneDatabase: each of two hosts starts a server of its own; one server continues the run that the other started.
func TestTwoServersOneDatabase(t *testing.T) {
	t.Parallel()
	db := database(t)
	one, two := client(t, command(t, "--store-path", db)), client(t, command(t, "--store-path", db))
	defer one.Close()
	defer two.Close()
	for i, s := range ticketSteps(t, "two") {
		session := one
		if i%2 == 1 {
			session = two
		}
		res, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: s.tool, Arguments: s.args})
		if err != nil {
			t.Fatalf("%s: %v", s.tool, err)
		}
		if got := answerOf(t, res); got["status"] != s.status {
			t.Fatalf("%s: %v", s.tool, got)
		}
	}
}
