package graph_test

import (
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/graph/view"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historymem"
)

func TestStatusIsWhatTheLastAnswerWas(t *testing.T) {
	t.Parallel()
	r, store := host(t, graph.Options{})
	d := workflow(t, "par", []string{startNode(), fork("p", "all", "a", "w", "d"), tool("a", `"timeout":"1h"`), signalWait("w", "go"), delegateNode("d"), endNode()},
		"s p", "p e", "a e", "w e", "d e")
	answer := start(t, r, "r", d, object{"in": []any{1, "x", nil}})
	cached := status(t, r, "r")
	fresh := status(t, newRunner(t, store, graph.Options{}), "r")
	for name, run := range map[string]*view.Run{"cached": cached, "restored": fresh} {
		if want, got := text(t, answer), text(t, run); want != got {
			t.Errorf("%s status\n%s\nthe answer was\n%s", name, got, want)
		}
	}
	if answer.UpdatedAt.IsZero() || answer.CreatedAt.IsZero() || answer.Seq == 0 || len(answer.Pending) != 3 {
		t.Errorf("run %+v", answer)
	}
	_, err := r.Status(t.Context(), graph.StatusRequest{ExecutionID: "ghost"})
	wantCode(t, err, problem.ExecutionNotFound)
}

// text is a run as JSON, times to the millisecond as they are stored.
func text(t testing.TB, run *view.Run) string {
	t.Helper()
	c := *run
	c.CreatedAt, c.UpdatedAt = c.CreatedAt.Truncate(time.Millisecond), c.UpdatedAt.Truncate(time.Millisecond)
	out, err := json.MarshalIndent(c, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// TestAnswersAreCopies holds that a caller cannot reach the engine's state through an answer.
func TestAnswersAreCopies(t *testing.T) {
	t.Parallel()
	r, _ := host(t, graph.Options{})
	start(t, r, "r", linear(t, "lin", "a", "b"), object{"o": object{"x": 1}})
	run := status(t, r, "r")
	run.State["o"].(object)["x"] = "changed"
	run.Pending[0].Config["tool"] = "changed"
	run.Pending[0].State["more"] = true
	run = submit(t, r, "r", "a", nil)
	if !sameJSON(run.State, object{"o": object{"x": 1}}) {
		t.Errorf("state %v", run.State)
	}
	run = start(t, r, "r2", linear(t, "lin", "a", "b"), nil)
	if run.Pending[0].Config["tool"] != "a" {
		t.Errorf("config %v", run.Pending[0].Config)
	}
}

func TestStatusWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRunner(t, historymem.New(), graph.Options{Activities: &script{answers: answers{"a": after(30*time.Second, nil)}}})
		d := workflow(t, "w", []string{startNode(), tool("a"), interrupt("i"), endNode()}, "s a", "a i", "i e")
		begun := time.Now()
		if _, err := r.Start(t.Context(), graph.StartRequest{ExecutionID: "r", Definition: d, Wait: graph.Wait{Limit: graph.NoWait}}); err != nil {
			t.Fatal(err)
		}
		wait := func(limit time.Duration) *view.Run {
			t.Helper()
			run, err := r.Status(t.Context(), graph.StatusRequest{ExecutionID: "r", Wait: lookFor(limit)})
			if err != nil {
				t.Fatal(err)
			}
			return run
		}
		wantStatus(t, wait(0), machine.Running)
		if wantStatus(t, wait(10*time.Second), machine.Running); time.Since(begun) != 10*time.Second {
			t.Errorf("waited %s", time.Since(begun))
		}
		if wantStatus(t, wait(time.Minute), machine.Interrupted); time.Since(begun) != 30*time.Second {
			t.Errorf("waited %s", time.Since(begun))
		}
		if wantStatus(t, wait(time.Minute), machine.Interrupted); time.Since(begun) != 30*time.Second {
			t.Errorf("a run that rests was waited for: %s", time.Since(begun))
		}
	})
}

func TestListAndHistory(t *testing.T) {
	t.Parallel()
	r, store := host(t, graph.Options{})
	d := linear(t, "lin", "a")
	for _, id := range []string{"r1", "r2", "r3"} {
		start(t, r, id, d, object{"token": "t0p", "n": 1})
	}
	page, err := r.List(t.Context(), history.ListQuery{Limit: 2})
	if err != nil || len(page.Executions) != 2 || page.NextCursor == "" {
		t.Fatalf("page %+v, %v", page, err)
	}
	page, err = r.List(t.Context(), history.ListQuery{Limit: 2, Cursor: page.NextCursor})
	if err != nil || len(page.Executions) != 1 || page.NextCursor != "" {
		t.Fatalf("page %+v, %v", page, err)
	}
	_, err = r.List(t.Context(), history.ListQuery{Cursor: "no"})
	wantCode(t, err, problem.InvalidListCursor)
	_, err = r.List(t.Context(), history.ListQuery{Limit: -1})
	wantCode(t, err, problem.ValidationError)
	_, err = r.List(t.Context(), history.ListQuery{Phase: "asleep"})
	wantCode(t, err, problem.ValidationError)

	shown, err := r.History(t.Context(), graph.HistoryRequest{ExecutionID: "r1"})
	if err != nil || len(shown) != len(records(t, store, "r1")) {
		t.Fatalf("history %v, %v", shown, err)
	}
	plain, err := r.History(t.Context(), graph.HistoryRequest{ExecutionID: "r1", Reveal: true})
	if err != nil {
		t.Fatal(err)
	}
	for i := range shown {
		if strings.Contains(string(shown[i].Raw), "t0p") {
			t.Errorf("record %d shows the secret: %s", i+1, shown[i].Raw)
		}
		if s := shown[i].Payload.State; s != nil && s["token"] != history.Redacted {
			t.Errorf("record %d has the state %v", i+1, s)
		}
		if s := plain[i].Payload.State; s != nil && s["token"] != "t0p" {
			t.Errorf("revealed record %d has the state %v", i+1, s)
		}
	}
	some, err := r.History(t.Context(), graph.HistoryRequest{ExecutionID: "r1", FromSeq: 2, Limit: 3})
	if err != nil || len(some) != 3 || some[0].Seq != 2 {
		t.Errorf("history %v, %v", some, err)
	}
	if none, err := r.History(t.Context(), graph.HistoryRequest{ExecutionID: "r1", FromSeq: 1000}); err != nil || len(none) != 0 {
		t.Errorf("history %v, %v", none, err)
	}
	_, err = r.History(t.Context(), graph.HistoryRequest{ExecutionID: "ghost"})
	wantCode(t, err, problem.ExecutionNotFound)
}

// TestW05_SecretsStayUsable holds that a member named like a secret keeps its value for the run itself.
func TestW05_SecretsStayUsable(t *testing.T) {
	t.Parallel()
	r, store := host(t, graph.Options{})
	start(t, r, "r", linear(t, "lin", "a"), object{"token": "abc"})
	again := newRunner(t, store, graph.Options{})
	run, err := again.SubmitActivity(t.Context(), graph.SubmitRequest{ExecutionID: "r", NodeID: "a", OK: true,
		Caller: graph.Caller{Input: object{"token": "abc"}, InputSet: true}})
	if err != nil || !sameJSON(run.FinalState, object{"token": "abc"}) {
		t.Errorf("%+v, %v", run, err)
	}
}
