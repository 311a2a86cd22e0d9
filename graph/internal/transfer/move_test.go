package transfer_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/graph/view"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historymem"
)

// asking defines a run that waits for an answer in a subworkflow, and its resolver.
func asking(t *testing.T) (*definition.Document, graph.Options) {
	t.Helper()
	below := workflow(t, "below", []string{startNode(), interrupt("ask"), endNode()}, "s ask", "ask e")
	above := workflow(t, "above", []string{startNode(), tool("a"), subworkflow("sub", "below"), tool("b"), endNode()}, "s a", "a sub", "sub b", "b e")
	return above, graph.Options{DefaultMode: machine.HostMediated, Workflows: resolver(func(string, string) (*definition.Document, error) { return below, nil })}
}

// waiting returns the only wait of a run, which is in a subworkflow.
func waiting(t *testing.T, r *graph.Runner, id string) view.Pending {
	t.Helper()
	run, err := r.Status(t.Context(), graph.StatusRequest{ExecutionID: id})
	if err != nil || len(run.Pending) != 1 || run.Pending[0].ExecutionID == id {
		t.Fatalf("run is %+v, %v", run, err)
	}
	return run.Pending[0]
}

// broken is an output that fails, as that of a killed export.
type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errors.New("killed") }

func TestAMovedRunContinuesOnlyWhereItWasImported(t *testing.T) {
	t.Parallel()
	d, o := asking(t)
	here, there := newRunner(t, historymem.New(), o), newRunner(t, historymem.New(), o)
	start(t, here, "r", d, nil)
	submit(t, here, "r", "a", object{})
	below := waiting(t, here, "r")

	move := graph.ExportOptions{Move: true}
	if err := here.Export(t.Context(), "r", move, broken{}); err == nil {
		t.Fatal("an export without output succeeded")
	}
	var first, second bytes.Buffer
	for _, file := range []*bytes.Buffer{&first, &second} {
		if err := here.Export(t.Context(), "r", move, file); err != nil {
			t.Fatal(err)
		}
	}
	if first.String() != second.String() {
		t.Error("a repeated export has another file")
	}
	for _, id := range []string{"r", below.ExecutionID} {
		run, err := here.Status(t.Context(), graph.StatusRequest{ExecutionID: id})
		if err != nil || run.Status != machine.Cancelled {
			t.Errorf("%s is %+v after the move: %v", id, run, err)
		}
	}
	if _, err := here.Resume(t.Context(), graph.ResumeRequest{ExecutionID: "r", Payload: object{}}); err == nil {
		t.Error("the source accepts an answer after the move")
	}

	res, err := there.Import(t.Context(), &first)
	if err != nil || res.Existed || res.Phase.Terminal() {
		t.Fatalf("import: %+v, %v", res, err)
	}
	if res, err := there.Import(t.Context(), &second); err != nil || !res.Existed {
		t.Errorf("second import: %+v, %v", res, err)
	}
	if _, err := there.Resume(t.Context(), graph.ResumeRequest{ExecutionID: "r", Payload: object{}}); err != nil {
		t.Fatal(err)
	}
	submit(t, there, "r", "b", object{})
	if run, err := there.Status(t.Context(), graph.StatusRequest{ExecutionID: "r"}); err != nil || run.Status != machine.Completed {
		t.Errorf("the moved run is %+v, %v", run, err)
	}
}

func TestOnlyAnActiveRootRunMoves(t *testing.T) {
	t.Parallel()
	d, o := asking(t)
	store := historymem.New()
	r := newRunner(t, store, o)
	start(t, r, "r", d, nil)
	submit(t, r, "r", "a", object{})
	below := waiting(t, r, "r")
	before := records(t, store, "r")
	var out bytes.Buffer
	move := func(id string, redact bool) error {
		return r.Export(t.Context(), id, graph.ExportOptions{Move: true, Redact: redact}, &out)
	}
	wantCode(t, move(below.ExecutionID, false), problem.UsageError)
	wantCode(t, move("r", true), problem.UsageError)
	if now := records(t, store, "r"); len(now) != len(before) {
		t.Error("a rejected move changed the run")
	}
	if _, err := r.Cancel(t.Context(), graph.CancelRequest{ExecutionID: "r"}); err != nil {
		t.Fatal(err)
	}
	wantCode(t, move("r", false), problem.CancelNotAllowed)
	wantCode(t, move("missing", false), problem.ExecutionNotFound)
	if out.Len() > 0 {
		t.Errorf("a rejected move wrote %q", out.String())
	}
}

// TestACancelledSubworkflowStaysCancelledWhenItsRunMoves: only the ends of the move are taken back.
func TestACancelledSubworkflowStaysCancelledWhenItsRunMoves(t *testing.T) {
	t.Parallel()
	_, o := asking(t)
	d := workflow(t, "race", []string{
		startNode(), `{"id":"p","type":"parallel","config":{"branches":[{"name":"slow","entry":"sub"},{"name":"fast","entry":"fast"}],"join":"any"}}`,
		subworkflow("sub", "below"), tool("fast"), interrupt("ask"), endNode(),
	}, "s p", "p ask", "sub ask", "fast ask", "ask e")
	for name, moves := range map[string]func(here *graph.Runner, from, to history.Store) error{
		"a file": func(here *graph.Runner, _, to history.Store) error {
			var file bytes.Buffer
			if err := here.Export(t.Context(), "r", graph.ExportOptions{Move: true}, &file); err != nil {
				return err
			}
			_, err := graph.Import(t.Context(), to, &file)
			return err
		},
		"a copy": func(_ *graph.Runner, from, to history.Store) error {
			_, err := graph.Copy(t.Context(), from, to, graph.CopyOptions{Target: "there"})
			return err
		},
	} {
		from, to := historymem.New(), historymem.New()
		here := newRunner(t, from, o)
		start(t, here, "r", d, nil)
		fast := &history.ParallelSpan{ParallelNodeID: "p", JoinTargetID: "ask", BranchName: "fast", BranchEntryNodeID: "fast"}
		if _, err := here.SubmitActivity(t.Context(), graph.SubmitRequest{ExecutionID: "r", NodeID: "fast", Span: fast, OK: true, Result: object{}}); err != nil {
			t.Fatal(err)
		}
		page, err := here.List(t.Context(), history.ListQuery{Below: "r"})
		if err != nil || len(page.Executions) != 1 || page.Executions[0].Phase != history.PhaseCancelled {
			t.Fatalf("%+v, %v", page.Executions, err)
		}
		if err := moves(here, from, to); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if e, err := to.Execution(t.Context(), page.Executions[0].ID); err != nil || e.Phase != history.PhaseCancelled {
			t.Errorf("%s: the subworkflow is %s (%v)", name, e.Phase, err)
		}
	}
}
