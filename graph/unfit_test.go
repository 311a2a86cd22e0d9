package graph_test

import (
	"testing"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history/historymem"
)

// A run of another engine binds no definition before its first checkpoint. One that does not fit is refused, leaves no
// row and is not kept, so that the right one is taken afterwards.
func TestADefinitionThatDoesNotFitAForeignRun(t *testing.T) {
	t.Parallel()
	right := workflow(t, "w", []string{startNode(), signalWait("w", "go"), endNode()}, "s w", "w e")
	for name, wrong := range map[string]graph.Caller{
		"another name":  {Definition: linear(t, "other", "a")},
		"another graph": {Definition: workflow(t, "w", []string{startNode(), signalWait("x", "go"), endNode()}, "s x", "x e")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := foreign(t, "r", right, nil, machine.HostMediated)
			r := newRunner(t, store, graph.Options{})
			unchanged(t, store, func() {
				_, err := r.Signal(t.Context(), graph.SignalRequest{ExecutionID: "r", Name: "go", Caller: wrong})
				wantCode(t, err, problem.SignalValidationError)
				_, err = r.SubmitActivity(t.Context(), graph.SubmitRequest{ExecutionID: "r", NodeID: "a", OK: true, Caller: wrong})
				wantCode(t, err, problem.SubmitValidationError)
				_, err = r.Resume(t.Context(), graph.ResumeRequest{ExecutionID: "r", Caller: wrong})
				wantCode(t, err, problem.InvalidResumePayload)
			})
			run, err := r.Signal(t.Context(), graph.SignalRequest{ExecutionID: "r", Name: "go", Caller: graph.Caller{Definition: right}})
			if err != nil {
				t.Fatal(err)
			}
			wantStatus(t, run, machine.Completed)
		})
	}
}

// A process that cannot perform what follows does not take an input for an in-process run: it would fail the run for
// good.
func TestAnInputThatNothingHereCanGoOnWith(t *testing.T) {
	t.Parallel()
	d := workflow(t, "w", []string{startNode(), interrupt("i"), tool("a"), endNode()}, "s i", "i a", "a e")
	store := historymem.New()
	bare := newRunner(t, store, graph.Options{})
	answer := graph.ResumeRequest{ExecutionID: "r", Payload: object{"ok": true}}
	if _, err := bare.Start(t.Context(), graph.StartRequest{ExecutionID: "r", Definition: d}); err != nil {
		t.Fatal(err)
	}
	unchanged(t, store, func() {
		_, err := bare.Resume(t.Context(), answer)
		if p := wantCode(t, err, problem.InvalidResumePayload); p.Hint == "" {
			t.Error("no hint")
		}
	})
	answer.Mode = machine.HostMediated
	run, err := bare.Resume(t.Context(), answer)
	if err != nil {
		t.Fatal(err)
	}
	wantStatus(t, run, machine.AwaitingActivity)

	hosted, _ := host(t, graph.Options{})
	start(t, hosted, "r", d, nil)
	answer.Mode = machine.InProcess
	_, err = hosted.Resume(t.Context(), answer)
	wantCode(t, err, problem.InvalidResumePayload)
}
