package graph_test

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/graph/view"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historymem"
)

// foreign gives a store with the history of a run as the reference engine leaves it: without the members that this
// engine adds, and without its definition.
func foreign(t *testing.T, id string, d *definition.Document, input map[string]any, mode machine.Mode) history.Store {
	t.Helper()
	source := historymem.New()
	r := newRunner(t, source, graph.Options{Branches: machine.Sequential, Activities: &script{answers: answers{"a": hang}}})
	if _, err := r.Start(t.Context(), graph.StartRequest{ExecutionID: id, Definition: d, Input: input, Mode: mode, Wait: graph.Wait{Limit: graph.NoWait}}); err != nil {
		t.Fatal(err)
	}
	store := historymem.New()
	copyForeign(t, store, id, records(t, source, id))
	return store
}

// copyForeign stores records as the reference engine would have written them.
func copyForeign(t *testing.T, store history.Store, id string, rs []history.Record) {
	t.Helper()
	rs = slices.Clone(rs)
	for i := range rs {
		p := &rs[i].Payload
		rs[i].Raw = nil
		p.Mode, p.Branches, p.InputHash, p.Input, p.Visit, p.Depth = "", "", "", nil, 0, 0
		p.DueAt, p.RetryAt = time.Time{}, time.Time{}
		if rs[i].Name == history.ExecutionStarted {
			p.DefinitionHash, p.ParentExecutionID = "", ""
		}
	}
	if err := store.Append(t.Context(), history.Batch{ExecutionID: id, Records: rs, Execution: history.Project(id, rs)}); err != nil {
		t.Fatal(err)
	}
}

// TestAForeignHistoryCutAnywhere continues what the reference engine left when it stopped after any of its rows, which
// it writes one by one (spec: execution, 10.8).
func TestAForeignHistoryCutAnywhere(t *testing.T) {
	t.Parallel()
	for _, s := range scenarios() {
		if len(s.root(t).Uses()) > 0 {
			continue // the reference refuses extensions
		}
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s.branches = machine.Sequential
				source := historymem.New()
				r := s.runner(t, source)
				want, err := s.drive(t, r)
				if err != nil {
					t.Fatal(err)
				}
				closeRunner(t, r)
				whole := records(t, source, "r")
				for cut := 1; cut < len(whole); cut++ {
					s.cut(t, source, whole, cut, want)
				}
			})
		})
	}
}

func (s scenario) cut(t *testing.T, source history.Store, whole []history.Record, cut int, want *view.Run) {
	t.Helper()
	last := whole[cut-1]
	if last.Name == history.ResumeInterrupt || last.Name == history.DeliverSignal || last.Name == history.InterruptResumed {
		return // the payload is lost with the rows that were to hold it
	}
	store := historymem.New()
	copyForeign(t, store, "r", whole[:cut])
	if count(whole[:cut], history.SubworkflowStarted) > 0 {
		copyForeign(t, store, "r:sub:v", records(t, source, "r:sub:v"))
	}
	r := s.runner(t, store)
	defer closeRunner(t, r)
	at := fmt.Sprintf("cut after %d %s(%s)", cut, last.Name, last.Payload.NodeID)
	run, err := s.drive(t, r)
	if err != nil {
		t.Errorf("%s: %v", at, err)
		return
	}
	rs := records(t, store, "r")
	if got, want := names(rs, history.Command), names(whole, history.Command); !slices.Equal(got, want) {
		t.Errorf("%s: commands\n%v\nwant\n%v", at, got, want)
	}
	if run.Status != want.Status || !sameJSON(run.FinalState, want.FinalState) || !sameJSON(run.Result, want.Result) {
		t.Errorf("%s: ended %s %v %v %q, want %s %v %v", at, run.Status, run.FinalState, run.Result, run.Error,
			want.Status, want.FinalState, want.Result)
	}
}

func TestARunThatAnotherEngineBegan(t *testing.T) {
	t.Parallel()
	d := workflow(t, "lin", []string{startNode(), `{"id":"x","type":"set_state","config":{"assignments":{"y":{"literal":1}}}}`, tool("a"), tool("b"), endNode()},
		"s x", "x a", "a b", "b e")
	store := foreign(t, "r", d, object{"in": object{"k": 1, "l": 2}}, machine.HostMediated)
	r := newRunner(t, store, graph.Options{})

	run := status(t, r, "r")
	wantStatus(t, run, machine.AwaitingActivity)
	if p := run.Pending; len(p) != 1 || p[0].NodeID != "a" || !p[0].Host || !sameJSON(run.State, object{"in": object{"k": 1, "l": 2}, "y": 1}) {
		t.Errorf("run %+v", run)
	}
	refused := func(c graph.Caller, code problem.Code) {
		t.Helper()
		unchanged(t, store, func() {
			_, err := r.SubmitActivity(t.Context(), graph.SubmitRequest{ExecutionID: "r", NodeID: "a", OK: true, Caller: c})
			wantCode(t, err, code)
		})
	}
	refused(graph.Caller{}, problem.DefinitionNotFound)
	refused(graph.Caller{Definition: linear(t, "lin", "a")}, problem.SubmitValidationError)
	refused(graph.Caller{Definition: d, InputSet: true, Input: object{"in": object{"k": 1}}}, problem.SubmitValidationError)
	refused(graph.Caller{Definition: d, InputSet: true, Input: object{}}, problem.SubmitValidationError)

	run, err := r.SubmitActivity(t.Context(), graph.SubmitRequest{ExecutionID: "r", NodeID: "a", OK: true, Result: object{"a": 1},
		Caller: graph.Caller{Definition: d, InputSet: true, Input: object{"in": object{"l": 2, "k": 1}}}})
	if err != nil || run.Pending[0].NodeID != "b" {
		t.Fatalf("%+v, %v", run, err)
	}
	// From now on the definition is known, also elsewhere.
	run = submit(t, newRunner(t, store, graph.Options{}), "r", "b", nil)
	if run.Status != machine.Completed || !sameJSON(run.FinalState, object{"in": object{"k": 1, "l": 2}, "y": 1, "a": 1}) {
		t.Errorf("%+v", run)
	}
	if n := count(records(t, store, "r"), history.ExecutionStarted); n != 1 {
		t.Errorf("%d ExecutionStarted", n)
	}
}

// TestAnUnboundForeignRunIsBoundByItsFirstCaller has no checkpoint that names a definition.
func TestAnUnboundForeignRunIsBoundByItsFirstCaller(t *testing.T) {
	t.Parallel()
	d := linear(t, "lin", "a", "b", "c")
	store := foreign(t, "r", d, nil, machine.HostMediated)
	r := newRunner(t, store, graph.Options{})
	if _, err := r.SubmitActivity(t.Context(), graph.SubmitRequest{ExecutionID: "r", NodeID: "a", OK: true, Caller: graph.Caller{Definition: d}}); err != nil {
		t.Fatal(err)
	}
	r = newRunner(t, store, graph.Options{})
	_, err := r.SubmitActivity(t.Context(), graph.SubmitRequest{ExecutionID: "r", NodeID: "b", OK: true, Caller: graph.Caller{Definition: linear(t, "lin", "b")}})
	wantCode(t, err, problem.SubmitValidationError)
	submit(t, r, "r", "b", nil)
}

func TestAForeignRunInProcessIsTakenOverOnRequest(t *testing.T) {
	t.Parallel()
	d := linear(t, "lin", "a", "b")
	store := foreign(t, "r", d, nil, machine.InProcess)
	r := newRunner(t, store, graph.Options{Activities: &script{}})
	run, err := r.Start(t.Context(), graph.StartRequest{ExecutionID: "r", Definition: d, AllowExisting: true})
	if err != nil || run.Status != machine.Completed {
		t.Errorf("%+v, %v", run, err)
	}
}

func TestAForeignRunIsCancelledWithoutItsDefinition(t *testing.T) {
	t.Parallel()
	store := foreign(t, "r", linear(t, "lin", "a"), object{"in": 1}, machine.HostMediated)
	r := newRunner(t, store, graph.Options{})
	run := cancel(t, r, "r", "stop")
	wantStatus(t, run, machine.Cancelled)
	if run.Reason != "stop" || !sameJSON(run.FinalState, object{"in": 1}) {
		t.Errorf("%+v", run)
	}
	rs := records(t, store, "r")
	if last := rs[len(rs)-1]; last.Name != history.ExecutionCancelled || last.Payload.NodeID != "a" || last.Payload.Reason != "stop" {
		t.Errorf("last record %+v", last)
	}
	if again := cancel(t, r, "r", "other"); again.Reason != "stop" {
		t.Errorf("%+v", again)
	}
}

// TestTheOutlineOfAForeignRun tells what can be told without the definition.
func TestTheOutlineOfAForeignRun(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		node  string
		check func(p view.Pending) bool
	}{
		"interrupt": {interrupt("x"), func(p view.Pending) bool { return p.Kind == machine.WaitInterrupt }},
		"signal":    {signalWait("x", "go"), func(p view.Pending) bool { return p.Kind == machine.WaitSignal && p.SignalName == "go" }},
		"delegate": {delegateNode("x"), func(p view.Pending) bool {
			return p.Kind == machine.WaitDelegate && p.AgentID == "coder" && p.DelegateInput["task"] == "do" && p.CorrelationID == "r:delegate:x"
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := foreign(t, "r", workflow(t, "one", []string{startNode(), c.node, endNode()}, "s x", "x e"), object{"in": 1}, machine.HostMediated)
			run := status(t, newRunner(t, store, graph.Options{}), "r")
			if len(run.Pending) != 1 || run.Pending[0].NodeID != "x" || !c.check(run.Pending[0]) || !sameJSON(run.State, object{"in": 1}) {
				t.Errorf("%+v", run)
			}
		})
	}
}
