package graph_test

import (
	"testing"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historymem"
)

// foreign gives a store with the history of a run as the reference engine leaves it: without the members that this
// engine adds, and without its definition.
func foreign(t *testing.T, id string, d *definition.Document, input map[string]any, mode machine.Mode) history.Store {
	t.Helper()
	source := historymem.New()
	r := newRunner(t, source, graph.Options{Branches: machine.Sequential, Activities: &script{answers: answers{"a": hang}}})
	if _, err := r.Start(t.Context(), graph.StartRequest{ExecutionID: id, Definition: d, Input: input, Mode: mode, Wait: graph.Wait{Set: true}}); err != nil {
		t.Fatal(err)
	}
	rs := records(t, source, id)
	for i := range rs {
		p := &rs[i].Payload
		rs[i].Raw = nil
		p.Mode, p.Branches, p.InputHash, p.Input, p.Visit = "", "", "", nil, 0
		if rs[i].Name == history.ExecutionStarted {
			p.DefinitionHash = ""
		}
	}
	store := historymem.New()
	if err := store.Append(t.Context(), history.Batch{ExecutionID: id, Records: rs, Execution: history.Project(id, rs)}); err != nil {
		t.Fatal(err)
	}
	return store
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
