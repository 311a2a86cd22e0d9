package graph_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historymem"
)

func TestNewRefusesWrongOptions(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]graph.Options{
		"mode":     {DefaultMode: "remote"},
		"branches": {Branches: "some"},
		"negative": {LeaseTTL: -time.Second},
	} {
		if _, err := graph.New(historymem.New(), o); err == nil {
			t.Errorf("%s was accepted", name)
		} else {
			wantCode(t, err, problem.UsageError)
		}
	}
	_, err := graph.New(nil, graph.Options{})
	wantCode(t, err, problem.UsageError)
}

func TestProgram(t *testing.T) {
	t.Parallel()
	r, store := host(t, graph.Options{})
	if _, err := r.Program(linear(t, "ok", "a")); err != nil {
		t.Error(err)
	}
	bad := workflow(t, "bad", []string{startNode(), `{"id":"x","type":"teleport"}`, `{"id":"y","type":"step"}`, endNode()}, "s x", "x y", "y e")
	_, err := r.Program(bad)
	p := wantCode(t, err, problem.ValidationError)
	if len(p.Findings) < 2 || !strings.Contains(p.Message, "more error") || !p.Findings.HasErrors() {
		t.Errorf("%q with %d findings", p.Message, len(p.Findings))
	}
	_, err = r.Program(nil)
	wantCode(t, err, problem.ValidationError)
	wantCode(t, r.RegisterWorkflow(" ", linear(t, "ok", "a")), problem.ValidationError)
	wantCode(t, r.RegisterWorkflow("urn:bad", bad), problem.ValidationError)
	if n := len(heads(t, store)); n != 0 {
		t.Errorf("%d runs", n)
	}
}

func TestClosedRunnersRefuse(t *testing.T) {
	t.Parallel()
	r, err := graph.New(historymem.New(), graph.Options{DefaultMode: machine.HostMediated})
	if err != nil {
		t.Fatal(err)
	}
	d := linear(t, "lin", "a")
	start(t, r, "r", d, nil)
	closeRunner(t, r)
	closeRunner(t, r) // closing again does nothing
	ctx := t.Context()
	for name, call := range map[string]func() error{
		"Start":   func() error { _, err := r.Start(ctx, graph.StartRequest{Definition: d}); return err },
		"Status":  func() error { _, err := r.Status(ctx, graph.StatusRequest{ExecutionID: "r"}); return err },
		"Resume":  func() error { _, err := r.Resume(ctx, graph.ResumeRequest{ExecutionID: "r"}); return err },
		"Signal":  func() error { _, err := r.Signal(ctx, graph.SignalRequest{ExecutionID: "r", Name: "x"}); return err },
		"Cancel":  func() error { _, err := r.Cancel(ctx, graph.CancelRequest{ExecutionID: "r"}); return err },
		"List":    func() error { _, err := r.List(ctx, history.ListQuery{}); return err },
		"History": func() error { _, err := r.History(ctx, graph.HistoryRequest{ExecutionID: "r"}); return err },
		"Recover": func() error { _, err := r.Recover(ctx, graph.RecoverRequest{}); return err },
		"Submit": func() error {
			_, err := r.SubmitActivity(ctx, graph.SubmitRequest{ExecutionID: "r", NodeID: "a", OK: true})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) { wantCode(t, call(), problem.RunnerClosed) })
	}
}

// newer is a store whose runs were written by a newer version.
type newer struct{ history.Store }

func (newer) Execution(_ context.Context, id string) (history.Execution, error) {
	return history.Execution{}, history.CheckRowVersion(id, 1, int64(2))
}

func TestRunsOfANewerVersionAreLeftAlone(t *testing.T) {
	t.Parallel()
	r := newRunner(t, newer{historymem.New()}, graph.Options{})
	ctx := t.Context()
	_, err := r.SubmitActivity(ctx, graph.SubmitRequest{ExecutionID: "r", NodeID: "a", OK: true})
	wantCode(t, err, problem.SubmitValidationError)
	_, err = r.Signal(ctx, graph.SignalRequest{ExecutionID: "r", Name: "x"})
	wantCode(t, err, problem.SignalValidationError)
	_, err = r.Cancel(ctx, graph.CancelRequest{ExecutionID: "r"})
	wantCode(t, err, problem.CancelValidationError)
	_, err = r.Status(ctx, graph.StatusRequest{ExecutionID: "r"})
	wantCode(t, err, problem.HistoryNewer)
	_, err = r.Start(ctx, graph.StartRequest{ExecutionID: "r", AllowExisting: true})
	wantCode(t, err, problem.HistoryNewer)
}

// TestACallThatCannotBeRecordedSaysSo holds that such a call can be repeated.
func TestACallThatCannotBeRecordedSaysSo(t *testing.T) {
	t.Parallel()
	store := &flaky{Store: historymem.New()}
	r := newRunner(t, store, graph.Options{DefaultMode: machine.HostMediated})
	start(t, r, "r", linear(t, "lin", "a", "b"), nil)
	store.fails = 1
	unchanged(t, store, func() {
		if _, err := r.SubmitActivity(t.Context(), graph.SubmitRequest{ExecutionID: "r", NodeID: "a", OK: true}); err == nil {
			t.Error("the submit was acknowledged")
		}
		if run := status(t, r, "r"); run.Pending[0].NodeID != "a" {
			t.Errorf("%+v", run)
		}
	})
	if run := submit(t, r, "r", "a", nil); run.Pending[0].NodeID != "b" {
		t.Errorf("%+v", run)
	}
}

// TestOtherRepeatedSubmits repeats a delegate's outcome, and a failure.
func TestOtherRepeatedSubmits(t *testing.T) {
	t.Parallel()
	r, _ := host(t, graph.Options{})
	d := workflow(t, "all", []string{startNode(), delegateNode("d"), tool("a", `"retry":{"max_attempts":2}`), endNode()}, "s d", "d a", "a e")
	start(t, r, "r", d, nil)
	for _, req := range []graph.SubmitRequest{
		{NodeID: "d", OK: true, Result: object{"p": 1, "delegateCorrelationId": "r:delegate:d"}, IdempotencyKey: "r:d#1.1"},
		{NodeID: "a", Error: "no", Code: "C", IdempotencyKey: "r:a#1.1"},
		{NodeID: "a", OK: true, IdempotencyKey: "r:a#1.2"},
	} {
		req.ExecutionID = "r"
		first, err := r.SubmitActivity(t.Context(), req)
		if err != nil {
			t.Fatalf("%s: %v", req.IdempotencyKey, err)
		}
		again, err := r.SubmitActivity(t.Context(), req)
		if err != nil || again.Seq != first.Seq {
			t.Errorf("%s again: %+v, %v", req.IdempotencyKey, again, err)
		}
		req.OK, req.Error, req.Result = !req.OK, "other", nil
		if _, err := r.SubmitActivity(t.Context(), req); err == nil {
			t.Errorf("%s: another outcome was taken for the same", req.IdempotencyKey)
		}
	}
}

// TestSeveralChildrenWait shows the first that needs somebody.
func TestSeveralChildrenWait(t *testing.T) {
	t.Parallel()
	r, _ := host(t, graph.Options{})
	register(t, r, "urn:timer", workflow(t, "timer", []string{startNode(), timerWait("w", "1h"), endNode()}, "s w", "w e"))
	register(t, r, "urn:tool", linear(t, "tool", "a"))
	register(t, r, "urn:signal", workflow(t, "signal", []string{startNode(), signalWait("g", "go"), endNode()}, "s g", "g e"))
	d := workflow(t, "par", []string{startNode(), fork("p", "all", "t", "a", "g"), subworkflow("t", "urn:timer"), subworkflow("a", "urn:tool"), subworkflow("g", "urn:signal"), endNode()},
		"s p", "p e", "t e", "a e", "g e")
	run := start(t, r, "r", d, nil)
	wantStatus(t, run, machine.AwaitingActivity)
	if len(run.Pending) != 3 || run.Pending[0].Kind != machine.WaitTimer || run.Pending[1].ExecutionID != "r:sub:a" || run.Pending[2].SignalName != "go" {
		t.Errorf("pending %+v", run.Pending)
	}
	run, err := r.Signal(t.Context(), graph.SignalRequest{ExecutionID: "r", Name: "go"})
	if err != nil {
		t.Fatal(err)
	}
	wantStatus(t, run, machine.AwaitingActivity)
	run = submit(t, r, "r", "a", nil)
	wantStatus(t, run, machine.AwaitingTimer)
}
