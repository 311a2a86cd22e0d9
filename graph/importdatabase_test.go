package graph_test

import (
	"errors"
	"fmt"
	"maps"
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

// engineDatabase is a database of the npm engine: the records of runs, by id.
type engineDatabase map[string][]history.Record

func (d engineDatabase) Runs() ([]string, error) { return slices.Sorted(maps.Keys(d)), nil }

func (d engineDatabase) Records(id string) ([]history.Record, error) { return slices.Clone(d[id]), nil }

// asEngine returns records as the npm engine writes them: without the fields that this engine adds.
func asEngine(id string, rs []history.Record) []history.Record {
	rs = slices.Clone(rs)
	for i := range rs {
		p := &rs[i].Payload
		p.Mode, p.Branches, p.InputHash, p.Input, p.Visit, p.Depth = "", "", "", nil, 0, 0
		p.DueAt, p.RetryAt = time.Time{}, time.Time{}
		if rs[i].Name == history.ExecutionStarted {
			p.DefinitionHash, p.ParentExecutionID = "", ""
		}
		rs[i].Foreign = true
		rs[i].Raw = rs[i].AppendPayload(nil, id)
	}
	return rs
}

// engineRun returns a database of the npm engine with a run that stands where it first waits.
func engineRun(t *testing.T, id string, d *definition.Document, input map[string]any, mode machine.Mode) engineDatabase {
	t.Helper()
	source := historymem.New()
	r := newRunner(t, source, graph.Options{Branches: machine.Sequential, Activities: &script{answers: answers{"a": hang}}})
	if _, err := r.Start(t.Context(), graph.StartRequest{ExecutionID: id, Definition: d, Input: input, Mode: mode, Wait: graph.Wait{Limit: graph.NoWait}}); err != nil {
		t.Fatal(err)
	}
	return engineDatabase{id: asEngine(id, records(t, source, id))}
}

// imported returns a store with the runs of a database of the npm engine.
func imported(t *testing.T, from engineDatabase, mode machine.Mode, definitions ...*definition.Document) history.Store {
	t.Helper()
	store := historymem.New()
	runs, err := graph.ImportDatabase(t.Context(), store, from, graph.DatabaseOptions{Definitions: definitions, Mode: mode})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range runs {
		if r.Err != nil {
			t.Fatal(r.Err)
		}
	}
	return store
}

// TestAnImportedHistoryCutAnywhere continues what the npm engine left when it stopped after any of its rows, which
// it writes one by one (spec: execution, 10.8).
func TestAnImportedHistoryCutAnywhere(t *testing.T) {
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
	from := engineDatabase{"r": asEngine("r", whole[:cut])}
	definitions := []*definition.Document{s.root(t)}
	if count(whole[:cut], history.SubworkflowStarted) > 0 {
		from["r:sub:v"] = asEngine("r:sub:v", records(t, source, "r:sub:v"))
	}
	at := fmt.Sprintf("cut after %d %s(%s)", cut, last.Name, last.Payload.NodeID)
	if count(whole[:cut], history.StateUpdated) == 0 && len(whole[0].Payload.InputKeys) > 0 {
		runs, err := graph.ImportDatabase(t.Context(), historymem.New(), from, graph.DatabaseOptions{Definitions: definitions})
		if err != nil || !errors.Is(runs[0].Err, problem.DefinitionNotFound) {
			t.Errorf("%s: the input is not recorded, and the import brings %+v, %v", at, runs, err)
		}
		return
	}
	store := imported(t, from, machine.InProcess, definitions...)
	r := s.runner(t, store)
	defer closeRunner(t, r)
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

func TestAnImportedRunContinues(t *testing.T) {
	t.Parallel()
	d := workflow(t, "lin", []string{startNode(), `{"id":"x","type":"set_state","config":{"assignments":{"y":{"literal":1}}}}`, tool("a"), tool("b"), endNode()},
		"s x", "x a", "a b", "b e")
	store := imported(t, engineRun(t, "r", d, object{"in": object{"k": 1, "l": 2}}, machine.HostMediated), machine.HostMediated, d)
	r := newRunner(t, store, graph.Options{})

	run := status(t, r, "r")
	wantStatus(t, run, machine.AwaitingActivity)
	if p := run.Pending; len(p) != 1 || p[0].NodeID != "a" || !p[0].Host || !sameJSON(run.State, object{"in": object{"k": 1, "l": 2}, "y": 1}) {
		t.Errorf("run %+v", run)
	}
	for _, c := range []graph.Caller{{Definition: linear(t, "lin", "a")}, {InputSet: true, Input: object{"in": object{"k": 1}}}, {InputSet: true, Input: object{}}} {
		unchanged(t, store, func() {
			_, err := r.SubmitActivity(t.Context(), graph.SubmitRequest{ExecutionID: "r", NodeID: "a", OK: true, Caller: c})
			wantCode(t, err, problem.SubmitValidationError)
		})
	}
	run, err := r.SubmitActivity(t.Context(), graph.SubmitRequest{ExecutionID: "r", NodeID: "a", OK: true, Result: object{"a": 1},
		Caller: graph.Caller{Definition: d, InputSet: true, Input: object{"in": object{"l": 2, "k": 1}}}})
	if err != nil || run.Pending[0].NodeID != "b" {
		t.Fatalf("%+v, %v", run, err)
	}
	run = submit(t, newRunner(t, store, graph.Options{}), "r", "b", nil)
	if run.Status != machine.Completed || !sameJSON(run.FinalState, object{"in": object{"k": 1, "l": 2}, "y": 1, "a": 1}) {
		t.Errorf("%+v", run)
	}
	if n := count(records(t, store, "r"), history.ExecutionStarted); n != 1 {
		t.Errorf("%d ExecutionStarted", n)
	}
}

// TestAnImportedRunInProcessContinuesByItself: what its process was performing when it died is performed again.
func TestAnImportedRunInProcessContinuesByItself(t *testing.T) {
	t.Parallel()
	d := linear(t, "lin", "a", "b")
	store := imported(t, engineRun(t, "r", d, nil, machine.InProcess), machine.InProcess, d)
	r := newRunner(t, store, graph.Options{Activities: &script{}})
	run, err := r.Start(t.Context(), graph.StartRequest{ExecutionID: "r", Definition: d, AllowExisting: true})
	if err != nil || run.Status != machine.Completed {
		t.Errorf("%+v, %v", run, err)
	}
}

// withoutDefinition returns a store with a run whose definition is not stored, as databases of earlier builds have them.
func withoutDefinition(t *testing.T, id string, d *definition.Document, input map[string]any) history.Store {
	t.Helper()
	store := historymem.New()
	rs := engineRun(t, id, d, input, machine.HostMediated)[id]
	if err := store.Append(t.Context(), history.Batch{ExecutionID: id, Records: rs, Execution: history.Project(id, rs)}); err != nil {
		t.Fatal(err)
	}
	return store
}

func TestARunIsCancelledWithoutItsDefinition(t *testing.T) {
	t.Parallel()
	store := withoutDefinition(t, "r", linear(t, "lin", "a"), object{"in": 1})
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

// TestTheOutlineOfARun tells what can be told without the definition.
func TestTheOutlineOfARun(t *testing.T) {
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
			store := withoutDefinition(t, "r", workflow(t, "one", []string{startNode(), c.node, endNode()}, "s x", "x e"), object{"in": 1})
			run := status(t, newRunner(t, store, graph.Options{}), "r")
			if len(run.Pending) != 1 || run.Pending[0].NodeID != "x" || !c.check(run.Pending[0]) || !sameJSON(run.State, object{"in": 1}) {
				t.Errorf("%+v", run)
			}
		})
	}
}
