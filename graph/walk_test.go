package graph_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/graph/view"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historymem"
	"github.com/workflows-engine/workflows-engine/history/historytest"
	"github.com/workflows-engine/workflows-engine/internal/soak"
)

// longRounds is how many rounds of computing take several stretches, of some ten rounds each.
func longRounds() int { return soak.Size(50, 50, 150) }

// computing is a workflow that computes in rounds, each of which evaluates an expression of some milliseconds.
func computing(t *testing.T, until string) *definition.Document {
	t.Helper()
	return workflow(t, "w", []string{
		startNode(),
		`{"id": "n", "type": "set_state", "config": {"assignments": {"n": {"jq": "(.n // 0) + ([range(20000)] | length | . - 19999)"}}}}`,
		`{"id": "w", "type": "switch", "config": {"cases": [{"when": "` + until + `", "target": "e"}], "default": "n"}}`,
		endNode(),
	}, "s n", "n w", "w e", "w n")
}

// TestALongComputationIsCommittedInStretches runs a loop without a wait. The call that began it is answered, the history grows
// while the loop goes on, and others are answered in between.
func TestALongComputationIsCommittedInStretches(t *testing.T) {
	t.Parallel()
	r := newRunner(t, historymem.New(), graph.Options{})
	run, err := r.Start(t.Context(), graph.StartRequest{ExecutionID: "r", Definition: computing(t, fmt.Sprint(".n > ", longRounds())), Wait: graph.Wait{Limit: graph.NoWait}})
	if err != nil || run.Status != machine.Running {
		t.Fatalf("%v, %v", run, err)
	}
	first := run.Seq
	run, err = r.Status(t.Context(), graph.StatusRequest{ExecutionID: "r", Since: first, Wait: &graph.Wait{Limit: time.Minute}})
	if err != nil || run.Seq <= first || run.Status != machine.Running {
		t.Fatalf("after record %d: %+v, %v", first, run, err)
	}
	for !run.Status.Terminal() && err == nil {
		run, err = r.Status(t.Context(), graph.StatusRequest{ExecutionID: "r", Wait: &graph.Wait{Limit: time.Minute}})
	}
	if err != nil || run.Status != machine.Completed || run.FinalState["n"] != float64(longRounds()+1) {
		t.Errorf("%+v, %v", run, err)
	}
	if _, err := r.Verify(t.Context(), "r", false, func(f history.Finding) { t.Errorf("%+v", f) }); err != nil {
		t.Error(err)
	}
}

// TestAnInputIsRecordedBeforeALongEvaluation: a start and an answer after which one expression takes most of a second are recorded and
// answered before it is over; status and cancel are answered meanwhile, and the history is as if nothing had been put off.
func TestAnInputIsRecordedBeforeALongEvaluation(t *testing.T) {
	t.Parallel()
	long := `{"id": "%", "type": "set_state", "config": {"assignments": {"%": {"jq": "reduce range(` + fmt.Sprint(soak.Size(17, 14, 17)) + `) as $i (0; {a: ., b: .}) as $d | [range(9) | $d == $d] | length"}}}}`
	d := workflow(t, "w", []string{
		startNode(), strings.ReplaceAll(long, "%", "a"), interrupt("i"), strings.ReplaceAll(long, "%", "b"), endNode(),
	}, "s a", "a i", "i b", "b e")
	now := graph.Wait{Limit: graph.NoWait}
	r := newRunner(t, historymem.New(), graph.Options{})
	look := func(what string, run *view.Run, err error) {
		t.Helper()
		if err != nil || run.Status != machine.Running {
			t.Fatalf("%s: %+v, %v", what, run, err)
		}
		if run, err = r.Status(t.Context(), graph.StatusRequest{ExecutionID: run.ExecutionID}); err != nil || run.Status != machine.Running {
			t.Fatalf("status after %s: %+v, %v", what, run, err)
		}
	}
	run, err := r.Start(t.Context(), graph.StartRequest{ExecutionID: "r", Definition: d, Wait: now})
	look("start", run, err)
	settled(t, r, "r")
	run, err = r.Resume(t.Context(), graph.ResumeRequest{ExecutionID: "r", Payload: map[string]any{"ok": true}, Caller: graph.Caller{Wait: now}})
	look("resume", run, err)
	if run = settled(t, r, "r"); run.Status != machine.Completed || run.FinalState["b"] != 9.0 {
		t.Errorf("%+v", run)
	}
	if _, err := r.Verify(t.Context(), "r", false, func(f history.Finding) { t.Errorf("%+v", f) }); err != nil {
		t.Error(err)
	}
	run, err = r.Start(t.Context(), graph.StartRequest{ExecutionID: "c", Definition: d, Wait: now})
	look("start", run, err)
	if run, err = r.Cancel(t.Context(), graph.CancelRequest{ExecutionID: "c"}); err != nil || run.Status != machine.Cancelled {
		t.Errorf("%+v, %v", run, err)
	}
}

// TestAComputingRunIsCancelled cancels a run that computes without an end.
func TestAComputingRunIsCancelled(t *testing.T) {
	t.Parallel()
	r := newRunner(t, historymem.New(), graph.Options{})
	if _, err := r.Start(t.Context(), graph.StartRequest{ExecutionID: "r", Definition: computing(t, ".n < 0"), Wait: graph.Wait{Limit: graph.NoWait}}); err != nil {
		t.Fatal(err)
	}
	run, err := r.Cancel(t.Context(), graph.CancelRequest{ExecutionID: "r"})
	if err != nil || run.Status != machine.Cancelled {
		t.Fatalf("%+v, %v", run, err)
	}
	if run.Seq >= 10_000 {
		t.Errorf("it was cancelled after %d records", run.Seq)
	}
}

// TestAComputingRunIsGoneOnWithElsewhere lets the process die that computes a run. Another one goes on where it was, also if the
// run waits for a host beside that.
func TestAComputingRunIsGoneOnWithElsewhere(t *testing.T) {
	t.Parallel()
	for name, nodes := range map[string][]string{"alone": nil, "beside a host": {fork("f", "all", "h", "n"), step("h", "one")}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				store := historymem.New()
				mortal := historytest.NewFaultStore(store)
				r := newRunner(t, mortal, graph.Options{DefaultMode: machine.HostMediated})
				all := append([]string{
					startNode(),
					`{"id": "n", "type": "set_state", "config": {"assignments": {"n": {"jq": "(.n // 0) + ([range(20000)] | length | . - 19999)"}}}}`,
					`{"id": "w", "type": "switch", "config": {"cases": [{"when": ".n > ` + fmt.Sprint(longRounds()) + `", "target": "j"}], "default": "n"}}`,
					`{"id": "j", "type": "set_state", "config": {"assignments": {"j": {"literal": 1}}}}`,
					endNode(),
				}, nodes...)
				edges := []string{"s n", "n w", "w j", "w n", "j e"}
				if nodes != nil {
					edges = []string{"s f", "f e", "h e", "n w", "w j", "w n", "j e"}
				}
				mortal.Set(historytest.Fault{At: 4, Dead: true})
				_, err := r.Start(t.Context(), graph.StartRequest{ExecutionID: "r", Definition: workflow(t, "w", all, edges...), Wait: graph.Wait{Limit: time.Hour}})
				if !mortal.Struck() {
					t.Fatalf("nobody died: %v", err)
				}
				newRunner(t, store, graph.Options{Work: graph.WorkAll})
				time.Sleep(2 * time.Minute)
				e, err := store.Execution(t.Context(), "r")
				if err != nil {
					t.Fatal(err)
				}
				if nodes == nil && e.Phase != history.PhaseCompleted || nodes != nil && e.Phase != history.PhaseAwaitingActivity {
					t.Errorf("the run is %s at record %d", e.Phase, e.Seq)
				}
				records := records(t, store, "r")
				if n := countNode(records, history.ScheduleNode, "j") + countNode(records, history.NodeScheduled, "j"); n == 0 {
					t.Error("the loop has not come to its end")
				}
			})
		})
	}
}

func countNode(records []history.Record, name history.Name, node string) int {
	n := 0
	for i := range records {
		if records[i].Name == name && records[i].Payload.NodeID == node {
			n++
		}
	}
	return n
}

// TestInputsWaitForAComputation answers a step in one branch while another branch computes: the answer is taken once that is over.
func TestInputsWaitForAComputation(t *testing.T) {
	t.Parallel()
	r := newRunner(t, historymem.New(), graph.Options{})
	d := workflow(t, "w", []string{
		startNode(), fork("f", "all", "a", "n"), step("a", "one"),
		`{"id": "n", "type": "set_state", "config": {"assignments": {"n": {"jq": "(.n // 0) + ([range(20000)] | length | . - 19999)"}}}}`,
		`{"id": "w", "type": "switch", "config": {"cases": [{"when": ".n > ` + fmt.Sprint(longRounds()) + `", "target": "j"}], "default": "n"}}`,
		`{"id": "j", "type": "set_state", "config": {"assignments": {"j": {"literal": 1}}}}`,
		endNode(),
	}, "s f", "f e", "a e", "n w", "w j", "w n", "j e")
	begun, err := r.Start(t.Context(), graph.StartRequest{ExecutionID: "r", Definition: d, Mode: machine.HostMediated, Wait: graph.Wait{Limit: graph.NoWait}})
	for err == nil && len(begun.Pending) == 0 { // a slow machine records the start before its walk
		begun, err = r.Status(t.Context(), graph.StatusRequest{ExecutionID: "r", Since: begun.Seq, Wait: &graph.Wait{Limit: time.Minute}})
	}
	if err != nil || len(begun.Pending) != 1 {
		t.Fatalf("%+v, %v", begun, err)
	}
	for {
		run, err := r.SubmitActivity(t.Context(), graph.SubmitRequest{
			ExecutionID: "r", NodeID: "a", OK: true, Result: map[string]any{"a": 1},
			Span:   begun.Pending[0].Span,
			Caller: graph.Caller{Wait: graph.Wait{Limit: time.Minute}},
		})
		if errors.Is(err, problem.RunComputing) {
			continue // a slow machine
		}
		if err != nil || run.Status != machine.Completed || run.FinalState["n"] != float64(longRounds()+1) || run.FinalState["a"] != 1.0 {
			t.Errorf("%+v, %v", run, err)
		}
		return
	}
}

// TestCloseAbandonsAComputation closes a Runner that computes: another one goes on.
func TestCloseAbandonsAComputation(t *testing.T) {
	t.Parallel()
	store := historymem.New()
	r, err := graph.New(store, graph.Options{Activities: activities.ExecutorFunc(func(context.Context, activities.Request) (activities.Result, error) {
		return activities.Result{}, nil
	})})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Start(t.Context(), graph.StartRequest{ExecutionID: "r", Definition: computing(t, fmt.Sprint(".n > ", longRounds())), Wait: graph.Wait{Limit: graph.NoWait}}); err != nil {
		t.Fatal(err)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	again := newRunner(t, store, graph.Options{})
	run, err := again.Drive(t.Context(), graph.DriveRequest{ExecutionID: "r", Caller: graph.Caller{Wait: graph.Wait{Limit: time.Minute}}})
	if err != nil || run.Status != machine.Completed {
		t.Errorf("%+v, %v", run, err)
	}
}
