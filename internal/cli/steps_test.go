package cli

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/view"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historymem"
)

// journalRecords are those of an attempt that records steps, asks twice, of which nobody answers the second time, and rests.
func journalRecords() []history.Record {
	type object = map[string]any
	of := func(n float64, key, kind string, members object) history.Payload {
		step := object{"key": key, "kind": kind, "n": n}
		for name, v := range members {
			step[name] = v
		}
		return history.Payload{NodeID: "crawl", Visit: 1, NodeType: "step", Attempt: 1, AgentStep: step}
	}
	asked := of(3, "q1", "question", object{"shown": "17 pages", "schema": object{"required": []any{"ok"}}})
	asked.Prompt = "Is this the right site?"
	answered := of(4, "q1", "answer", nil)
	answered.SignalPayload = object{"ok": true}
	askedAgain := of(6, "q2", "question", object{"expires": "2026-05-01T13:00:00.000Z", "otherwise": object{"ok": false}})
	askedAgain.Prompt = "Go on?"
	expired := of(7, "q2", "answer", object{"expired": true})
	expired.SignalPayload = object{"ok": false}
	rest := of(9, "r1", "rest", nil)
	rest.DueAt = time.Date(2026, 5, 1, 12, 30, 0, 0, time.UTC)
	return recordsOf(
		event(history.ExecutionStarted, history.Payload{WorkflowName: "crawl", WorkflowVersion: "1.0.0"}),
		event(history.NodeScheduled, history.Payload{NodeID: "crawl", Visit: 1}),
		event(history.ActivityRequested, history.Payload{NodeID: "crawl", Visit: 1, NodeType: "step", Attempt: 1}),
		event(history.ActivityRequested, of(1, "/1", "fetched", object{"bytes": 14.0, "totals": object{"pages": 1.0}})),
		event(history.ActivityRequested, of(2, "/2", "fetched", object{"text": strings.Repeat("long ", 40)})),
		event(history.InterruptRaised, asked),
		event(history.InterruptResumed, answered),
		event(history.ActivityRequested, of(5, "w5", "woken", nil)),
		event(history.InterruptRaised, askedAgain),
		event(history.InterruptResumed, expired),
		event(history.ActivityRequested, of(8, "w8", "woken", nil)),
		event(history.ActivityRequested, rest),
		event(history.ActivityRequested, of(10, "w10", "woken", nil)),
		event(history.ActivityCompleted, history.Payload{NodeID: "crawl", Visit: 1, Attempt: 1, Result: history.Some(object{"bytes": 42.0})}),
	)
}

// TestStepsAreShown: in the table of records and under their attempt, unless they are left out.
func TestStepsAreShown(t *testing.T) {
	t.Parallel()
	all := journalRecords()
	tally := attemptsOf(nil, all)
	var out bytes.Buffer
	for _, c := range []struct {
		records []history.Record
		width   int
		steps   bool
	}{{all, detailWidth, true}, {historyOptions{noSteps: true}.shown(all), detailWidth, false}, {all, wholeWidth, true}} {
		if err := writeTable(&out, append(recordHeading(), recordRows(c.records, tally, &stateTrail{}, c.width)...)); err != nil {
			t.Fatal(err)
		}
		out.WriteByte('\n')
		if err := tally.write(&out, tally.from(1, ""), c.steps, 0); err != nil {
			t.Fatal(err)
		}
		out.WriteByte('\n')
	}
	requireGolden(t, "steps", out.String())
}

// TestStatusShowsSteps: how many there are and what they come to, what an executor asks with what is shown beside it, and until when it rests.
func TestStatusShowsSteps(t *testing.T) {
	t.Parallel()
	totals := map[string]any{"pages": 812.0, "bytes": 104_512.0}
	asks := view.Pending{
		ExecutionID: "order-17", ID: "order-17:crawl#1.1/q1", NodeType: "step", Steps: 814, Totals: totals, ResumeSchema: map[string]any{"type": "object", "required": []any{"ok"}, "properties": map[string]any{"ok": map[string]any{"type": "boolean"}}},
		WaitInfo: machine.WaitInfo{
			Kind: machine.WaitInterrupt, NodeID: "crawl", Attempt: 1, Prompt: "Is this the right site?",
			Show: map[string]any{"first": "/1", "title": "Tides"},
		},
	}
	rests := view.Pending{WaitInfo: machine.WaitInfo{Kind: machine.WaitTimer, NodeID: "crawl", Attempt: 1, Due: noon.Add(time.Hour)}, ExecutionID: "order-17", NodeType: "step", Steps: 1}
	works := view.Pending{
		ExecutionID: "order-17", NodeType: "step", Steps: 813, Totals: totals,
		WaitInfo: machine.WaitInfo{Kind: machine.WaitActivity, NodeID: "crawl", Attempt: 1, Deadline: noon.Add(-time.Minute)},
	}
	var out bytes.Buffer
	if err := writeStatus(&out, sampleRun(machine.Interrupted, asks, rests, works), sampleSession(), noon, standing{phase: string(history.PhaseInterrupted)}); err != nil {
		t.Fatal(err)
	}
	requireGolden(t, "status_steps", out.String())
}

// TestLiveSteps: lines say when an attempt asks and rests, not each step.
func TestLiveSteps(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	store := historymem.New()
	defer store.Close()
	view := newLiveView(&out, palette{}, store)
	view.runs["r1"] = &liveRun{nodes: map[string]nodeFacts{"crawl": {nodeType: "step"}}, width: len("crawl")}
	view.record(graph.RecordEvent{ExecutionID: "r1", Records: journalRecords()})
	view.flush()
	requireGolden(t, "live_steps", out.String())
}
