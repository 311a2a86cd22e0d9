package graph_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/view"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historymem"
	"github.com/workflows-engine/workflows-engine/internal/soak"
)

// scenario is a workflow, what registered subworkflows it needs, and how activities are performed.
type scenario struct {
	name string
	mode machine.Mode
	// branches is the order of branches, "" for the default.
	branches machine.BranchOrder
	root     func(t testing.TB) *definition.Document
	child    func(t testing.TB) *definition.Document
	// early is the name of a signal that comes while a person is asked.
	early string
	// capacity is the number of attempts at once, 0 for the default.
	capacity int
	// cancelAt is the node at which the run is cancelled, "" for none.
	cancelAt string
}

func scenarios() []scenario {
	appending := `"state_schema":{"type":"object","properties":{"l":{"type":"array","reducer":"append"}}}`
	parallel := func(t testing.TB) *definition.Document {
		return workflowWith(t, "par", appending, []string{startNode(), fork("p", "all", "l1", "l2", "l3"), tool("l1"), tool("l1b"), tool("l2"), tool("l3"), tool("z"), endNode()},
			"s p", "p z", "l1 l1b", "l1b z", "l2 z", "l3 z", "z e")
	}
	parent := func(t testing.TB) *definition.Document {
		return workflow(t, "parent", []string{startNode(), tool("a"), subworkflow("v", "urn:child"), tool("b"), endNode()}, "s a", "a v", "v b", "b e")
	}
	child := func(t testing.TB) *definition.Document { return linear(t, "child", "c", "d") }
	people := func(t testing.TB) *definition.Document {
		return workflow(t, "people", []string{startNode(), tool("a"), interrupt("i"), signalWait("w", "go"), tool("b"), endNode()}, "s a", "a i", "i w", "w b", "b e")
	}
	return []scenario{
		{name: "linear", root: func(t testing.TB) *definition.Document { return linear(t, "lin", "a", "b", "c") }},
		{name: "linear host", mode: machine.HostMediated, root: func(t testing.TB) *definition.Document { return linear(t, "lin", "a", "b") }},
		{name: "parallel", root: parallel},
		{name: "parallel host", mode: machine.HostMediated, root: parallel},
		{name: "tolerated failure", root: func(t testing.TB) *definition.Document {
			return workflow(t, "any", []string{startNode(), fork("p", "any", "fail", "slow"), tool("fail", `"retry":{"max_attempts":2,"initial_interval":"1s"}`), tool("slow"), tool("z"), endNode()},
				"s p", "p z", "fail z", "slow z", "z e")
		}},
		{name: "failure", root: func(t testing.TB) *definition.Document { return linear(t, "lin", "a", "fail", "b") }},
		{name: "repair", root: func(t testing.TB) *definition.Document { return linear(t, "lin", "a", "mend", "b") }},
		{name: "repair in a branch and in a subworkflow", child: func(t testing.TB) *definition.Document { return linear(t, "child", "mend") }, root: func(t testing.TB) *definition.Document {
			return workflow(t, "mending", []string{startNode(), fork("p", "all", "a", "mend", "v"), tool("a"), tool("mend"), subworkflow("v", "urn:child"), tool("z"), endNode()},
				"s p", "p z", "a z", "mend z", "v z", "z e")
		}},
		{name: "map", root: mapAndCatch},
		{name: "map host", mode: machine.HostMediated, root: mapAndCatch},
		{name: "loop", root: looping},
		{name: "loop host", mode: machine.HostMediated, root: looping},
		{name: "early signals", early: "go", root: early},
		{name: "early signals host", mode: machine.HostMediated, early: "go", root: early},
		{name: "rollback", root: rollingBack},
		{name: "rollback host", mode: machine.HostMediated, root: rollingBack},
		{name: "cancelled rollback", root: rollingBack, cancelAt: "pause"},
		{name: "cancelled rollback host", mode: machine.HostMediated, root: rollingBack, cancelAt: "pause"},
		{name: "queue timeout", capacity: 1, root: func(t testing.TB) *definition.Document {
			return workflowWith(t, "queue", `"x-workflows-engine":{"uses":["catch","queue"]}`, []string{
				startNode(), fork("p", "all", "slow", "l1"), tool("slow"), tool("l1", `"queue_timeout":"2m"`, `"retry":{"max_attempts":2,"initial_interval":"1m"}`, `"catch":[{"codes":["QUEUE_TIMEOUT"],"target":"z","as":"why"}]`), tool("z"), endNode(),
			}, "s p", "p e", "slow e", "l1 e", "z e")
		}},
		{name: "deadline", root: func(t testing.TB) *definition.Document {
			return workflowWith(t, "late", `"x-workflows-engine":{"uses":["catch","deadline"],"deadline":"20m"}`, []string{
				startNode(), fork("p", "all", "slow", "l1"), tool("slow", `"deadline":"5m"`, `"retry":{"max_attempts":9,"initial_interval":"4m"}`, `"catch":[{"codes":["TIMEOUT"],"target":"z","as":"why"}]`),
				tool("l1"), tool("z"), timerWait("w", "1h"), endNode(),
			}, "s p", "p w", "slow w", "l1 w", "z w", "w e")
		}},
		{name: "people", root: people},
		{name: "people host", mode: machine.HostMediated, root: people},
		{name: "timers", root: func(t testing.TB) *definition.Document {
			return workflow(t, "timers", []string{startNode(), timerWait("w", "5s"), tool("a"), timerWait("w2", "1h"), endNode()}, "s w", "w a", "a w2", "w2 e")
		}},
		{name: "loop", root: func(t testing.TB) *definition.Document { return loop(t, tool("a")) }},
		{name: "delegate", root: func(t testing.TB) *definition.Document {
			return workflow(t, "del", []string{startNode(), delegateNode("d"), endNode()}, "s d", "d e")
		}},
		{name: "subworkflow", root: parent, child: child},
		{name: "subworkflow host", mode: machine.HostMediated, root: parent, child: child},
		{name: "subworkflow failing", root: parent, child: func(t testing.TB) *definition.Document { return linear(t, "child", "c", "fail") }},
	}
}

// mapAndCatch repeats nodes and a subworkflow, and catches what fails.
func mapAndCatch(t testing.TB) *definition.Document {
	return workflowWith(t, "map", `"x-workflows-engine":{"uses":["catch","map"]}`, []string{
		startNode(), tool("a", `"map":{"items":"[1,2,3]","concurrency":2,"collect":"as"}`),
		tool("fail", `"map":{"items":"[1,2]","concurrency":1,"tolerate":{"count":1}}`, `"catch":[{"codes":["NO"],"target":"z","as":"why"}]`),
		tool("z"), endNode(),
	}, "s a", "a fail", "fail e", "z e")
}

// looping makes two rounds of two.
func looping(t testing.TB) *definition.Document {
	return workflowWith(t, "loop", `"x-workflows-engine":{"uses":["loop"]}`, []string{
		startNode(), loopNode("outer", ".i < 2", "i", "inner", "e"), loopNode("inner", ".j < 2", "j", "a", "outer"), tool("a"), endNode(),
	}, "s outer", "a inner")
}

// early waits for a signal that has come before.
func early(t testing.TB) *definition.Document {
	return workflowWith(t, "early", `"x-workflows-engine":{"uses":["early_signals"]}`,
		[]string{startNode(), tool("a"), interrupt("i"), keepingWait("w", "go"), tool("b"), endNode()}, "s a", "a i", "i w", "w b", "b e")
}

// rollingBack has a caught failure undone, begins again, and fails in the end, so that all is undone.
func rollingBack(t testing.TB) *definition.Document {
	return workflowWith(t, "saga", `"x-workflows-engine":{"uses":["catch","compensate","map"],"rollback":["cancel","failure"]}`, []string{
		startNode(), tool("a", `"compensate":{"node":"undo_a","as":"n"}`), tool("fail", `"catch":[{"codes":["NO"],"target":"p","rollback":true}]`),
		fork("p", "all", "l1", "l2"), tool("l1", `"compensate":{"node":"undo_l"}`), tool("l2", `"compensate":{"node":"undo_l"}`),
		timerWait("pause", "1h"), tool("each", `"map":{"items":"[1,2]","concurrency":1,"collect":"out"}`, `"compensate":{"node":"undo_each"}`),
		tool("fail2", `"catch":[{"codes":["OTHER"],"target":"e"}]`), tool("undo_a"), tool("undo_l"), tool("undo_each"), endNode(),
	}, "s a", "a fail", "fail e", "p pause", "l1 pause", "l2 pause", "pause each", "each fail2", "fail2 e")
}

// scripted answers for the nodes of scenarios. Outputs depend on nothing but the visit.
func scripted(ctx context.Context, req activities.Request) (activities.Result, error) {
	switch req.NodeID {
	case "slow": // in a join any the other branch then always ends first, also after a take-over
		if _, err := after(10*time.Minute, nil)(ctx, req); err != nil {
			return activities.Result{}, err
		}
	case "fail", "fail2":
		return activities.Result{}, &activities.Failure{Code: "NO", Message: "no"}
	case "mend":
		if req.Repair == nil {
			return activities.Result{}, &activities.Failure{Code: "WRONG", Message: "wrong", Repair: object{"half": "done"}}
		}
		return activities.Result{Output: object{"mend": req.Repair["half"], "attempt": req.Attempt}}, nil
	case "l1", "l2", "l3", "l1b":
		return activities.Result{Output: object{"l": []any{req.NodeID}}}, nil
	}
	out := object{req.NodeID: req.Visit}
	if n, ok := req.State()["n"].(float64); ok { // a compensation may find something else there
		out["n"] = n + 1
	}
	return activities.Result{Output: out}, nil
}

func (s scenario) runner(t testing.TB, store history.Store) *graph.Runner {
	t.Helper()
	r, err := graph.New(store, graph.Options{
		Activities: activities.ExecutorFunc(scripted), Capacity: s.capacity, DefaultMode: s.mode, Branches: s.branches,
		Delegates: activities.ExecutorFunc(func(context.Context, activities.Request) (activities.Result, error) {
			return activities.Result{Output: object{"done": true}}, nil
		}),
	})
	if err != nil {
		t.Fatal(err)
	}
	if s.child != nil {
		register(t, r, "urn:child", s.child(t))
	}
	return r
}

// drive brings the run to its end, playing host and people, and gives where it ended, or the error that stopped it.
func (s scenario) drive(t testing.TB, r *graph.Runner) (*view.Run, error) {
	t.Helper()
	run, err := r.Start(t.Context(), graph.StartRequest{ExecutionID: "r", Definition: s.root(t), Input: object{"n": 0}, AllowExisting: true})
	for err == nil && !run.Status.Terminal() {
		switch p := first(run); {
		case p != nil && s.cancelAt == p.NodeID:
			run, err = r.Cancel(t.Context(), graph.CancelRequest{ExecutionID: "r"})
		case p == nil || p.Kind == machine.WaitTimer || p.Kind == machine.WaitBackoff || p.Kind == machine.WaitChild || !p.Host && p.Kind == machine.WaitActivity || !p.Host && p.Kind == machine.WaitDelegate:
			run, err = r.Status(t.Context(), graph.StatusRequest{ExecutionID: "r", Wait: &graph.Wait{Limit: 2 * time.Hour}})
		case p.Kind == machine.WaitInterrupt:
			if s.early != "" {
				req := graph.SignalRequest{ExecutionID: "r", Name: s.early, Payload: object{"early": 1}, IdempotencyKey: "k"}
				if run, err = r.Signal(t.Context(), req); err != nil {
					break
				}
			}
			run, err = r.Resume(t.Context(), graph.ResumeRequest{ExecutionID: "r", Payload: object{"ok": true}})
		case p.Kind == machine.WaitSignal:
			run, err = r.Signal(t.Context(), graph.SignalRequest{ExecutionID: "r", Name: p.SignalName, Payload: object{"signalled": 1}})
		default:
			res, ferr := scripted(t.Context(), activities.Request{NodeID: p.NodeID, Visit: p.Visit, State: func() map[string]any { return p.State }})
			req := graph.SubmitRequest{ExecutionID: "r", NodeID: p.NodeID, Span: p.Span, OK: ferr == nil, IdempotencyKey: p.IdempotencyKey}
			if ferr != nil {
				req.Error, req.Code = ferr.Error(), "NO"
			} else {
				req.Result = res.Output.(object)
			}
			run, err = r.SubmitActivity(t.Context(), req)
		}
	}
	return run, err
}

func first(run *view.Run) *view.Pending {
	if len(run.Pending) == 0 {
		return nil
	}
	return &run.Pending[0]
}

// TestCrashAtEveryAppend stops the process at each append in turn, before and after it was written, lets another
// process take over, and compares the end with that of an undisturbed run (W-06, W-08, W-16, W-18, W-19).
func TestCrashAtEveryAppend(t *testing.T) {
	t.Parallel()
	for _, s := range scenarios() {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				store := &counting{Store: historymem.New()}
				r := s.runner(t, store)
				want, err := s.drive(t, r)
				if err != nil {
					t.Fatal(err)
				}
				closeRunner(t, r)
				commands := names(records(t, store, "r"), history.Command)
				for k := 0; k < store.appends; k += soak.Size(1, 3, 1) {
					for _, late := range []bool{false, true} {
						s.crash(t, k, late, want, commands)
					}
				}
			})
		})
	}
}

func (s scenario) crash(t *testing.T, k int, late bool, want *view.Run, commands []string) {
	t.Helper()
	at := fmt.Sprintf("append %d, late %v", k, late)
	store := historymem.New()
	r := s.runner(t, &faulty{Store: store, left: k, late: late})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	_, _ = s.driveUntil(ctx, t, r)
	closeRunner(t, r)
	time.Sleep(time.Minute) // the lease runs out

	r = s.runner(t, store)
	defer closeRunner(t, r)
	if _, err := r.Recover(t.Context(), graph.RecoverRequest{}); err != nil {
		t.Fatalf("%s: Recover: %v", at, err)
	}
	run, err := s.drive(t, r)
	if err != nil {
		t.Fatalf("%s: %v\n%v", at, err, names(records(t, store, "r"), ""))
	}
	rs := records(t, store, "r")
	if got := names(rs, history.Command); !slices.Equal(got, commands) {
		t.Errorf("%s: commands\n%v\nwant\n%v", at, got, commands)
	}
	if run.Status != want.Status || !sameJSON(run.FinalState, want.FinalState) || !sameJSON(run.Result, want.Result) || run.Error != want.Error {
		t.Errorf("%s: ended %s %v %v %q, want %s %v %v %q", at, run.Status, run.FinalState, run.Result, run.Error,
			want.Status, want.FinalState, want.Result, want.Error)
	}
	ends := count(rs, history.ExecutionCompleted) + count(rs, history.ExecutionFailed) + count(rs, history.ExecutionCancelled)
	if ends != 1 {
		t.Errorf("%s: %d ends", at, ends)
	}
	for i := range rs {
		if rs[i].Seq != int64(i+1) {
			t.Fatalf("%s: record %d has seq %d", at, i+1, rs[i].Seq)
		}
	}
}

// driveUntil is drive for a runner that may hang when its store has died.
func (s scenario) driveUntil(ctx context.Context, t *testing.T, r *graph.Runner) (*view.Run, error) {
	type answer struct {
		run *view.Run
		err error
	}
	done := make(chan answer, 1)
	go func() {
		run, err := s.drive(t, r)
		done <- answer{run, err}
	}()
	select {
	case a := <-done:
		return a.run, a.err
	case <-ctx.Done():
		closeRunner(t, r)
		a := <-done
		return a.run, a.err
	}
}

func closeRunner(t testing.TB, r *graph.Runner) {
	t.Helper()
	if err := r.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
}
