package graph_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historymem"
)

// TestAForkHasTheTimeThatWasLeft forks a run long after half of its wait was over.
func TestAForkHasTheTimeThatWasLeft(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := historymem.New()
		r := newRunner(t, store, graph.Options{DefaultMode: machine.HostMediated})
		d := workflow(t, "w", []string{startNode(), fork("p", "all", "w", "g"), timerWait("w", "1h"), signalWait("g", "go"), tool("z"), endNode()}, "s p", "p z", "w z", "g z", "z e")
		start(t, r, "r", d, nil)
		time.Sleep(30 * time.Minute)
		if _, err := r.Signal(t.Context(), graph.SignalRequest{ExecutionID: "r", Name: "go"}); err != nil {
			t.Fatal(err)
		}
		// The signal's record is half an hour younger than the timer's.
		rs := records(t, store, "r")
		time.Sleep(100 * time.Hour)
		if _, err := r.Fork(t.Context(), graph.ForkRequest{ExecutionID: "r", Seq: lastOf(rs, history.SignalReceived), NewExecutionID: "f"}); err != nil {
			t.Fatal(err)
		}
		wantStatus(t, status(t, r, "f"), machine.AwaitingTimer)
		due, err := store.DueTimers(t.Context(), time.Now().Add(29*time.Minute), 0)
		if err != nil || len(due) != 0 {
			t.Errorf("due too early: %v, %v", due, err)
		}
		time.Sleep(31 * time.Minute)
		wantStatus(t, status(t, r, "f"), machine.AwaitingActivity)
	})
}

// lastOf gives the seq of the last record of a name.
func lastOf(rs []history.Record, name history.Name) (seq int64) {
	for _, r := range rs {
		if r.Name == name {
			seq = r.Seq
		}
	}
	return seq
}

// TestAForkSharesNoSubworkflow forks a run whose subworkflow is open, and one whose subworkflow has ended.
func TestAForkSharesNoSubworkflow(t *testing.T) {
	t.Parallel()
	r, store := host(t, graph.Options{})
	register(t, r, "urn:child", linear(t, "child", "a"))
	d := workflow(t, "parent", []string{startNode(), subworkflow("v", "urn:child"), tool("b"), endNode()}, "s v", "v b", "b e")
	start(t, r, "p", d, nil)
	open := lastOf(records(t, store, "p"), history.SubworkflowStarted)
	submit(t, r, "p:sub:v", "a", object{"a": 1})
	ended := lastOf(records(t, store, "p"), history.SubworkflowCompleted)
	before := len(records(t, store, "p"))

	if _, err := r.Fork(t.Context(), graph.ForkRequest{ExecutionID: "p", Seq: open, NewExecutionID: "f"}); err != nil {
		t.Fatal(err)
	}
	run := settled(t, r, "f")
	if len(run.Pending) != 1 || run.Pending[0].ExecutionID != "f:sub:v" || run.ForkedFrom != (history.ForkOrigin{ExecutionID: "p", Seq: open}) {
		t.Errorf("%+v", run)
	}
	if _, err := r.Fork(t.Context(), graph.ForkRequest{ExecutionID: "p", Seq: ended, NewExecutionID: "g"}); err != nil {
		t.Fatal(err)
	}
	run = settled(t, r, "g")
	if len(run.Pending) != 1 || run.Pending[0].NodeID != "b" || run.Pending[0].IdempotencyKey != "g:b#1.1" {
		t.Errorf("%+v", run)
	}
	if _, err := store.Execution(t.Context(), "g:sub:v"); err == nil {
		t.Error("a subworkflow that had ended was started again")
	}
	if n := len(records(t, store, "p")); n != before {
		t.Errorf("the run that was forked grew from %d to %d records", before, n)
	}
	// A subworkflow that is forked belongs to nobody.
	if _, err := r.Fork(t.Context(), graph.ForkRequest{ExecutionID: "f:sub:v", Seq: 1, NewExecutionID: "c"}); err != nil {
		t.Fatal(err)
	}
	if run := settled(t, r, "c"); run.Parent != "" || len(run.Pending) != 1 {
		t.Errorf("%+v", run)
	}
}

// TestRefusedForks write nothing.
func TestRefusedForks(t *testing.T) {
	t.Parallel()
	r, store := host(t, graph.Options{})
	start(t, r, "r", linear(t, "lin", "a", "b"), nil)
	submit(t, r, "r", "a", nil)
	rs := records(t, store, "r")
	other := linear(t, "lin", "a", "c")
	unchanged(t, store, func() {
		for _, c := range []struct {
			req  graph.ForkRequest
			code problem.Code
		}{
			{graph.ForkRequest{ExecutionID: "nobody", Seq: 1}, problem.ExecutionNotFound},
			{graph.ForkRequest{ExecutionID: "r", Seq: 0}, problem.ValidationError},
			{graph.ForkRequest{ExecutionID: "r", Seq: int64(len(rs)) + 1}, problem.ValidationError},
			{graph.ForkRequest{ExecutionID: "r", Seq: 1, NewExecutionID: "r"}, problem.DuplicateExecutionID},
			{graph.ForkRequest{ExecutionID: "r", Seq: 1, NewExecutionID: "x:sub:y"}, problem.ValidationError},
			{graph.ForkRequest{ExecutionID: "r", Seq: int64(len(rs)), Definition: other}, problem.Nondeterminism},
		} {
			_, err := r.Fork(t.Context(), c.req)
			wantCode(t, err, c.code)
			if c.code == problem.Nondeterminism && !strings.Contains(err.Error(), `ScheduleNode of "c"`) {
				t.Errorf("no place: %v", err)
			}
		}
	})
	// Up to where the definitions part, the other one will do.
	run, err := r.Fork(t.Context(), graph.ForkRequest{ExecutionID: "r", Seq: lastOf(rs, history.ActivityCompleted), Definition: other, NewExecutionID: "f"})
	if err != nil || run.DefinitionHash != other.Hash() || len(run.Pending) != 1 || run.Pending[0].NodeID != "c" {
		t.Errorf("%+v, %v", run, err)
	}
}
