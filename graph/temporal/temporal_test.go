package temporal

import (
	"context"
	"strings"
	"testing"
	"time"

	"go.temporal.io/api/serviceerror"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
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

// TestALongRunMovesAlthoughACallWaits: a run whose event history is full begins no attempt, and the call that waits does not hold it back.
func TestALongRunMovesAlthoughACallWaits(t *testing.T) {
	t.Parallel()
	e, b := newTestEngine(t, Options{Activities: steps(charged)})
	b.events = maxEvents
	run := start(t, e, graph.StartRequest{ExecutionID: "r", Definition: approval(t)})
	if run.Status != machine.Interrupted || b.runs["r"].parts != 2 {
		t.Errorf("%s in %d parts", run.Status, b.runs["r"].parts)
	}
	if took := b.now().Sub(b.began); took > 10*time.Second {
		t.Errorf("it took %s", took)
	}
}

// disturbed is an archive that does something before its first records.
type disturbed struct {
	*FileArchive
	first func()
}

func (a *disturbed) Archive(ctx context.Context, id string, d history.StoredDefinition, records []history.Record) error {
	if a.first != nil {
		a.first()
		a.first = nil
	}
	return a.FileArchive.Archive(ctx, id, d, records)
}

// TestInputsDuringTheArchivingAreArchived: a signal comes while the records before it are archived.
func TestInputsDuringTheArchivingAreArchived(t *testing.T) {
	t.Parallel()
	a := &disturbed{FileArchive: OpenFileArchive(t.TempDir())}
	e, b := newTestEngine(t, Options{Activities: steps(charged), Archive: a})
	b.suggest = true
	a.first = func() { b.find("r").env.SignalWorkflow(signalSignal, machine.Signal{Name: "next"}) }
	run := start(t, e, graph.StartRequest{ExecutionID: "r", Definition: loop(t), Input: map[string]any{"n": 0.0}})
	for n := 0; n < 1000 && (b.runs["r"].parts < 2 || run.State["n"] != 1.0); n++ {
		var err error
		if err = b.sleep(t.Context(), time.Millisecond); err == nil {
			run, err = e.Status(t.Context(), graph.StatusRequest{ExecutionID: "r"})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	records, err := e.History(t.Context(), graph.HistoryRequest{ExecutionID: "r"})
	if err != nil || int64(len(records)) != run.Seq || b.runs["r"].parts != 2 {
		t.Errorf("%d records of %d in %d parts (%v)", len(records), run.Seq, b.runs["r"].parts, err)
	}
}

// TestACancelIsNotLostWhenARunMoves: it comes in the same workflow task in which the run would continue as new.
func TestACancelIsNotLostWhenARunMoves(t *testing.T) {
	t.Parallel()
	e, b := newTestEngine(t, Options{Activities: steps(charged)})
	start(t, e, graph.StartRequest{ExecutionID: "r", Definition: approval(t)})
	r := b.find("r")
	r.do(func() bool {
		r.env.SetContinueAsNewSuggested(true)
		r.env.CancelWorkflow()
		r.later()
		return true
	})
	run, err := e.Status(t.Context(), graph.StatusRequest{ExecutionID: "r"})
	if err != nil || run.Status != machine.Cancelled || r.parts != 1 {
		t.Errorf("%+v in %d parts (%v)", run, r.parts, err)
	}
}

// TestALateAnswerIsTheWorkers: the service cuts a call short that no worker answers, which does not mean that the service is away.
func TestALateAnswerIsTheWorkers(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"stream terminated by RST_STREAM with error code: CANCEL": "no worker answers", "connection refused": "does not answer",
	} {
		if err := failureOf(t.Context(), serviceerror.NewUnavailable(text), "far:1", "r"); !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}
