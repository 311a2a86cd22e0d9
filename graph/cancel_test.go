package graph_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/graph/view"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historymem"
)

func cancel(t testing.TB, r *graph.Runner, id, reason string) *view.Run {
	t.Helper()
	run, err := r.Cancel(t.Context(), graph.CancelRequest{ExecutionID: id, Reason: reason})
	if err != nil {
		t.Fatalf("Cancel: %v", err)
	}
	return run
}

func TestCancel(t *testing.T) {
	t.Parallel()
	r, store := host(t, graph.Options{})
	start(t, r, "r", linear(t, "lin", "a"), object{"in": 1})
	run := cancel(t, r, "r", "  stop it ")
	wantStatus(t, run, machine.Cancelled)
	if run.Reason != "stop it" || !sameJSON(run.FinalState, object{"in": 1}) || run.CurrentNodeID != "a" {
		t.Errorf("run %+v", run)
	}
	unchanged(t, store, func() {
		again := cancel(t, r, "r", "second")
		if again.Reason != "stop it" || again.Status != machine.Cancelled {
			t.Errorf("again %+v", again)
		}
		if s := status(t, r, "r"); s.Reason != "stop it" || !sameJSON(s.FinalState, run.FinalState) {
			t.Errorf("status %+v", s)
		}
		_, err := r.SubmitActivity(t.Context(), graph.SubmitRequest{ExecutionID: "r", NodeID: "a", OK: true})
		wantCode(t, err, problem.SubmitNotAwaiting)
		_, err = r.Resume(t.Context(), graph.ResumeRequest{ExecutionID: "r"})
		wantCode(t, err, problem.InvalidResumePayload)
		_, err = r.Signal(t.Context(), graph.SignalRequest{ExecutionID: "r", Name: "go"})
		wantCode(t, err, problem.SignalNotAwaiting)
	})
}

func TestCancelRefusals(t *testing.T) {
	t.Parallel()
	store := historymem.New()
	r := newRunner(t, store, graph.Options{Activities: &script{}})
	start(t, r, "done", linear(t, "lin", "a"), nil)
	unchanged(t, store, func() {
		_, err := r.Cancel(t.Context(), graph.CancelRequest{ExecutionID: "ghost"})
		wantCode(t, err, problem.ExecutionNotFound)
		_, err = r.Cancel(t.Context(), graph.CancelRequest{ExecutionID: " "})
		wantCode(t, err, problem.CancelValidationError)
		_, err = r.Cancel(t.Context(), graph.CancelRequest{ExecutionID: "done"})
		wantCode(t, err, problem.CancelNotAllowed)
	})
}

// TestW07_CancelStopsWhatIsRunning holds that executors' contexts end, that nothing is recorded after the end, and that
// the call that started the run learns of it at once.
func TestW07_CancelStopsWhatIsRunning(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		stopped := make(chan error, 2)
		exec := &script{answers: answers{
			"a": func(ctx context.Context, _ activities.Request) (any, error) {
				<-ctx.Done()
				stopped <- context.Cause(ctx)
				return object{"late": true}, nil // a success that comes too late
			},
			"b": func(ctx context.Context, _ activities.Request) (any, error) {
				<-ctx.Done()
				stopped <- context.Cause(ctx)
				return nil, ctx.Err()
			},
		}}
		store := historymem.New()
		r := newRunner(t, store, graph.Options{Activities: exec})
		d := workflow(t, "par", []string{startNode(), fork("p", "all", "a", "b"), tool("a"), tool("b"), tool("c"), endNode()},
			"s p", "p c", "a c", "b c", "c e")
		answered := make(chan *view.Run)
		begun := time.Now()
		go func() { answered <- start(t, r, "r", d, nil) }()
		time.Sleep(time.Second)
		wantStatus(t, status(t, r, "r"), machine.Running)
		run := cancel(t, r, "r", "enough")
		wantStatus(t, run, machine.Cancelled)
		wantStatus(t, <-answered, machine.Cancelled)
		if time.Since(begun) != time.Second {
			t.Errorf("the call learnt of it after %s", time.Since(begun))
		}
		for range 2 {
			if err := <-stopped; !errors.Is(err, problem.ActivityCancelled) {
				t.Errorf("cause %v", err)
			}
		}
		synctest.Wait()
		rs := records(t, store, "r")
		if last := rs[len(rs)-1]; last.Name != history.ExecutionCancelled || exec.count() != 2 {
			t.Errorf("history ends with %s after %d calls", last.Name, exec.count())
		}
		wantStatus(t, status(t, r, "r"), machine.Cancelled)
	})
}

// TestCancelFromAnotherProcess holds that the driver learns of a cancel that another process recorded.
func TestCancelFromAnotherProcess(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := historymem.New()
		exec := &script{answers: answers{"a": after(time.Hour, nil)}}
		driver := newRunner(t, store, graph.Options{Activities: exec})
		other := newRunner(t, store, graph.Options{})
		answered := make(chan *view.Run)
		go func() { answered <- start(t, driver, "r", linear(t, "lin", "a"), nil) }()
		time.Sleep(time.Second)
		wantStatus(t, cancel(t, other, "r", ""), machine.Cancelled)
		begun := time.Now()
		wantStatus(t, <-answered, machine.Cancelled)
		if d := time.Since(begun); d > 4*time.Second {
			t.Errorf("noticed after %s", d)
		}
		if owner, err := store.Owner(t.Context(), "r"); err != nil || owner.Process != "" {
			t.Errorf("the run was not disowned: %+v, %v", owner, err)
		}
	})
}
