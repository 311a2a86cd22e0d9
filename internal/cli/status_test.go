package cli

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/graph/view"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/config"
	"github.com/workflows-engine/workflows-engine/internal/runjson"
)

var noon = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

// sampleRun is a run with the given status that waits for the given entries.
func sampleRun(status machine.Status, pending ...view.Pending) *view.Run {
	return &view.Run{
		ExecutionID: "order-17", Status: status, DefinitionName: "order", DefinitionVersion: "1.2.0",
		DefinitionHash: strings.Repeat("ab", 32), Mode: machine.InProcess, CurrentNodeID: "review", Seq: 12,
		State: map[string]any{"a": 1.0}, Pending: pending, NodeVisits: 4, MaxVisits: 10_000,
		CreatedAt: noon.Add(-3 * time.Hour), UpdatedAt: noon.Add(-90 * time.Second),
	}
}

func samplePending() []view.Pending {
	return []view.Pending{
		{
			ExecutionID: "order-17", ID: "order-17:review#1", NodeType: "interrupt", ResumeSchema: map[string]any{
				"type": "object",
				"properties": map[string]any{
					"approve": map[string]any{"type": "boolean", "description": "true ships"},
					"carrier": map[string]any{"enum": []any{"mail", "bike"}},
				},
				"required": []any{"approve"},
			},
			WaitInfo: machine.WaitInfo{Kind: machine.WaitInterrupt, NodeID: "review", Prompt: "Ship it?"},
		},
		{WaitInfo: machine.WaitInfo{Kind: machine.WaitSignal, NodeID: "hold", SignalName: "paid in full"}, ExecutionID: "order-17"},
		{
			ExecutionID: "order-17", NodeType: "tool_call", OutputSchema: map[string]any{"required": []any{"box"}},
			WaitInfo: machine.WaitInfo{
				Kind: machine.WaitActivity, NodeID: "pack", Host: true, Attempt: 2,
				Span: &history.ParallelSpan{ParallelNodeID: "fork", BranchName: "left"}, Deadline: noon.Add(time.Minute),
				LastError: "no box", LastCode: "NO_BOX",
			},
		},
		{WaitInfo: machine.WaitInfo{Kind: machine.WaitTimer, NodeID: "nap", Due: noon.Add(time.Hour)}, ExecutionID: "order-17"},
		{WaitInfo: machine.WaitInfo{Kind: machine.WaitBackoff, NodeID: "fetch", Attempt: 3, Due: noon.Add(time.Minute)}, ExecutionID: "order-17"},
		{WaitInfo: machine.WaitInfo{Kind: machine.WaitChild, NodeID: "sub", ChildExecutionID: "order-17:sub:sub"}, ExecutionID: "order-17"},
		{WaitInfo: machine.WaitInfo{Kind: machine.WaitDelegate, NodeID: "code", AgentID: "coder", Protocol: "a2a"}, ExecutionID: "order-17"},
		{WaitInfo: machine.WaitInfo{Kind: machine.WaitActivity, NodeID: "weigh"}, ExecutionID: "order-17"},
	}
}

func sampleSession() *session {
	return &session{
		view:   unseen{},
		config: &config.Config{Store: config.SQLite, StorePath: "/data/my runs.db"},
		repeat: []string{"--store-path", "/data/my runs.db"},
	}
}

// TestADeadlineThatHasPassed: nobody may be there who notices.
func TestADeadlineThatHasPassed(t *testing.T) {
	t.Parallel()
	for want, p := range map[string]view.Pending{
		"until 2026-05-01 12:00:01Z at the latest":                                                  {WaitInfo: machine.WaitInfo{Kind: machine.WaitActivity, Deadline: noon.Add(time.Second)}},
		"until 2026-05-01 12:00:02Z at the latest; then a server, worker or recover times it out":   {WaitInfo: machine.WaitInfo{Kind: machine.WaitSignal, Deadline: noon.Add(2 * time.Second)}},
		"its deadline was 2026-05-01 12:00:00Z; the timeout restarts when a process claims the run": {WaitInfo: machine.WaitInfo{Kind: machine.WaitActivity, Deadline: noon}},
		"its deadline was 2026-05-01 11:59:59Z; the next server, worker or recover times it out":    {WaitInfo: machine.WaitInfo{Kind: machine.WaitInterrupt, Deadline: noon.Add(-time.Second)}},
		"its deadline was 2026-05-01 11:59:58Z; the next server, worker or recover times it out":    {WaitInfo: machine.WaitInfo{Kind: machine.WaitActivity, Host: true, Deadline: noon.Add(-2 * time.Second)}},
		"its deadline was 2026-05-01 11:59:57Z; the next server, worker or recover times it out":    {WaitInfo: machine.WaitInfo{Kind: machine.WaitDelegate, Deadline: noon.Add(-3 * time.Second)}, ExternalTaskID: "t"},
	} {
		if got := deadlineText(&p, noon); got != want {
			t.Errorf("%+v: %s", p, got)
		}
	}
}

func TestWriteStatus(t *testing.T) {
	t.Parallel()
	failed := sampleRun(machine.Failed)
	failed.Error, failed.ErrorCode, failed.ErrorNodeID, failed.ParentExecutionID = "no answer", "TIMEOUT", "fetch", "order-1"
	completed := sampleRun(machine.Completed)
	completed.Result = map[string]any{"ok": true}
	cancelled := sampleRun(machine.Cancelled)
	cancelled.Reason = "ordered twice"
	full := sampleRun(machine.AwaitingSignal)
	full.Warnings = []view.Warning{{
		Code: problem.RecordLimitExceeded, Used: 810_000, Limit: 1_000_000, Message: "the run has used 81 % of its limit", Hint: "Let it end.",
	}}
	for name, run := range map[string]*view.Run{
		"status_waiting": sampleRun(machine.Interrupted, samplePending()...), "status_failed": failed, "status_full": full,
		"status_completed": completed, "status_cancelled": cancelled,
	} {
		var out bytes.Buffer
		if err := writeStatus(&out, run, sampleSession(), noon, standing{phase: string(runjson.Phase(run.Status))}); err != nil {
			t.Fatal(err)
		}
		requireGolden(t, name, out.String())
	}
}

// Each way of pausing must name the exact command that continues.
func TestPaused(t *testing.T) {
	t.Parallel()
	pending := samplePending()
	for name, run := range map[string]*view.Run{
		"paused_interrupt": sampleRun(machine.Interrupted, pending[0]),
		"paused_signal":    sampleRun(machine.AwaitingSignal, pending[1]),
		"paused_host":      sampleRun(machine.AwaitingActivity, pending[2]),
		"paused_timer":     sampleRun(machine.AwaitingTimer, pending[3]),
	} {
		a, stdout, stderr := newTestApp(t, strings.NewReader(""), noon)
		if got := status(a.drive(sampleSession(), driveOptions{}).paused(t.Context(), run)); got != exitPaused {
			t.Errorf("%s: exit status %d", name, got)
		}
		if stdout.Len() > 0 {
			t.Errorf("%s: stdout has %q", name, stdout)
		}
		requireGolden(t, name, stderr.String())
	}
}

// TestStatusNamesTheProcess: an attempt that a process performs is told from one that nobody performs.
func TestStatusNamesTheProcess(t *testing.T) {
	t.Parallel()
	run := &view.Run{ExecutionID: "r", Status: machine.Running, Pending: []view.Pending{{WaitInfo: machine.WaitInfo{Kind: machine.WaitActivity, NodeID: "pay", Attempt: 2}, ExecutionID: "r"}}}
	for want, owner := range map[string]history.Owner{
		"process host-1 performs it; its lease ends in 20s unless it renews it":                                                    {Process: "host-1", Left: 20 * time.Second},
		"no process performs it: start a server or worker, or run\n    workflows-engine recover r --store-path '/data/my runs.db'": {Process: "host-1", Left: -time.Second},
	} {
		var out bytes.Buffer
		if err := writeStatus(&out, run, sampleSession(), noon, standing{owners: map[string]history.Owner{"r": owner}}); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(out.String(), "pay waits for the outcome of attempt 2\n  "+want) {
			t.Errorf("want %s in\n%s", want, &out)
		}
	}
}
