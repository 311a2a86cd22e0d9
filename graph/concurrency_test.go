package graph_test

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
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
	"github.com/workflows-engine/workflows-engine/history/historysql"
)

// processes gives Runners over one database file, each with a handle of its own, as several processes have.
func processes(t *testing.T, n int, o graph.Options) []*graph.Runner {
	t.Helper()
	path := filepath.Join(t.TempDir(), "runs.db")
	rs := make([]*graph.Runner, n)
	for i := range rs {
		store, err := historysql.Open(t.Context(), path, historysql.Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := store.Close(); err != nil {
				t.Error(err)
			}
		})
		rs[i] = newRunner(t, store, o)
	}
	return rs
}

// TestW60_OneStartWins starts one id from many sides, with and without reuse.
func TestW60_OneStartWins(t *testing.T) {
	t.Parallel()
	exec := &script{}
	rs := processes(t, 2, graph.Options{Activities: exec})
	d := linear(t, "lin", "a", "b")
	for _, reuse := range []bool{false, true} {
		id := fmt.Sprint("r-", reuse)
		var wg sync.WaitGroup
		runs, errs := make([]*view.Run, 8), make([]error, 8)
		for i := range runs {
			wg.Go(func() {
				runs[i], errs[i] = rs[i%2].Start(t.Context(), graph.StartRequest{ExecutionID: id, Definition: d, AllowExisting: reuse})
			})
		}
		wg.Wait()
		ok := 0
		for i, err := range errs {
			switch {
			case err == nil && runs[i].Status == machine.Completed:
				ok++
			case err == nil:
				t.Errorf("reuse %v: %+v", reuse, runs[i])
			default:
				wantCode(t, err, problem.DuplicateExecutionID)
			}
		}
		if want := map[bool]int{false: 1, true: 8}[reuse]; ok != want {
			t.Errorf("reuse %v: %d completed answers", reuse, ok)
		}
	}
	if exec.count() != 4 {
		t.Errorf("%d calls for two runs of two nodes", exec.count())
	}
}

// TestTwoProcessesShareHostRuns submits turn by turn through two processes, and races them on every node.
func TestTwoProcessesShareHostRuns(t *testing.T) {
	t.Parallel()
	rs := processes(t, 2, graph.Options{DefaultMode: machine.HostMediated})
	start(t, rs[0], "r", endless(t, 6), object{"n": 0})
	for i := range 6 {
		var wg sync.WaitGroup
		errs := make([]error, 4)
		for j := range errs {
			wg.Go(func() {
				_, errs[j] = rs[j%2].SubmitActivity(t.Context(), graph.SubmitRequest{ExecutionID: "r", NodeID: "a", OK: true,
					Result: object{"n": i + 1}, IdempotencyKey: fmt.Sprintf("r:a#%d.1", i+1)})
			})
		}
		wg.Wait()
		for j, err := range errs {
			if err != nil {
				t.Errorf("visit %d, submit %d: %v", i+1, j, err) // the same outcome may be submitted twice
			}
		}
		if run := status(t, rs[i%2], "r"); run.NodeVisits < 2*(i+1) {
			t.Errorf("visit %d: %+v", i+1, run)
		}
	}
	for _, r := range rs {
		run := status(t, r, "r")
		if run.Status != machine.Completed || !sameJSON(run.FinalState, object{"n": 6}) {
			t.Errorf("%+v", run)
		}
	}
	hist, err := rs[0].History(t.Context(), graph.HistoryRequest{ExecutionID: "r"})
	if err != nil || count(hist, history.ActivityCompleted) != 6 || count(hist, history.ExecutionCompleted) != 1 {
		t.Errorf("%v: %v", err, names(hist, ""))
	}
}

// TestManyRunsAtOnce drives runs of several kinds through two processes on one file.
func TestManyRunsAtOnce(t *testing.T) {
	t.Parallel()
	rs := processes(t, 2, graph.Options{Activities: activities.ExecutorFunc(scripted)})
	d := workflow(t, "par", []string{startNode(), fork("p", "all", "l1", "l2"), tool("l1"), tool("l2"), subworkflow("v", "urn:c"), endNode()},
		"s p", "p v", "l1 v", "l2 v", "v e")
	for _, r := range rs {
		register(t, r, "urn:c", linear(t, "c", "x"))
	}
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			run, err := rs[i%2].Start(t.Context(), graph.StartRequest{ExecutionID: fmt.Sprint(i), Definition: d})
			if err != nil || run.Status != machine.Completed {
				t.Errorf("%d: %+v, %v", i, run, err)
			}
		})
	}
	wg.Wait()
}

// TestW15_OnlyHostRequestsTakeASubmit submits for an activity that an executor is busy with.
func TestW15_OnlyHostRequestsTakeASubmit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := historymem.New()
		exec := &script{answers: answers{"a": after(time.Minute, object{"by": "executor"})}}
		r := newRunner(t, store, graph.Options{Activities: exec})
		start(t, r, "r", linear(t, "lin", "a"), nil)
		unchanged(t, store, func() {
			for _, runner := range []*graph.Runner{r, newRunner(t, store, graph.Options{DefaultMode: machine.HostMediated})} {
				_, err := runner.SubmitActivity(t.Context(), graph.SubmitRequest{ExecutionID: "r", NodeID: "a", OK: true})
				wantCode(t, err, problem.SubmitNotAwaiting)
			}
		})
		if run := settled(t, r, "r"); !sameJSON(run.FinalState, object{"by": "executor"}) {
			t.Errorf("%+v", run)
		}
	})
}

// TestAnotherProcessGivesASignalToARunThatIsDriven holds that the driver performs what follows, and only once.
func TestAnotherProcessGivesASignalToARunThatIsDriven(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := historymem.New()
		exec := &script{answers: answers{"a": after(time.Minute, object{"a": 1}), "b": after(time.Second, object{"b": 1})}}
		other := &script{}
		r := newRunner(t, store, graph.Options{Activities: exec})
		o := newRunner(t, store, graph.Options{Activities: other, Work: graph.WorkAll})
		d := workflow(t, "par", []string{startNode(), fork("p", "all", "a", "w"), tool("a"), signalWait("w", "go"), tool("b"), endNode()},
			"s p", "p e", "a e", "w b", "b e")
		start(t, r, "r", d, nil)
		run, err := o.Signal(t.Context(), graph.SignalRequest{ExecutionID: "r", Name: "go", Payload: object{"s": 1}})
		if err != nil {
			t.Fatal(err)
		}
		wantStatus(t, run, machine.Running)
		run = settled(t, o, "r")
		if !sameJSON(run.FinalState, object{"a": 1, "b": 1, "s": 1}) {
			t.Errorf("%+v", run)
		}
		if exec.count() != 2 || other.count() != 0 {
			t.Errorf("%d and %d calls", exec.count(), other.count())
		}
	})
}

// TestModeIsRememberedAndCanBeChanged goes from the host to the process in the middle of a run.
func TestModeIsRememberedAndCanBeChanged(t *testing.T) {
	t.Parallel()
	store := historymem.New()
	r := newRunner(t, store, graph.Options{Activities: &script{}})
	run, err := r.Start(t.Context(), graph.StartRequest{ExecutionID: "r", Definition: linear(t, "lin", "a", "b", "c"), Mode: machine.HostMediated})
	if err != nil {
		t.Fatal(err)
	}
	wantStatus(t, run, machine.AwaitingActivity)
	run = submit(t, r, "r", "a", nil)
	wantStatus(t, run, machine.AwaitingActivity)
	_, err = r.SubmitActivity(t.Context(), graph.SubmitRequest{ExecutionID: "r", NodeID: "x", OK: true, Caller: graph.Caller{Mode: machine.InProcess}})
	wantCode(t, err, problem.SubmitNodeMismatch)
	if run := status(t, r, "r"); run.Mode != machine.HostMediated {
		t.Errorf("a refused submit changed the mode to %s", run.Mode)
	}
	run, err = r.SubmitActivity(t.Context(), graph.SubmitRequest{ExecutionID: "r", NodeID: "b", OK: true, Caller: graph.Caller{Mode: machine.InProcess}})
	if err != nil || run.Status != machine.Completed || run.Mode != machine.InProcess {
		t.Errorf("%+v, %v", run, err)
	}
}

// TestW45_CallsDoNotReadTheHistory counts what a submit asks of the store: at hand nothing but its own append; after a
// restart a few lookups and a short tail, however long the history is.
func TestW45_CallsDoNotReadTheHistory(t *testing.T) {
	t.Parallel()
	store := &counting{Store: historymem.New()}
	o := graph.Options{DefaultMode: machine.HostMediated}
	r := newRunner(t, store, o)
	d := endless(t, 300)
	start(t, r, "r", d, object{"n": 0})
	for i := range 250 {
		store.reset()
		run := submit(t, r, "r", "a", object{"n": i})
		if store.appends != 1 || store.reads != 0 || store.positions != 1 {
			t.Fatalf("submit %d at seq %d: %d appends, %d reads, %d positions", i, run.Seq, store.appends, store.reads, store.positions)
		}
	}
	store.reset()
	submit(t, newRunner(t, store, o), "r", "a", object{"n": 250})
	if store.appends != 1 || store.reads > 5 || store.records > 20 {
		t.Errorf("after a restart: %d appends, %d reads of %d records", store.appends, store.reads, store.records)
	}
}

// TestOneCommitForEachEffect counts the appends of a run in process, and the positions stored on the way.
func TestOneCommitForEachEffect(t *testing.T) {
	t.Parallel()
	store := &counting{Store: historymem.New()}
	r := newRunner(t, store, graph.Options{Activities: activities.ExecutorFunc(func(_ context.Context, req activities.Request) (activities.Result, error) {
		return activities.Result{Output: object{"n": req.Visit}}, nil
	})})
	run := start(t, r, "r", endless(t, 200), object{"n": 0})
	wantStatus(t, run, machine.Completed)
	if store.appends != 201 || store.positions != 3 {
		t.Errorf("%d appends and %d positions for 200 nodes", store.appends, store.positions)
	}
}

// TestW42_ALoopWithoutEndIsEnded runs into the budget of node visits.
func TestW42_ALoopWithoutEndIsEnded(t *testing.T) {
	t.Parallel()
	r := newRunner(t, historymem.New(), graph.Options{Activities: &script{}, MaxVisits: 50})
	d := workflow(t, "forever", []string{startNode(), tool("a"), `{"id":"sw","type":"switch","config":{"cases":[{"when":"true","target":"a"}],"default":"e"}}`, endNode()}, "s a", "a sw")
	run := start(t, r, "r", d, nil)
	wantStatus(t, run, machine.Failed)
	if run.ErrorCode != string(problem.StepBudgetExceeded) || run.NodeVisits != 50 || run.MaxVisits != 50 {
		t.Errorf("%+v", run)
	}
}
