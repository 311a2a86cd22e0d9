package graph_test

import (
	"strings"
	"testing"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
)

func TestSignal(t *testing.T) {
	t.Parallel()
	r, _ := host(t, graph.Options{})
	d := workflowWith(t, "sig", `"state_schema":{"type":"object","properties":{"l":{"type":"array","reducer":"append"}}}`,
		[]string{startNode(), signalWait("w", " go "), endNode()}, "s w", "w e")
	run := start(t, r, "r", d, object{"l": []any{1}})
	wantStatus(t, run, machine.AwaitingSignal)
	if p := run.Pending[0]; p.Kind != machine.WaitSignal || p.SignalName != "go" || p.ID != "r:w#1" {
		t.Errorf("pending %+v", p)
	}
	run, err := r.Signal(t.Context(), graph.SignalRequest{ExecutionID: "r", Name: "go", Payload: object{"l": 2}})
	if err != nil || !sameJSON(run.FinalState, object{"l": []any{1, 2}}) {
		t.Errorf("%+v, %v", run, err)
	}
}

func TestSignalRefusalsLeaveNoTrace(t *testing.T) {
	t.Parallel()
	r, store := host(t, graph.Options{})
	d := workflow(t, "sig", []string{startNode(), signalWait("w", "go"), tool("a"), endNode()}, "s w", "w a", "a e")
	start(t, r, "open", d, object{"n": 1})
	start(t, r, "awaits", d, nil)
	if _, err := r.Signal(t.Context(), graph.SignalRequest{ExecutionID: "awaits", Name: "go"}); err != nil {
		t.Fatal(err)
	}
	start(t, r, "gone", d, nil)
	if _, err := r.Cancel(t.Context(), graph.CancelRequest{ExecutionID: "gone"}); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		req  graph.SignalRequest
		code problem.Code
	}{
		"unknown run":        {graph.SignalRequest{ExecutionID: "ghost", Name: "go"}, problem.ExecutionNotFound},
		"blank name":         {graph.SignalRequest{ExecutionID: "open", Name: " "}, problem.SignalValidationError},
		"other name":         {graph.SignalRequest{ExecutionID: "open", Name: "stop"}, problem.SignalNameMismatch},
		"name not trimmed":   {graph.SignalRequest{ExecutionID: "open", Name: "go "}, problem.SignalNameMismatch},
		"awaits an activity": {graph.SignalRequest{ExecutionID: "awaits", Name: "go"}, problem.SignalNotAwaiting},
		"cancelled":          {graph.SignalRequest{ExecutionID: "gone", Name: "go"}, problem.SignalNotAwaiting},
		"W-64 other input": {graph.SignalRequest{ExecutionID: "open", Name: "go", Caller: graph.Caller{InputSet: true, Input: object{"n": 2}}},
			problem.SignalValidationError},
		"payload no JSON": {graph.SignalRequest{ExecutionID: "open", Name: "go", Payload: object{"c": make(chan int)}}, problem.SignalValidationError},
	} {
		t.Run(name, func(t *testing.T) {
			unchanged(t, store, func() {
				_, err := r.Signal(t.Context(), c.req)
				wantCode(t, err, c.code)
			})
		})
	}
}

// TestW02_ASignalInABranchDoesNotAbandonTheBlock has a second branch that must still run.
func TestW02_ASignalInABranchDoesNotAbandonTheBlock(t *testing.T) {
	t.Parallel()
	r, store := host(t, graph.Options{})
	d := workflow(t, "sig", []string{startNode(), fork("p", "all", "w", "a"), signalWait("w", "go"), tool("a"), endNode()},
		"s p", "p e", "w e", "a e")
	run := start(t, r, "r", d, nil)
	if len(run.Pending) != 2 || run.Status != machine.AwaitingSignal {
		t.Fatalf("run %+v", run)
	}
	run, err := r.Signal(t.Context(), graph.SignalRequest{ExecutionID: "r", Name: "go", Payload: object{"s": 1}})
	if err != nil {
		t.Fatal(err)
	}
	wantStatus(t, run, machine.AwaitingActivity)
	// W-06b: the same from a restored machine.
	again := newRunner(t, store, graph.Options{})
	run, err = again.SubmitActivity(t.Context(), graph.SubmitRequest{ExecutionID: "r", NodeID: "a", Span: run.Pending[0].Span, OK: true, Result: object{"a": 1}})
	if err != nil || !sameJSON(run.FinalState, object{"s": 1, "a": 1}) {
		t.Fatalf("%+v, %v", run, err)
	}
	rs := records(t, store, "r")
	if count(rs, history.ParallelJoined) != 1 || count(rs, history.CompleteNode) != 5 {
		t.Errorf("history %v", names(rs, ""))
	}
}

// A refused signal says what is awaited, and asks nobody to make it up.
func TestARefusedSignalSaysWhatIsAwaited(t *testing.T) {
	t.Parallel()
	r, _ := host(t, graph.Options{})
	d := workflow(t, "two", []string{startNode(), signalWait("w", "pressure"), signalWait("v", "level"), endNode()}, "s w", "w v", "v e")
	start(t, r, "r", d, nil)
	signal := func() error {
		_, err := r.Signal(t.Context(), graph.SignalRequest{ExecutionID: "r", Name: "pressure"})
		return err
	}
	if err := signal(); err != nil {
		t.Fatal(err)
	}
	p, ok := problem.As(signal())
	if !ok || p.Code != problem.SignalNameMismatch || !strings.Contains(p.Error(), `"level"`) || !strings.Contains(p.Hint, "do not invent one") {
		t.Errorf("refusal %+v", p)
	}
}
