package graph_test

import (
	"context"
	"testing"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historymem"
)

// What a caller repeats after start is checked before anything is recorded, compared deeply, and never taken over.

func TestW01_ASubmitWithAnotherInputRecordsNothing(t *testing.T) {
	t.Parallel()
	r, store := host(t, graph.Options{})
	start(t, r, "r", linear(t, "lin", "a"), object{"o": object{"a": 1, "b": 2}})
	req := graph.SubmitRequest{ExecutionID: "r", NodeID: "a", OK: true, Caller: graph.Caller{Input: object{"o": object{"a": 1}}, InputSet: true}}
	unchanged(t, store, func() {
		_, err := r.SubmitActivity(t.Context(), req)
		wantCode(t, err, problem.SubmitValidationError)
	})
	req.Input = object{"o": object{"b": 2.0, "a": 1}}
	run, err := r.SubmitActivity(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	wantStatus(t, run, machine.Completed)
}

func TestW64_AnotherInputIsNeverTakenOver(t *testing.T) {
	t.Parallel()
	r, store := host(t, graph.Options{})
	d := workflow(t, "par", []string{startNode(), fork("p", "all", "a", "b"), tool("a"), tool("b"), endNode()}, "s p", "p e", "a e", "b e")
	run := start(t, r, "r", d, object{"n": 1})
	req := graph.SubmitRequest{ExecutionID: "r", NodeID: "a", Span: run.Pending[0].Span, OK: true, Caller: graph.Caller{Input: object{"n": 2}, InputSet: true}}
	unchanged(t, store, func() {
		_, err := r.SubmitActivity(t.Context(), req)
		wantCode(t, err, problem.SubmitValidationError)
	})
	req.Caller = graph.Caller{}
	if run, err := r.SubmitActivity(t.Context(), req); err != nil || run.State["n"] != 1.0 {
		t.Errorf("run %+v, %v", run, err)
	}
}

func TestW28_AnotherDefinitionDoesNotHarmARun(t *testing.T) {
	t.Parallel()
	r, store := host(t, graph.Options{})
	d := linear(t, "lin", "a")
	start(t, r, "r", d, nil)
	unchanged(t, store, func() {
		_, err := r.Start(t.Context(), graph.StartRequest{ExecutionID: "r", Definition: linear(t, "another", "x"), AllowExisting: true})
		wantCode(t, err, problem.SubmitValidationError)
		run, err := r.Start(t.Context(), graph.StartRequest{ExecutionID: "r", Definition: linear(t, "lin", "x"), AllowExisting: true})
		if err != nil || run.DefinitionHash != d.Hash() {
			t.Errorf("%+v, %v", run, err)
		}
	})
	run, err := r.Start(t.Context(), graph.StartRequest{ExecutionID: "r", Definition: d, AllowExisting: true})
	if err != nil {
		t.Fatal(err)
	}
	wantStatus(t, run, machine.AwaitingActivity)
}

func TestW21_APanicIsAFailedAttempt(t *testing.T) {
	t.Parallel()
	calls := 0
	exec := &script{answers: answers{"a": func(context.Context, activities.Request) (any, error) {
		if calls++; calls < 3 {
			panic("ouch")
		}
		return object{"ok": true}, nil
	}}}
	store := historymem.New()
	r := newRunner(t, store, graph.Options{Activities: exec})
	d := workflow(t, "w", []string{startNode(), tool("a", `"retry":{"max_attempts":3}`), endNode()}, "s a", "a e")
	wantStatus(t, start(t, r, "r", d, nil), machine.Completed)
	if n := count(records(t, store, "r"), history.ActivityFailed); n != 2 {
		t.Errorf("%d failed attempts recorded, want 2", n)
	}
}
