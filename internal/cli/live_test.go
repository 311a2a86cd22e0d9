package cli

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/view"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historymem"
)

// recordsOf builds records a millisecond apart.
func recordsOf(list ...history.Record) []history.Record {
	at := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	for i := range list {
		list[i].Seq, list[i].CreatedAt = int64(i+1), at
		at = at.Add(time.Millisecond)
	}
	return list
}

func event(name history.Name, p history.Payload) history.Record {
	return history.Record{Kind: history.Event, Name: name, Payload: p}
}

func command(name history.Name, p history.Payload) history.Record {
	return history.Record{Kind: history.Command, Name: name, Payload: p}
}

// sampleRecords have every kind of record that the live view and the history table say something special about.
func sampleRecords() []history.Record {
	type P = history.Payload
	span := &history.ParallelSpan{ParallelNodeID: "gather", JoinTargetID: "end", BranchName: "web", BranchEntryNodeID: "search"}
	retryAt := time.Date(2026, 5, 1, 12, 0, 2, 7_000_000, time.UTC)
	due := time.Date(2026, 5, 1, 12, 1, 0, 0, time.UTC)
	return recordsOf(
		event(history.ExecutionStarted, P{WorkflowName: "sample", WorkflowVersion: "1.0.0", InputKeys: []string{"a"}}),
		command(history.ScheduleNode, P{NodeID: "begin"}),
		event(history.NodeScheduled, P{NodeID: "begin", Visit: 1}),
		command(history.CompleteNode, P{NodeID: "begin", Output: map[string]any{}}),
		event(history.StateUpdated, P{NodeID: "begin", State: map[string]any{"a": 1.0}}),
		event(history.NodeScheduled, P{NodeID: "classify", Visit: 1}),
		event(history.ActivityRequested, P{NodeID: "classify", Visit: 1, NodeType: "llm_call", Attempt: 1}),
		event(history.ActivityFailed, P{NodeID: "classify", Visit: 1, Attempt: 1, Code: "TIMEOUT", Error: "no answer", WillRetry: true, RetryAt: retryAt}),
		event(history.ActivityRequested, P{NodeID: "classify", Visit: 1, NodeType: "llm_call", Attempt: 2}),
		event(history.ActivityCompleted, P{NodeID: "classify", Visit: 1, Result: history.Some(map[string]any{"intent": "billing", "text": strings.Repeat("long ", 40)}),
			Usage: map[string]any{"model": "small-2026", "prompt_tokens": 120.0, "completion_tokens": 14.0}}),
		command(history.CompleteNode, P{NodeID: "classify", Output: map[string]any{"intent": "billing"}}),
		event(history.ParallelForked, P{NodeID: "gather", Join: "n_of_m", BranchNames: []string{"web", "papers"}}),
		event(history.ActivityRequested, P{NodeID: "search", Visit: 1, NodeType: "tool_call", Attempt: 1, Span: span}),
		event(history.ParallelBranchCancelled, P{NodeID: "gather", BranchName: "papers"}),
		event(history.ParallelJoined, P{NodeID: "gather", Join: "n_of_m", Winners: []string{"web"}}),
		event(history.NodeScheduled, P{NodeID: "ask", Visit: 1}),
		event(history.InterruptRaised, P{NodeID: "ask", Visit: 1, Prompt: "Is it so?"}),
		event(history.InterruptResumed, P{NodeID: "ask", Visit: 1}),
		command(history.CompleteNode, P{NodeID: "ask", Visit: 1, Output: map[string]any{"yes": true}}),
		event(history.SignalWaitStarted, P{NodeID: "hold", SignalName: "go"}),
		event(history.SignalReceived, P{NodeID: "hold", SignalName: "go", SignalPayload: map[string]any{"by": "kim"}}),
		event(history.TimerStarted, P{NodeID: "nap", TimerKind: "duration", DueAt: due}),
		event(history.TimerStarted, P{NodeID: "nap", TimerKind: "until", DueAt: due}),
		event(history.SubworkflowStarted, P{NodeID: "sub", WorkflowRef: "urn:x:child", ChildExecutionID: "r1:sub:sub"}),
		event(history.ActivityFailed, P{NodeID: "search", Attempt: 3, Error: "gone"}),
		command(history.FailNode, P{NodeID: "search", Reason: "activity_failed", Message: "gone"}),
		command(history.FailNode, P{NodeID: "pick", Reason: "switch_routing_failed", Message: "no case matches and there is no default"}),
		event(history.ExecutionFailed, P{Error: "no case matches"}),
		command(history.CancelExecution, P{Reason: "never mind"}),
	)
}

func TestLiveView(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	store := historymem.New()
	defer store.Close()
	view := newLiveView(&out, palette{}, store)
	view.runs["r1"] = &liveRun{
		nodes: map[string]nodeFacts{
			"begin": {nodeType: "start"}, "classify": {nodeType: "llm_call"}, "gather": {nodeType: "parallel"}, "search": {nodeType: "tool_call"},
			"ask": {nodeType: "interrupt"}, "hold": {nodeType: "wait"}, "nap": {nodeType: "wait"}, "pick": {nodeType: "switch"},
		},
		width: len("classify"),
	}
	view.record(graph.RecordEvent{ExecutionID: "r1", Records: sampleRecords()})
	view.flush()
	requireGolden(t, "live", out.String())
}

// TestLiveRepair: an attempt that is sent back is told apart from one that is tried again.
func TestLiveRepair(t *testing.T) {
	t.Parallel()
	type P = history.Payload
	var out bytes.Buffer
	store := historymem.New()
	defer store.Close()
	view := newLiveView(&out, palette{}, store)
	view.runs["r1"] = &liveRun{nodes: map[string]nodeFacts{"ask": {nodeType: "llm_call"}}, width: len("ask")}
	view.record(graph.RecordEvent{ExecutionID: "r1", Records: recordsOf(
		event(history.ActivityRequested, P{NodeID: "ask", NodeType: "llm_call", Attempt: 1}),
		event(history.ActivityFailed, P{NodeID: "ask", Attempt: 1, Code: "WRONG", Error: "no", WillRetry: true, Repair: map[string]any{"a": 1.0}}),
		event(history.ActivityRequested, P{NodeID: "ask", NodeType: "llm_call", Attempt: 2}),
		event(history.ActivityFailed, P{NodeID: "ask", Attempt: 2, Code: "WRONG", Error: "no", WillRetry: true}),
	)})
	view.flush()
	if first, second, _ := strings.Cut(out.String(), "\n"); !strings.HasSuffix(first, "WRONG no, sent back for repair") || !strings.HasSuffix(strings.TrimSpace(second), "WRONG no, retried") {
		t.Errorf("got\n%s", out.String())
	}
}

// TestLiveViewForgetsEndedRuns: a worker sees any number of runs.
func TestLiveViewForgetsEndedRuns(t *testing.T) {
	t.Parallel()
	store := historymem.New()
	defer store.Close()
	view := newLiveView(io.Discard, palette{}, store)
	for _, id := range []string{"r1", "r2"} {
		records := recordsOf(event(history.ExecutionStarted, history.Payload{WorkflowName: "w"}), event(history.NodeScheduled, history.Payload{NodeID: "begin"}))
		if id == "r1" {
			records = append(records, recordsOf(event(history.ExecutionCompleted, history.Payload{}))...)
		}
		view.record(graph.RecordEvent{ExecutionID: id, Records: records})
	}
	view.flush()
	if len(view.runs) != 1 || view.tree.Run("r1") != nil || view.tree.Run("r2") == nil {
		t.Errorf("remembers %d runs", len(view.runs))
	}
}

// TestLiveViewHolds: between settle and follow nothing is printed, so that what a command says itself stands in one place.
func TestLiveViewHolds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		store := historymem.New()
		defer store.Close()
		seen := newLiveView(&out, palette{}, store)
		seen.runs["r1"] = &liveRun{nodes: map[string]nodeFacts{"begin": {nodeType: "start"}, "end": {nodeType: "end"}}, width: 5}
		ended := func(seq int64, node string) {
			r := recordsOf(event(history.ActivityRequested, history.Payload{NodeID: node, NodeType: "step", Attempt: 1}), event(history.ActivityFailed, history.Payload{NodeID: node, Code: "GONE", Error: "gone"}))
			for i := range r {
				r[i].Seq = seq + int64(i)
			}
			seen.record(graph.RecordEvent{ExecutionID: "r1", Records: r})
		}
		seen.settle(nil)
		ended(1, "begin")
		synctest.Wait()
		fmt.Fprintln(&out, "said in between")
		if got := out.String(); got != "said in between\n" {
			t.Fatalf("printed\n%s", got)
		}
		seen.follow()
		seen.flush()
		seen.settle(&view.Run{ExecutionID: "r1", Seq: 2})
		ended(3, "end")
		synctest.Wait()
		fmt.Fprintln(&out, "at last")
		seen.close()
		lines := strings.Split(strings.TrimSpace(out.String()), "\n")
		for i, want := range []string{"said in between", "begin", "at last", "end"} {
			if len(lines) != 4 || !strings.Contains(lines[i], want) {
				t.Fatalf("printed\n%s", out.String())
			}
		}
	})
}
