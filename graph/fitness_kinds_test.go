package graph_test

import (
	"slices"
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

// TestATaskOfAnAgentThatIsMissing leaves a task and its question to processes that reach the agent. The answer to the question
// may come through any, and its limit holds even if none of them lives.
func TestATaskOfAnAgentThatIsMissing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a, store := &agent{}, historymem.New()
		d := workflow(t, "w", []string{startNode(), delegateNode("d", `"timeout":"3h"`), step("b", "one"), endNode()}, "s d", "d b", "b e")
		reaches := graph.Options{Delegates: a, Work: graph.WorkAll}
		first := newRunner(t, store, reaches)
		begun := time.Now()
		atOnce(t, first, "r", d)
		closeRunner(t, first)

		lone := newRunner(t, store, equip(t, &script{}, "one"))
		time.Sleep(time.Hour)
		run := status(t, lone, "r")
		if run.Status != machine.Running || run.Lacks == nil || run.Lacks.NodeID != "d" || run.Lacks.Host || a.polled() > 0 {
			t.Errorf("%+v, lacks %+v, %d polls", run, run.Lacks, a.polled())
		}
		second := newRunner(t, store, reaches)
		a.becomes("r:d#1.1", activities.Task{State: activities.TaskAsks, Prompt: "Which file?"})
		run = settled(t, second, "r")
		wantStatus(t, run, machine.Interrupted)
		closeRunner(t, second)

		run, err := answer(t, lone, "r", run.Pending[0].ID, object{"text": "go.mod"})
		if err != nil || run.Lacks == nil || run.Lacks.NodeID != "d" {
			t.Fatalf("%+v, %v", run, err)
		}
		time.Sleep(time.Until(begun.Add(3*time.Hour + 39*time.Second))) // past the limit, which is first for who can tell the agent
		wantStatus(t, status(t, lone, "r"), machine.Running)
		time.Sleep(time.Minute)
		run = status(t, lone, "r")
		if wantStatus(t, run, machine.Failed); run.ErrorNodeID != "d" || run.ErrorCode != string(problem.Timeout) {
			t.Errorf("%+v", run)
		}
	})
}

// TestAForkForAnotherProcess forks a run where what follows is missing: the new run stands there, is not failed, and goes on
// where it can.
func TestAForkForAnotherProcess(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := historymem.New()
		d := workflow(t, "w", []string{startNode(), step("a", "one"), step("b", "two"), step("c", "one"), endNode()}, "s a", "a b", "b c", "c e")
		all := newRunner(t, store, equip(t, &script{}, "one", "two"))
		wantStatus(t, start(t, all, "r", d, nil), machine.Completed)
		closeRunner(t, all)
		one, two := &script{}, &script{}
		r := newRunner(t, store, equip(t, one, "one"))
		rs := records(t, store, "r")
		seq := rs[slices.IndexFunc(rs, func(r history.Record) bool { return r.Name == history.ActivityCompleted })].Seq
		run, err := r.Fork(t.Context(), graph.ForkRequest{ExecutionID: "r", Seq: seq, NewExecutionID: "f"})
		if err != nil || run.Status != machine.Running || run.Lacks == nil || run.Lacks.ExecutionID != "f" || run.Lacks.NodeID != "b" {
			t.Fatalf("%+v, %v", run, err)
		}
		newRunner(t, store, equip(t, two, "two"))
		wantStatus(t, settled(t, r, "f"), machine.Completed)
		if !slices.Equal(one.keys(), []string{"f:c#1.1"}) || !slices.Equal(two.keys(), []string{"f:b#1.1"}) {
			t.Errorf("performed %v and %v", one.keys(), two.keys())
		}
		once(t, store, "f")
	})
}

// TestAHostBesideWhatIsMissing answers a run so that a host performs what follows, while an attempt that has been asked for
// in process waits for its handler: that one is not the host's.
func TestAHostBesideWhatIsMissing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := historymem.New()
		d := workflow(t, "w", []string{startNode(), fork("f", "all", "a", "g"), step("a", "two"), signalWait("g", "go"), step("b", "two"), endNode()},
			"s f", "f e", "a e", "g b", "b e")
		bereft(t, store, d)
		time.Sleep(time.Minute)
		lone := newRunner(t, store, equip(t, &script{}, "one"))
		run, err := lone.Signal(t.Context(), graph.SignalRequest{ExecutionID: "r", Name: "go", Caller: graph.Caller{Mode: machine.HostMediated}})
		if err != nil || run.Lacks == nil || run.Lacks.NodeID != "a" || run.Lacks.Host {
			t.Fatalf("%+v, %v", run, err)
		}
		i := slices.IndexFunc(run.Pending, func(p view.Pending) bool { return p.NodeID == "b" && p.Host })
		if i < 0 {
			t.Fatalf("pending %+v", run.Pending)
		}
		run, err = lone.SubmitActivity(t.Context(), graph.SubmitRequest{ExecutionID: "r", NodeID: "b", Span: run.Pending[i].Span, OK: true, Result: object{"b": 1}})
		if err != nil || run.Lacks == nil || run.Status != machine.Running {
			t.Fatalf("%+v, %v", run, err)
		}
		newRunner(t, store, equip(t, &script{}, "two"))
		wantStatus(t, settled(t, lone, "r"), machine.Completed)
		once(t, store, "r")
	})
}
