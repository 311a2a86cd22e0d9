package graph_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/definition"
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

// TestABystanderLeavesTheParentAlone ends a subworkflow in a process without executors, in every way that such a process
// has. The parent, which needs one, is not failed but goes on where there is one.
func TestABystanderLeavesTheParentAlone(t *testing.T) {
	t.Parallel()
	child := workflow(t, "child", []string{startNode(), fork("f", "any", "g", "i", "w"), signalWait("g", "go"), interrupt("i"), timerWait("w", "1h"), endNode()},
		"s f", "f e", "g e", "i e", "w e")
	for name, end := range map[string]func(*testing.T, *graph.Runner) error{
		"signal": func(t *testing.T, r *graph.Runner) error {
			_, err := r.Signal(t.Context(), graph.SignalRequest{ExecutionID: "r:sub:v", Name: "go"})
			return err
		},
		"resume": func(t *testing.T, r *graph.Runner) error {
			_, err := r.Resume(t.Context(), graph.ResumeRequest{ExecutionID: "r:sub:v", Payload: object{"ok": true}})
			return err
		},
		"timer": func(t *testing.T, r *graph.Runner) error {
			time.Sleep(time.Hour)
			_, err := r.Status(t.Context(), graph.StatusRequest{ExecutionID: "r:sub:v"})
			return err
		},
		"cancel": func(t *testing.T, r *graph.Runner) error {
			_, err := r.Cancel(t.Context(), graph.CancelRequest{ExecutionID: "r:sub:v"})
			return err
		},
	} {
		for _, background := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				store := historymem.New()
				var d *definition.Document
				if name == "cancel" {
					d = workflow(t, "parent", []string{startNode(), fork("p", "any", "v", "h"), subworkflow("v", "urn:child"), signalWait("h", "later"), tool("b"), endNode()},
						"s p", "p b", "v b", "h b", "b e")
				} else {
					d = workflow(t, "parent", []string{startNode(), subworkflow("v", "urn:child"), tool("b"), endNode()}, "s v", "v b", "b e")
				}
				o := graph.Options{Activities: &script{}, AllowInterruptInBranch: true}
				capable := newRunner(t, store, o)
				register(t, capable, "urn:child", child)
				start(t, capable, "r", d, nil)
				if err := capable.Close(); err != nil {
					t.Fatal(err)
				}
				bare := newRunner(t, store, graph.Options{AllowInterruptInBranch: true})
				if err := end(t, bare); err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				if run := status(t, bare, "r"); run.Status.Terminal() {
					t.Fatalf("%s: %+v", name, run)
				}
				o.Background = background
				capable = newRunner(t, store, o)
				if background {
					time.Sleep(time.Minute)
				} else if _, err := capable.Recover(t.Context(), graph.RecoverRequest{}); err != nil {
					t.Fatal(err)
				}
				want := machine.Completed
				if name == "cancel" {
					want = machine.AwaitingSignal // the join tolerates it, and waits for the other branch
				}
				wantStatus(t, settled(t, capable, "r"), want)
			})
		}
	}
}
