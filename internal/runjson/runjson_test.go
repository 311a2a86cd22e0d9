package runjson_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/graph/view"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
	"github.com/workflows-engine/workflows-engine/internal/runjson"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// requireGolden compares a form with testdata/<name>.json.
func requireGolden(t *testing.T, name string, form jsonvalue.Ordered) {
	t.Helper()
	var text bytes.Buffer
	if err := json.Indent(&text, form.Append(nil), "", "  "); err != nil {
		t.Fatal(err)
	}
	text.WriteByte('\n')
	path := filepath.Join("testdata", name+".json")
	if *update {
		if err := os.WriteFile(path, text.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if text.String() != string(want) {
		t.Errorf("%s differs (go test ./internal/runjson -update rewrites it)\n--- got\n%s--- want\n%s", path, text.String(), want)
	}
}

var noon = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

// run is a run with a status that waits for some entries.
func run(status machine.Status, pending ...view.Pending) *view.Run {
	return &view.Run{
		ExecutionID: "order-17", Status: status, DefinitionName: "order", DefinitionVersion: "1.2.0",
		DefinitionHash: strings.Repeat("ab", 32), Mode: machine.InProcess, CurrentNodeID: "review", Seq: 12,
		State: map[string]any{"a": 1.0}, Pending: pending, NodeVisits: 4, MaxVisits: 10_000,
		CreatedAt: noon.Add(-3 * time.Hour), UpdatedAt: noon.Add(-90 * time.Second), Now: noon.Add(-500 * time.Millisecond),
		Title: "Order 17", Labels: map[string]string{"customer": "kim"},
	}
}

// ended is a run that has ended.
func ended(status machine.Status) *view.Run {
	r := run(status)
	r.FinalState, r.State = r.State, nil
	return r
}

// everyKind is an entry of each kind, the first that of a subworkflow.
func everyKind() []view.Pending {
	span := &history.ParallelSpan{ParallelNodeID: "fork", JoinTargetID: "join", BranchName: "left", BranchEntryNodeID: "pack"}
	list := []view.Pending{
		{WaitInfo: machine.WaitInfo{Kind: machine.WaitSignal, NodeID: "hold", SignalName: "paid in full"}, ExecutionID: "order-17:sub:sub", ID: "order-17:sub:sub:hold#1"},
		{
			ID: "order-17:review#1", NodeType: "interrupt", ResumeSchema: map[string]any{"type": "object"},
			WaitInfo: machine.WaitInfo{Kind: machine.WaitInterrupt, NodeID: "review", Prompt: "Ship it?", BlockDeadline: noon.Add(time.Hour)},
		},
		{
			NodeType: "tool_call", IdempotencyKey: "order-17:pack#1.2", Config: map[string]any{"tool": "box", "output_schema": map[string]any{}}, OutputSchema: map[string]any{"required": []any{"box"}},
			WaitInfo: machine.WaitInfo{
				Kind: machine.WaitActivity, NodeID: "pack", Host: true, Attempt: 2, MaxAttempts: 3, Span: span, Timeout: time.Minute,
				Deadline: noon.Add(time.Minute), LastError: "no box", LastCode: "NO_BOX", State: map[string]any{"a": 2.0},
			},
		},
		{WaitInfo: machine.WaitInfo{Kind: machine.WaitTimer, NodeID: "nap", Due: noon.Add(time.Hour)}, ID: "order-17:nap#1", NodeType: "wait"},
		{WaitInfo: machine.WaitInfo{Kind: machine.WaitBackoff, NodeID: "fetch", Attempt: 3, MaxAttempts: 5, Due: noon.Add(time.Minute)}, ID: "order-17:fetch#1", NodeType: "step"},
		{WaitInfo: machine.WaitInfo{Kind: machine.WaitChild, NodeID: "sub", ChildExecutionID: "order-17:sub:sub", WorkflowRef: "later"}, ID: "order-17:sub#1", NodeType: "subworkflow"},
		{
			NodeType: "agent_delegate", ExternalTaskID: "t-1", IdempotencyKey: "order-17:code#1.1",
			WaitInfo: machine.WaitInfo{
				Kind: machine.WaitDelegate, NodeID: "code", AgentID: "coder", Protocol: "a2a", CorrelationID: "order-17:delegate:code",
				DelegateInput: map[string]any{"task": "x"},
			},
		},
		{WaitInfo: machine.WaitInfo{Kind: machine.WaitActivity, NodeID: "weigh", Queued: true}, NodeType: "step", Limit: &history.LimitUse{
			SharedLimit: history.SharedLimit{Class: "step:h", Concurrent: 5, PerSecond: 0.5}, Shares: []history.Share{{Process: "p", Slots: 4}, {Process: "q", Slots: 1}},
		}, Config: map[string]any{"handler": "h"}, IdempotencyKey: "order-17:weigh#1.1"},
	}
	for i := range list {
		if list[i].ExecutionID == "" {
			list[i].ExecutionID = "order-17"
		}
		if list[i].State == nil {
			list[i].State = map[string]any{"a": 1.0}
		}
	}
	return list
}

// TestForms shows a run in every form and every way to stand.
func TestForms(t *testing.T) {
	t.Parallel()
	waiting := run(machine.AwaitingActivity, everyKind()...)
	waiting.ChildExecutionID = "order-17:sub:sub"
	waiting.ForkedFrom = history.ForkOrigin{ExecutionID: "order-16", Seq: 9}
	waiting.Lacks = &view.Lack{ExecutionID: "order-17", NodeID: "weigh", Missing: `step handler "h"`, Setting: "HANDLERS"}
	waiting.Warnings = []view.Warning{{
		Code: problem.RecordLimitExceeded, Used: 810_000, Limit: 1_000_000, Message: "the run has used 81 % of its limit", Hint: "Let it end.",
	}}
	failed := ended(machine.Failed)
	failed.Error, failed.ErrorCode, failed.ErrorNodeID = "no answer", "TIMEOUT", "fetch"
	cancelled := ended(machine.Cancelled)
	cancelled.Reason, cancelled.Repeated = "ordered twice", true
	for name, r := range map[string]*view.Run{
		"waiting": waiting, "sleeping": run(machine.AwaitingTimer, everyKind()[3]), "completed": ended(machine.Completed),
		"failed": failed, "cancelled": cancelled,
	} {
		requireGolden(t, name+"_driven", runjson.Driven(r))
		requireGolden(t, name+"_status", runjson.Status(r, nil))
		requireGolden(t, name+"_full", runjson.Full(r, nil))
	}
	pending := &waiting.Pending[2]
	requireGolden(t, "pending_brief", runjson.Brief(waiting, pending))
}

// TestALargeInputStandsOnce: what is at the top of the answer is not repeated in the entry.
func TestALargeInputStandsOnce(t *testing.T) {
	t.Parallel()
	r := run(machine.AwaitingActivity, view.Pending{
		ExecutionID: "order-17",
		WaitInfo:    machine.WaitInfo{Kind: machine.WaitDelegate, NodeID: "code", DelegateInput: map[string]any{"task": strings.Repeat("x", 5000)}},
	})
	if n := bytes.Count(runjson.Full(r, nil).Append(nil), []byte(`"delegate_input"`)); n != 1 {
		t.Errorf("the input stands %d times", n)
	}
}

func TestRows(t *testing.T) {
	t.Parallel()
	x := history.Execution{
		ID: "order-17", Phase: history.PhaseAwaitingSignal, DefinitionName: "order", DefinitionVersion: "1.2.0", CurrentNodeID: "hold",
		LastError: "no box", SignalName: "paid", Parent: "order-1", CreatedAt: noon, UpdatedAt: noon.Add(time.Second),
	}
	requireGolden(t, "row", runjson.Row(&x))
	requireGolden(t, "row_full", runjson.FullRow(&x))
	requireGolden(t, "row_unknown", runjson.FullRow(&history.Execution{ID: "x", Phase: history.PhaseRunning}))
}

// TestWaitsFor: a line of a list says in a few words what a run waits for, first what its phase speaks of.
func TestWaitsFor(t *testing.T) {
	t.Parallel()
	due := time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)
	signal := history.Wait{Kind: history.WaitSignal, NodeID: "hold", SignalName: "paid"}
	for want, x := range map[string]history.Execution{
		"":                            {Phase: history.PhaseCompleted},
		"asks: Refund this customer?": {Phase: history.PhaseInterrupted, Waits: []history.Wait{{Kind: history.WaitInterrupt, NodeID: "ask", Prompt: "Refund\n this customer?"}}},
		"asks: at ask":                {Phase: history.PhaseInterrupted, Waits: []history.Wait{{Kind: history.WaitInterrupt, NodeID: "ask"}}},
		"signal paid":                 {Phase: history.PhaseAwaitingSignal, Waits: []history.Wait{signal}},
		"llm_call classify, and 1 more": {Phase: history.PhaseAwaitingActivity, Waits: []history.Wait{
			signal, {Kind: history.WaitActivity, NodeID: "classify", NodeType: "llm_call", Mode: "host_mediated"},
		}},
		"agent coder":                            {Phase: history.PhaseRunning, Waits: []history.Wait{{Kind: history.WaitActivity, NodeID: "d", NodeType: "agent_delegate", AgentID: "coder", Mode: "in_process"}}},
		"until 2027-01-01":                       {Phase: history.PhaseRunning, Waits: []history.Wait{{Kind: history.WaitTimer, NodeID: "nap", Due: due}}},
		"timer nap":                              {Phase: history.PhaseRunning, Waits: []history.Wait{{Kind: history.WaitTimer, NodeID: "nap"}}},
		"retry of fetch until 2027-01-01 00:01Z": {Phase: history.PhaseRunning, Waits: []history.Wait{{Kind: history.WaitBackoff, NodeID: "fetch", Due: due.Add(time.Minute)}}},
		"subworkflow sub":                        {Phase: history.PhaseRunning, Waits: []history.Wait{{Kind: history.WaitSubworkflow, NodeID: "sub"}}},
	} {
		if got := runjson.WaitsFor(&x); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// TestHintsHaveTheNamesOfTheGlossary: what a run lacks and the hints of its warnings name options as the reader knows them.
func TestHintsHaveTheNamesOfTheGlossary(t *testing.T) {
	t.Parallel()
	r := run(machine.AwaitingActivity)
	r.Lacks = &view.Lack{Setting: "Options.Webhooks"}
	r.Warnings = []view.Warning{{Code: problem.RecordLimitExceeded, Hint: "Raise Options.MaxRecords."}}
	text := string(runjson.Full(r, problem.Glossary{"Options.Webhooks": "--webhooks", "Options.MaxRecords": "--max-records"}).Append(nil))
	if !strings.Contains(text, `"setting":"--webhooks"`) || !strings.Contains(text, `"hint":"Raise --max-records."`) {
		t.Error(text)
	}
}
