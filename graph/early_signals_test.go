package graph_test

import (
	"slices"
	"testing"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/graph/view"
	"github.com/workflows-engine/workflows-engine/history"
)

// earlyWorkflow works, and then waits for a signal that may have come before.
func earlyWorkflow(t testing.TB, name string) *definition.Document {
	return workflowWith(t, name, `"x-workflows-engine":{"uses":["early_signals"]}`,
		[]string{startNode(), tool("a"), keepingWait("w", "paid"), tool("b"), endNode()}, "s a", "a w", "w b", "b e")
}

func signal(t testing.TB, r *graph.Runner, id, name string, payload map[string]any) *view.Run {
	t.Helper()
	run, err := r.Signal(t.Context(), graph.SignalRequest{ExecutionID: id, Name: name, Payload: payload, IdempotencyKey: "key of " + name})
	if err != nil {
		t.Fatalf("Signal %s: %v", name, err)
	}
	return run
}

func wantKept(t testing.TB, run *view.Run, kept ...machine.KeptSignals) {
	t.Helper()
	if !slices.Equal(run.KeptSignals, kept) {
		t.Fatalf("kept %v, want %v", run.KeptSignals, kept)
	}
}

// TestAnEarlySignalIsKept sends a signal while an activity is pending; another process takes it to the wait.
func TestAnEarlySignalIsKept(t *testing.T) {
	t.Parallel()
	r, store := host(t, graph.Options{})
	start(t, r, "r", earlyWorkflow(t, "early"), nil)
	one := machine.KeptSignals{Name: "paid", Count: 1}
	run := signal(t, r, "r", "paid", object{"amount": 5})
	wantKept(t, run, one)
	wantStatus(t, run, machine.AwaitingActivity)
	unchanged(t, store, func() {
		if again := signal(t, r, "r", "paid", object{"amount": 5}); !again.Repeated {
			t.Errorf("the same signal again: %+v", again)
		}
		_, err := r.Signal(t.Context(), graph.SignalRequest{
			ExecutionID: "r", Name: "paid", Payload: object{"amount": 6}, IdempotencyKey: "key of paid",
		})
		wantCode(t, err, problem.SignalValidationError)
		_, err = r.Signal(t.Context(), graph.SignalRequest{ExecutionID: "r", Name: "unpaid"})
		wantCode(t, err, problem.SignalNotAwaiting)
	})
	other := newRunner(t, store, graph.Options{})
	wantKept(t, status(t, other, "r"), one)
	run = submit(t, other, "r", "a", object{"a": 1})
	wantKept(t, run)
	if p := run.Pending; len(p) != 1 || p[0].NodeID != "b" || !sameJSON(run.State, object{"a": 1, "amount": 5}) {
		t.Fatalf("pending %+v with the state %v", p, run.State)
	}
	if again := signal(t, other, "r", "paid", object{"amount": 5}); !again.Repeated {
		t.Errorf("the same signal after it was taken: %+v", again)
	}
	submit(t, other, "r", "b", nil)
	_, err := r.Signal(t.Context(), graph.SignalRequest{ExecutionID: "r", Name: "paid"})
	wantCode(t, err, problem.SignalNotAwaiting)
	if _, err := r.Verify(t.Context(), "r", false, func(f history.Finding) { t.Errorf("verify: %+v", f) }); err != nil {
		t.Error(err)
	}
}

// TestAForkKeepsWhatWasKept takes over what had come before the record at which a run is forked, and nothing after it.
func TestAForkKeepsWhatWasKept(t *testing.T) {
	t.Parallel()
	r, store := host(t, graph.Options{})
	start(t, r, "r", earlyWorkflow(t, "early"), nil)
	signal(t, r, "r", "paid", object{"amount": 5})
	at := lastOf(records(t, store, "r"), history.SignalKept)
	submit(t, r, "r", "a", nil)
	for seq, kept := range map[int64][]machine.KeptSignals{at - 1: nil, at: {{Name: "paid", Count: 1}}} {
		run, err := r.Fork(t.Context(), graph.ForkRequest{ExecutionID: "r", Seq: seq})
		if err != nil {
			t.Fatal(err)
		}
		wantKept(t, run, kept...)
	}
	run, err := r.Fork(t.Context(), graph.ForkRequest{ExecutionID: "r", BeforeNode: "w"})
	if err != nil {
		t.Fatal(err)
	}
	wantKept(t, run)
	if run.Pending[0].NodeID != "b" || !sameJSON(run.State, object{"amount": 5}) {
		t.Errorf("forked before the wait: %+v", run)
	}
}

// TestEarlySignalsOfSubworkflows: a subworkflow keeps what is sent to its own id, its parent what the parent waits for later. What a
// subworkflow waits for now goes before.
func TestEarlySignalsOfSubworkflows(t *testing.T) {
	t.Parallel()
	r, _ := host(t, graph.Options{})
	register(t, r, "urn:child", earlyWorkflow(t, "child"))
	d := workflowWith(t, "parent", `"x-workflows-engine":{"uses":["early_signals"]}`,
		[]string{startNode(), subworkflow("v", "urn:child"), keepingWait("w", "shipped"), endNode()}, "s v", "v w", "w e")
	start(t, r, "p", d, nil)
	const child = "p:sub:v"
	_, err := r.Signal(t.Context(), graph.SignalRequest{ExecutionID: "p", Name: "paid"})
	wantCode(t, err, problem.SignalNotAwaiting) // no wait of the parent keeps it
	wantKept(t, signal(t, r, child, "paid", object{"amount": 5}), machine.KeptSignals{Name: "paid", Count: 1})
	wantKept(t, signal(t, r, "p", "shipped", object{"parcel": 7}), machine.KeptSignals{Name: "shipped", Count: 1})
	submit(t, r, "p", "a", nil)
	wantKept(t, status(t, r, child))
	run := submit(t, r, "p", "b", nil)
	wantStatus(t, run, machine.Completed)
	if run.FinalState["amount"] != 5.0 || run.FinalState["parcel"] != 7.0 {
		t.Errorf("ended with %v", run.FinalState)
	}
}
