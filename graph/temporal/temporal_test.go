package temporal

import (
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// TestSignalsOfTemporal: a program that cannot send updates sends a signal. One that nothing waits for changes nothing.
func TestSignalsOfTemporal(t *testing.T) {
	t.Parallel()
	e, b := newTestEngine(t, Options{Activities: steps(charged)})
	run := start(t, e, graph.StartRequest{ExecutionID: "r", Definition: loop(t), Input: map[string]any{"n": 0.0}})
	if run.Status != machine.AwaitingSignal {
		t.Fatalf("%+v", run)
	}
	r := b.find("r")
	for _, name := range []string{"other", "next"} {
		r.do(func() bool {
			r.env.SignalWorkflow(signalSignal, machine.Signal{Name: name})
			r.later()
			return true
		})
	}
	run, err := e.Status(t.Context(), graph.StatusRequest{ExecutionID: "r", Since: run.Seq, Wait: &graph.Wait{Limit: time.Minute}})
	for err == nil && run.Status == machine.Running {
		run, err = e.Status(t.Context(), graph.StatusRequest{ExecutionID: "r", Wait: &graph.Wait{Limit: time.Minute}})
	}
	if err != nil || run.State["n"] != 1.0 || run.Status != machine.AwaitingSignal {
		t.Errorf("%+v %v", run, err)
	}
}

// TestACancelInTemporalIsACancel: the run ends as cancelled, and says so.
func TestACancelInTemporalIsACancel(t *testing.T) {
	t.Parallel()
	e, b := newTestEngine(t, Options{Activities: steps(charged)})
	start(t, e, graph.StartRequest{ExecutionID: "r", Definition: approval(t)})
	r := b.find("r")
	r.do(func() bool {
		r.env.CancelWorkflow()
		r.later()
		return true
	})
	run, err := e.Status(t.Context(), graph.StatusRequest{ExecutionID: "r"})
	if err != nil || run.Status != machine.Cancelled || run.Reason != "cancelled in Temporal" {
		t.Errorf("%+v %v", run, err)
	}
}

// TestWithoutAWorker: the status says so, and inputs are rejected.
func TestWithoutAWorker(t *testing.T) {
	t.Parallel()
	e, b := newTestEngine(t, Options{Activities: steps(charged)})
	start(t, e, graph.StartRequest{ExecutionID: "r", Definition: approval(t)})
	b.noWorker = true
	run, err := e.Status(t.Context(), graph.StatusRequest{ExecutionID: "r"})
	if err != nil || run.Status != machine.Running || run.Lacks == nil {
		t.Errorf("%+v %v", run, err)
	}
	_, err = e.Resume(t.Context(), graph.ResumeRequest{ExecutionID: "r", Payload: map[string]any{"approve": true}})
	requireCode(t, err, problem.StoreUnavailable)
	_, err = e.Status(t.Context(), graph.StatusRequest{ExecutionID: "other"})
	requireCode(t, err, problem.ExecutionNotFound)
}
