package graph_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historymem"
)

// family registers a child with the given nodes and gives a parent that calls it.
func family(t testing.TB, r *graph.Runner, nodes []string, edges ...string) (parent *definition.Document) {
	t.Helper()
	register(t, r, "urn:child", workflow(t, "child", nodes, edges...))
	return workflow(t, "parent", []string{startNode(), subworkflow("v", "urn:child"), endNode()}, "s v", "v e")
}

func register(t testing.TB, r *graph.Runner, ref string, d *definition.Document) {
	t.Helper()
	if err := r.RegisterWorkflow(ref, d); err != nil {
		t.Fatal(err)
	}
}

func TestSubworkflowInProcess(t *testing.T) {
	t.Parallel()
	store := historymem.New()
	r := newRunner(t, store, graph.Options{Activities: &script{}})
	d := family(t, r, []string{startNode(), tool("a"), endNode()}, "s a", "a e")
	run := start(t, r, "p", d, object{"in": 1})
	wantStatus(t, run, machine.Completed)
	if !sameJSON(run.FinalState, object{"in": 1, "from": "v", "a": 1}) || run.ChildExecutionID != "p:sub:v" {
		t.Errorf("run %+v", run)
	}
	if run.ParentExecutionID != "" || run.ChildParentID() != "p" {
		t.Errorf("a root has the parent %q, its child %q", run.ParentExecutionID, run.ChildParentID())
	}
	child := status(t, r, "p:sub:v")
	if child.ChildParentID() != "p" || child.Status != machine.Completed || child.ParentExecutionID != "p" {
		t.Errorf("child %+v", child)
	}
	if s := records(t, store, "p:sub:v")[0].Payload; s.ParentExecutionID != "p" || s.Depth != 1 {
		t.Errorf("child started with %+v", s)
	}
}

// TestW10b_AChildThatPausesPausesItsParent forwards a submit, a resume and a signal down three levels.
func TestW10b_AChildThatPausesPausesItsParent(t *testing.T) {
	t.Parallel()
	r, store := host(t, graph.Options{})
	register(t, r, "urn:inner", workflow(t, "inner", []string{startNode(), tool("a"), interrupt("i"), signalWait("w", "go"), endNode()}, "s a", "a i", "i w", "w e"))
	register(t, r, "urn:middle", workflow(t, "middle", []string{startNode(), subworkflow("m", "urn:inner"), endNode()}, "s m", "m e"))
	d := workflow(t, "outer", []string{startNode(), subworkflow("o", "urn:middle"), endNode()}, "s o", "o e")
	const inner = "p:sub:o:sub:m"
	run := start(t, r, "p", d, nil)
	wantStatus(t, run, machine.AwaitingActivity)
	if p := run.Pending; len(p) != 1 || p[0].ExecutionID != inner || p[0].NodeID != "a" || p[0].Config["tool"] != "a" || run.CurrentNodeID != "a" {
		t.Fatalf("pending %+v", run.Pending)
	}
	unchanged(t, store, func() {
		_, err := r.SubmitActivity(t.Context(), graph.SubmitRequest{ExecutionID: "p", NodeID: "x", OK: true})
		wantCode(t, err, problem.SubmitNodeMismatch)
		_, err = r.Signal(t.Context(), graph.SignalRequest{ExecutionID: "p", Name: "go"})
		wantCode(t, err, problem.SignalNotAwaiting)
		_, err = r.Resume(t.Context(), graph.ResumeRequest{ExecutionID: "p", Payload: object{"ok": true}})
		wantCode(t, err, problem.InvalidResumePayload)
	})
	run = submit(t, r, "p", "a", object{"a": 1})
	wantStatus(t, run, machine.Interrupted)
	// A fresh process, and the child's own interrupt id.
	r = newRunner(t, store, graph.Options{})
	run, err := r.Resume(t.Context(), graph.ResumeRequest{ExecutionID: "p", InterruptID: run.Pending[0].ID, Payload: object{"ok": true}})
	if err != nil {
		t.Fatal(err)
	}
	wantStatus(t, run, machine.AwaitingSignal)
	wantStatus(t, status(t, r, "p:sub:o"), machine.AwaitingSignal)
	run, err = r.Signal(t.Context(), graph.SignalRequest{ExecutionID: "p", Name: "go", Payload: object{"w": 1}})
	if err != nil {
		t.Fatal(err)
	}
	wantStatus(t, run, machine.Completed)
	if !sameJSON(run.FinalState, object{"from": "m", "a": 1, "ok": true, "w": 1}) {
		t.Errorf("final state %v", run.FinalState)
	}
}

// TestSubmitToTheChildItself goes by the child's id; the parent learns of the end.
func TestSubmitToTheChildItself(t *testing.T) {
	t.Parallel()
	r, _ := host(t, graph.Options{})
	d := family(t, r, []string{startNode(), tool("a"), endNode()}, "s a", "a e")
	start(t, r, "p", d, nil)
	wantStatus(t, submit(t, r, "p:sub:v", "a", object{"a": 1}), machine.Completed)
	run := status(t, r, "p")
	wantStatus(t, run, machine.Completed)
	if !sameJSON(run.FinalState, object{"from": "v", "a": 1}) {
		t.Errorf("final state %v", run.FinalState)
	}
}

func TestSubworkflowsThatCannotStart(t *testing.T) {
	t.Parallel()
	typed := workflowWith(t, "typed", `"state_schema":{"type":"object","properties":{"from":{"type":"integer"}}}`, []string{startNode(), endNode()}, "s e")
	for name, c := range map[string]struct {
		ref, pin string
		code     problem.Code
	}{
		"unknown reference": {"urn:nobody", "", problem.WorkflowNotFound},
		"wrong pin":         {"urn:child", `"version_pin":"` + strings.Repeat("0", 64) + `"`, problem.VersionPinMismatch},
		"input refused":     {"urn:typed", "", problem.ValidationError},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := historymem.New()
			r := newRunner(t, store, graph.Options{Activities: &script{}})
			register(t, r, "urn:child", linear(t, "child", "a"))
			register(t, r, "urn:typed", typed)
			var members []string
			if c.pin != "" {
				members = append(members, c.pin)
			}
			run := start(t, r, "p", workflow(t, "parent", []string{startNode(), subworkflow("v", c.ref, members...), endNode()}, "s v", "v e"), nil)
			wantStatus(t, run, machine.Failed)
			if run.ErrorCode != string(c.code) || run.ErrorNodeID != "v" {
				t.Errorf("%s at %s: %s", run.ErrorCode, run.ErrorNodeID, run.Error)
			}
			if n := len(heads(t, store)); n != 1 {
				t.Errorf("%d runs", n)
			}
		})
	}
}

func TestSubworkflowsByPinResolverAndStore(t *testing.T) {
	t.Parallel()
	child := linear(t, "stored-child", "a")
	pinned := `"version_pin":"` + child.Hash() + `"`
	asked := ""
	r := newRunner(t, historymem.New(), graph.Options{Activities: &script{}, Workflows: resolver(func(ref, pin string) (*definition.Document, error) {
		asked += ref + " "
		if ref == "urn:remote" && pin == child.Hash() {
			return child, nil
		}
		return nil, problem.New(problem.WorkflowNotFound, "no")
	})})
	run := start(t, r, "remote", workflow(t, "p1", []string{startNode(), subworkflow("v", "urn:remote", pinned), endNode()}, "s v", "v e"), nil)
	wantStatus(t, run, machine.Completed)
	run = start(t, r, "stored", workflow(t, "p2", []string{startNode(), subworkflow("v", "stored-child", pinned), endNode()}, "s v", "v e"), nil)
	wantStatus(t, run, machine.Completed)
	register(t, r, "urn:remote", linear(t, "other", "b"))
	run = start(t, r, "registered", workflow(t, "p3", []string{startNode(), subworkflow("v", "urn:remote"), endNode()}, "s v", "v e"), nil)
	if !sameJSON(run.FinalState, object{"from": "v", "b": 1}) {
		t.Errorf("final state %v", run.FinalState)
	}
	if asked != "urn:remote " { // what is pinned and stored is not asked for
		t.Errorf("asked for %s", asked)
	}
}

type resolver func(ref, pin string) (*definition.Document, error)

func (f resolver) ResolveWorkflow(_ context.Context, ref, pin string) (*definition.Document, error) {
	return f(ref, pin)
}

// slowResolver takes a minute, or until its context ends.
type slowResolver struct{ d *definition.Document }

func (s slowResolver) ResolveWorkflow(ctx context.Context, _, _ string) (*definition.Document, error) {
	select {
	case <-time.After(time.Minute):
		return s.d, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// TestASlowResolverHoldsUpNobody asks, cancels and closes while a reference is being resolved.
func TestASlowResolverHoldsUpNobody(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := historymem.New()
		o := graph.Options{Activities: &script{}, Workflows: slowResolver{linear(t, "child", "a")}}
		r := newRunner(t, store, o)
		d := workflow(t, "parent", []string{startNode(), subworkflow("v", "urn:slow"), endNode()}, "s v", "v e")
		begun := time.Now()
		for _, id := range []string{"gone", "later"} {
			if _, err := r.Start(t.Context(), graph.StartRequest{ExecutionID: id, Definition: d, Wait: graph.Wait{Limit: graph.NoWait}}); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		wantStatus(t, status(t, r, "later"), machine.Running)
		wantStatus(t, cancel(t, r, "gone", ""), machine.Cancelled)
		closeRunner(t, r)
		if d := time.Since(begun); d != 0 {
			t.Errorf("held up for %s", d)
		}
		if _, err := store.Execution(t.Context(), "gone:sub:v"); err == nil {
			t.Error("a child nobody waits for was begun")
		}
		o.Work = graph.WorkAll
		wantStatus(t, settled(t, newRunner(t, store, o), "later"), machine.Completed)
	})
}

// TestSubworkflowDepth nests without end: the root and four levels run, the fifth start fails.
func TestSubworkflowDepth(t *testing.T) {
	t.Parallel()
	store := historymem.New()
	r := newRunner(t, store, graph.Options{})
	d := workflow(t, "again", []string{startNode(), subworkflow("v", "urn:again"), endNode()}, "s v", "v e")
	register(t, r, "urn:again", d)
	run := start(t, r, "p", d, nil)
	wantStatus(t, run, machine.Failed)
	if !strings.Contains(run.Error, "nested") {
		t.Errorf("error %q", run.Error)
	}
	if n := len(heads(t, store)); n != 5 {
		t.Errorf("%d runs", n)
	}
	deepest := status(t, r, "p"+strings.Repeat(":sub:v", 4))
	if deepest.ErrorCode != string(problem.SubworkflowDepthExceeded) {
		t.Errorf("deepest %+v", deepest)
	}
}

// TestPausesReachDownToTheDepthLimit has a branch whose subworkflows are nested as deep as they may be, beside one that
// waits itself: what waits at the bottom is named by the parent and answered through it, level by level in the history,
// and a cancel of the parent ends all of them.
func TestPausesReachDownToTheDepthLimit(t *testing.T) {
	t.Parallel()
	for _, end := range []string{"answered", "cancelled"} {
		t.Run(end, func(t *testing.T) {
			t.Parallel()
			r, store := host(t, graph.Options{})
			register(t, r, "urn:4", workflow(t, "l4", []string{startNode(), tool("a"), interrupt("i"), signalWait("w", "go"), endNode()}, "s a", "a i", "i w", "w e"))
			for level := 3; level >= 1; level-- {
				register(t, r, fmt.Sprintf("urn:%d", level), workflow(t, fmt.Sprintf("l%d", level),
					[]string{startNode(), subworkflow("v", fmt.Sprintf("urn:%d", level+1)), endNode()}, "s v", "v e"))
			}
			d := workflow(t, "root", []string{startNode(), fork("p", "all", "v", "b"), subworkflow("v", "urn:1"), tool("b"), endNode()},
				"s p", "p e", "v e", "b e")
			deepest := "r" + strings.Repeat(":sub:v", 4)
			run := start(t, r, "r", d, nil)
			if len(run.Pending) != 2 || run.Pending[0].ExecutionID != deepest || run.Pending[0].NodeID != "a" || run.Pending[1].NodeID != "b" {
				t.Fatalf("pending %+v", run.Pending)
			}
			submit(t, r, "r", "a", object{"a": 1})
			if end == "cancelled" {
				wantStatus(t, cancel(t, r, "r", "enough"), machine.Cancelled)
				for id := deepest; id != "r"; id = strings.TrimSuffix(id, ":sub:v") {
					wantStatus(t, status(t, r, id), machine.Cancelled)
				}
				return
			}
			r = newRunner(t, store, graph.Options{DefaultMode: machine.HostMediated}) // another process goes on
			run, err := r.Resume(t.Context(), graph.ResumeRequest{ExecutionID: "r", Payload: object{"ok": true}})
			if err != nil || len(run.Pending) != 2 || run.Pending[0].ExecutionID != deepest || run.Pending[0].SignalName != "go" {
				t.Fatalf("pending %+v, %v", run, err)
			}
			if run, err = r.Signal(t.Context(), graph.SignalRequest{ExecutionID: "r", Name: "go"}); err != nil || len(run.Pending) != 1 {
				t.Fatalf("pending %+v, %v", run, err)
			}
			run, err = r.SubmitActivity(t.Context(), graph.SubmitRequest{
				ExecutionID: "r", NodeID: "b", Span: run.Pending[0].Span, OK: true, Result: object{"b": 1},
			})
			if err != nil {
				t.Fatal(err)
			}
			wantStatus(t, run, machine.Completed)
			if !sameJSON(run.FinalState, object{"from": "v", "a": 1, "ok": true, "b": 1}) {
				t.Errorf("final state %v", run.FinalState)
			}
			for id := deepest; id != "r"; id = strings.TrimSuffix(id, ":sub:v") {
				wantStatus(t, status(t, r, id), machine.Completed)
			}
		})
	}
}

// TestW17_EachVisitHasAChildOfItsOwn calls a child in a loop.
func TestW17_EachVisitHasAChildOfItsOwn(t *testing.T) {
	t.Parallel()
	exec := &script{answers: answers{"x": func(_ context.Context, req activities.Request) (any, error) {
		return object{"n": req.State()["n"].(float64) + 1}, nil
	}}}
	store := historymem.New()
	r := newRunner(t, store, graph.Options{Activities: exec})
	register(t, r, "urn:child", workflow(t, "child", []string{startNode(), tool("x"), endNode()}, "s x", "x e"))
	d := loop(t, `{"id":"a","type":"subworkflow","config":{"workflow_ref":"urn:child","input_mapping":{"n":"${ .n }"}}}`)
	run := start(t, r, "p", d, object{"n": 0})
	wantStatus(t, run, machine.Completed)
	if !sameJSON(run.FinalState, object{"n": 3}) {
		t.Errorf("final state %v", run.FinalState)
	}
	if want := []string{"p:sub:a:x#1.1", "p:sub:a#2:x#1.1", "p:sub:a#3:x#1.1"}; !slices.Equal(exec.keys(), want) {
		t.Errorf("calls %v", exec.keys())
	}
}

// TestW63_AForgedChildIsNotTaken finds a run under the child's id that belongs to nobody.
func TestW63_AForgedChildIsNotTaken(t *testing.T) {
	t.Parallel()
	store := historymem.New()
	r := newRunner(t, store, graph.Options{Activities: &script{}})
	d := family(t, r, []string{startNode(), tool("a"), endNode()}, "s a", "a e")
	rs := records(t, store, start(t, r, "forged", linear(t, "child", "a"), nil).ExecutionID)
	for i := range rs {
		rs[i].Raw = nil
	}
	e := history.Project("p:sub:v", rs)
	if err := store.Append(t.Context(), history.Batch{ExecutionID: "p:sub:v", Records: rs, Execution: e}); err != nil {
		t.Fatal(err)
	}
	run := start(t, r, "p", d, nil)
	wantStatus(t, run, machine.Failed)
	if run.ErrorCode != string(problem.DuplicateExecutionID) {
		t.Errorf("%s %s", run.ErrorCode, run.Error)
	}
}

// TestW10_ACancelledChildIsNoSuccess cancels the child itself.
func TestW10_ACancelledChildIsNoSuccess(t *testing.T) {
	t.Parallel()
	r, _ := host(t, graph.Options{})
	d := family(t, r, []string{startNode(), tool("a"), endNode()}, "s a", "a e")
	start(t, r, "p", d, nil)
	cancel(t, r, "p:sub:v", "no need")
	run := status(t, r, "p")
	wantStatus(t, run, machine.Failed)
	if !strings.Contains(run.Error, "no need") {
		t.Errorf("error %q", run.Error)
	}
}

// TestW07_CancelGoesDown cancels the root of three levels; and a join that is decided cancels the other branch's child.
func TestW07_CancelGoesDown(t *testing.T) {
	t.Parallel()
	r, _ := host(t, graph.Options{})
	register(t, r, "urn:inner", linear(t, "inner", "a"))
	register(t, r, "urn:middle", workflow(t, "middle", []string{startNode(), subworkflow("m", "urn:inner"), endNode()}, "s m", "m e"))
	d := workflow(t, "outer", []string{startNode(), subworkflow("o", "urn:middle"), endNode()}, "s o", "o e")
	start(t, r, "p", d, nil)
	wantStatus(t, cancel(t, r, "p", "stop"), machine.Cancelled)
	for _, id := range []string{"p:sub:o", "p:sub:o:sub:m"} {
		wantStatus(t, status(t, r, id), machine.Cancelled)
	}

	any := workflow(t, "any", []string{startNode(), fork("f", "any", "v", "w"), subworkflow("v", "urn:inner"), signalWait("w", "go"), endNode()},
		"s f", "f e", "v e", "w e")
	run := start(t, r, "q", any, nil)
	if len(run.Pending) != 2 || run.Pending[0].ExecutionID != "q:sub:v" || run.Status != machine.AwaitingSignal {
		t.Fatalf("run %+v", run)
	}
	run, err := r.Signal(t.Context(), graph.SignalRequest{ExecutionID: "q", Name: "go"})
	if err != nil {
		t.Fatal(err)
	}
	wantStatus(t, run, machine.Completed)
	wantStatus(t, status(t, r, "q:sub:v"), machine.Cancelled)
}

// TestChildrenRunWhileTheCallWaits covers timers and executors of a child.
func TestChildrenRunWhileTheCallWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRunner(t, historymem.New(), graph.Options{Activities: &script{answers: answers{"a": after(3*time.Second, object{"a": 1})}}})
		d := family(t, r, []string{startNode(), timerWait("w", "2s"), tool("a"), timerWait("w2", "1h"), endNode()}, "s w", "w a", "a w2", "w2 e")
		begun := time.Now()
		run := start(t, r, "p", d, nil)
		if run.Status != machine.AwaitingTimer || time.Since(begun) != 5*time.Second {
			t.Errorf("%s after %s", run.Status, time.Since(begun))
		}
		if p := run.Pending[0]; p.Kind != machine.WaitTimer || p.ExecutionID != "p:sub:v" {
			t.Errorf("pending %+v", p)
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		wantStatus(t, status(t, r, "p"), machine.Completed)
	})
}

// TestStatusBesideABranchThatAnotherProcessContinues: a run that waits in one branch also shows what its subworkflow in another branch
// waits for now, whoever has gone on with it. A process that showed the old would have its host perform it again.
func TestStatusBesideABranchThatAnotherProcessContinues(t *testing.T) {
	t.Parallel()
	store := historymem.New()
	var pair [2]*graph.Runner
	for i := range pair {
		pair[i] = newRunner(t, store, graph.Options{DefaultMode: machine.HostMediated})
		register(t, pair[i], "urn:child", workflow(t, "child", []string{startNode(), tool("c"), tool("d"), endNode()}, "s c", "c d", "d e"))
	}
	d := workflow(t, "parent", []string{
		startNode(), fork("p", "all", "v", "a"), subworkflow("v", "urn:child"), tool("a"), endNode(),
	}, "s p", "p e", "v e", "a e")
	start(t, pair[0], "r", d, nil)
	nodes := func(r *graph.Runner) (found []string) {
		for _, p := range status(t, r, "r").Pending {
			found = append(found, p.NodeID)
		}
		slices.Sort(found)
		return found
	}
	want := func(nodeIDs ...string) {
		t.Helper()
		for i, r := range pair {
			if got := nodes(r); !slices.Equal(got, nodeIDs) {
				t.Errorf("process %d shows %v, want %v", i, got, nodeIDs)
			}
		}
	}
	want("a", "c")
	submit(t, pair[1], "r:sub:v", "c", nil)
	want("a", "d")
	submit(t, pair[0], "r:sub:v", "d", nil)
	want("a")
}
