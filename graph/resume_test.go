package graph_test

import (
	"strings"
	"testing"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historymem"
)

func TestResume(t *testing.T) {
	t.Parallel()
	r, _ := host(t, graph.Options{})
	d := workflow(t, "ask", []string{startNode(), interrupt("i"), tool("a"), endNode()}, "s i", "i a", "a e")
	run := start(t, r, "r", d, object{"in": 1})
	wantStatus(t, run, machine.Interrupted)
	p := run.Pending[0]
	if p.Kind != machine.WaitInterrupt || p.ID != "r:i#1" || p.Prompt != "well?" || p.ResumeSchema["type"] != "object" || p.NodeType != "interrupt" {
		t.Errorf("pending %+v", p)
	}
	run, err := r.Resume(t.Context(), graph.ResumeRequest{ExecutionID: "r", InterruptID: p.ID, Payload: object{"ok": true}})
	if err != nil {
		t.Fatal(err)
	}
	// W-09: the phase does not stay interrupted; the mode need not be repeated.
	wantStatus(t, run, machine.AwaitingActivity)
	page, err := r.List(t.Context(), history.ListQuery{Phase: history.PhaseAwaitingActivity})
	if err != nil || len(page.Executions) != 1 {
		t.Errorf("list %+v, %v", page, err)
	}
	if !sameJSON(run.State, object{"in": 1, "ok": true}) {
		t.Errorf("state %v", run.State)
	}
}

// TestW03_ARefusedResumeChangesNothing also covers W-04 (unknown run) and W-04b (invalid payload).
func TestW03_ARefusedResumeChangesNothing(t *testing.T) {
	t.Parallel()
	r, store := host(t, graph.Options{})
	d := workflow(t, "ask", []string{startNode(), interrupt("i"), tool("a"), endNode()}, "s i", "i a", "a e")
	start(t, r, "open", d, nil)
	start(t, r, "awaits", d, nil)
	if _, err := r.Resume(t.Context(), graph.ResumeRequest{ExecutionID: "awaits", Payload: object{"ok": true}}); err != nil {
		t.Fatal(err)
	}
	start(t, r, "done", d, nil)
	if _, err := r.Resume(t.Context(), graph.ResumeRequest{ExecutionID: "done", Payload: object{"ok": true}}); err != nil {
		t.Fatal(err)
	}
	submit(t, r, "done", "a", nil)
	for name, c := range map[string]struct {
		id, interrupt string
		payload       map[string]any
		text          string
	}{
		"unknown run":         {"ghost", "", object{"ok": true}, "cannot resume"},
		"awaits an activity":  {"awaits", "", object{"ok": true}, "cannot resume"},
		"completed":           {"done", "", object{"ok": true}, "cannot resume"},
		"member missing":      {"open", "", object{}, "ok"},
		"no payload":          {"open", "", nil, "ok"},
		"member of a type":    {"open", "", object{"ok": 1}, "boolean"},
		"another interrupt":   {"open", "open:i#2", object{"ok": true}, "cannot resume"},
		"interrupt of others": {"open", "awaits:i#1", object{"ok": true}, "cannot resume"},
	} {
		t.Run(name, func(t *testing.T) {
			unchanged(t, store, func() {
				_, err := r.Resume(t.Context(), graph.ResumeRequest{ExecutionID: c.id, InterruptID: c.interrupt, Payload: c.payload})
				if p := wantCode(t, err, problem.InvalidResumePayload); !strings.Contains(p.Message, c.text) {
					t.Errorf("message %q", p.Message)
				}
			})
		})
	}
	run, err := r.Resume(t.Context(), graph.ResumeRequest{ExecutionID: "open", Payload: object{"ok": true}})
	if err != nil || run.Status != machine.AwaitingActivity {
		t.Errorf("the right payload after the wrong ones: %+v, %v", run, err)
	}
}

// TestW06_ResumedInterruptsSurviveARestart resumes, waits in a parallel block, and goes on in another process.
func TestW06_ResumedInterruptsSurviveARestart(t *testing.T) {
	t.Parallel()
	store := historymem.New()
	fresh := func() *graph.Runner { return newRunner(t, store, graph.Options{DefaultMode: machine.HostMediated}) }
	d := workflow(t, "ask", []string{startNode(), interrupt("i"), fork("p", "all", "a", "b"), tool("a"), tool("b"), endNode()},
		"s i", "i p", "p e", "a e", "b e")
	start(t, fresh(), "r", d, nil)
	run, err := fresh().Resume(t.Context(), graph.ResumeRequest{ExecutionID: "r", Payload: object{"ok": true}})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range run.Pending {
		run, err = fresh().SubmitActivity(t.Context(), graph.SubmitRequest{ExecutionID: "r", NodeID: p.NodeID, Span: p.Span, OK: true, Result: object{p.NodeID: 1}})
		if err != nil {
			t.Fatal(err)
		}
	}
	wantStatus(t, run, machine.Completed)
	if !sameJSON(run.FinalState, object{"ok": true, "a": 1, "b": 1}) {
		t.Errorf("final state %v", run.FinalState)
	}
	if n := count(records(t, store, "r"), history.InterruptRaised); n != 1 {
		t.Errorf("%d InterruptRaised", n)
	}
}

// TestW24_AnEntryNodeMayChangeTheState submits with the original input after the entry node has changed it.
func TestW24_AnEntryNodeMayChangeTheState(t *testing.T) {
	t.Parallel()
	store := historymem.New()
	r := newRunner(t, store, graph.Options{DefaultMode: machine.HostMediated})
	d := workflow(t, "entry", []string{`{"id":"x","type":"set_state","config":{"assignments":{"n":{"jq":".n + 1"}}}}`,
		startNode(), tool("a"), endNode()}, "x s", "s a", "a e")
	run, err := r.Start(t.Context(), graph.StartRequest{ExecutionID: "r", Definition: d, Input: object{"n": 1}})
	if err != nil {
		t.Fatal(err)
	}
	wantStatus(t, run, machine.AwaitingActivity)
	again := newRunner(t, store, graph.Options{})
	run, err = again.SubmitActivity(t.Context(), graph.SubmitRequest{ExecutionID: "r", NodeID: "a", OK: true,
		Caller: graph.Caller{Input: object{"n": 1}, InputSet: true}})
	if err != nil || !sameJSON(run.FinalState, object{"n": 2}) {
		t.Errorf("%+v, %v", run, err)
	}
}
