package admit_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/internal/admit"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historymem"
)

// TestTheWaitThatFitsBestGetsTheInput: kind before name, name before branch, attempt and run.
func TestTheWaitThatFitsBestGetsTheInput(t *testing.T) {
	t.Parallel()
	left, right := &history.ParallelSpan{ParallelNodeID: "f", BranchName: "left"}, &history.ParallelSpan{ParallelNodeID: "f", BranchName: "right"}
	hosted := machine.Wait{WaitInfo: machine.WaitInfo{Kind: machine.WaitActivity, Host: true, NodeID: "a", Span: left}, Key: "a#1.1"}
	for name, c := range map[string]struct {
		wait machine.Wait
		by   admit.Submitted
		want admit.Fit
	}{
		"by node and branch":         {hosted, admit.Submitted{NodeID: "a", Span: left}, admit.FitWhole},
		"by key alone":               {hosted, admit.Submitted{NodeID: "a", IdempotencyKey: "r:a#1.1"}, admit.FitWhole},
		"another branch":             {hosted, admit.Submitted{NodeID: "a", Span: right}, admit.FitNode},
		"another attempt":            {hosted, admit.Submitted{NodeID: "a", Span: left, IdempotencyKey: "r:a#1.2"}, admit.FitNode},
		"another node's key":         {hosted, admit.Submitted{NodeID: "b", IdempotencyKey: "r:a#1.1"}, admit.FitNode},
		"another node":               {hosted, admit.Submitted{NodeID: "b"}, admit.FitKind},
		"performed in process":       {machine.Wait{WaitInfo: machine.WaitInfo{Kind: machine.WaitActivity, NodeID: "a"}}, admit.Submitted{NodeID: "a"}, admit.FitNone},
		"a question and no activity": {machine.Wait{WaitInfo: machine.WaitInfo{Kind: machine.WaitInterrupt, NodeID: "a"}}, admit.Submitted{NodeID: "a"}, admit.FitNone},
	} {
		if got := c.by.Fit("r", c.wait); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
	asks := machine.Wait{WaitInfo: machine.WaitInfo{Kind: machine.WaitInterrupt}, Key: "q#1"}
	for id, want := range map[string]admit.Fit{"": admit.FitWhole, "r:q#1": admit.FitWhole, "r:q#2": admit.FitKind} {
		if got := admit.ResumeFit(id, "r", asks); got != want {
			t.Errorf("answer to %q: %v, want %v", id, got, want)
		}
	}
	signal := machine.Wait{WaitInfo: machine.WaitInfo{Kind: machine.WaitSignal, SignalName: "go"}}
	if admit.SignalFit("go", signal) != admit.FitWhole || admit.SignalFit("stop", signal) != admit.FitKind || admit.SignalFit("go", asks) != admit.FitNone {
		t.Error("a signal goes to the wait of its name")
	}
}

// TestTheRefusalOfAnEndedRunSaysSoForEachInput, with the code of the call and one reason for all.
func TestTheRefusalOfAnEndedRunSaysSoForEachInput(t *testing.T) {
	t.Parallel()
	e := &history.Execution{ID: "r", Phase: history.PhaseFailed}
	for code, in := range map[problem.Code]machine.Input{
		problem.SubmitNotAwaiting: machine.Outcome{}, problem.InvalidResumePayload: machine.Resume{}, problem.SignalNotAwaiting: machine.Signal{},
		problem.CancelNotAllowed: machine.Cancel{},
	} {
		err := admit.Ended(e, in)
		p, ok := problem.As(err)
		if !ok || p.Code != code || !errors.Is(err, problem.ExecutionEnded) || p.At.ExecutionID != "r" || !strings.Contains(p.Message, "failed") || p.Hint == "" {
			t.Errorf("%T: %+v", in, err)
		}
	}
}

// TestArgumentsAreTakenAsJSON: copied, and bounded before they are copied.
func TestArgumentsAreTakenAsJSON(t *testing.T) {
	t.Parallel()
	given := map[string]any{"n": 1, "list": []string{"a"}}
	plain, err := admit.Object("input", given, 100, problem.ValidationError)
	if err != nil || plain["n"] != 1.0 {
		t.Errorf("%v, %v", plain, err)
	}
	plain["n"] = 2.0
	if given["n"] != 1 {
		t.Error("the caller's object has changed")
	}
	if plain, err := admit.Object("input", nil, 100, problem.ValidationError); err != nil || plain == nil || len(plain) != 0 {
		t.Errorf("nil: %v, %v", plain, err)
	}
	_, err = admit.Object("payload", map[string]any{"x": strings.Repeat("x", 200)}, 100, problem.SignalValidationError)
	if p, ok := problem.As(err); !ok || p.Code != problem.SignalValidationError || p.Details["maxBytes"] != 100.0 || p.Details["label"] != "payload" {
		t.Errorf("too large: %+v", err)
	}
	if _, err = admit.Object("payload", map[string]any{"x": make(chan int)}, 100, problem.ValidationError); !errors.Is(err, problem.ValidationError) {
		t.Errorf("no JSON: %v", err)
	}
	for _, err := range []error{admit.Mode("other", problem.ValidationError), admit.Branches("other", problem.ValidationError), admit.List(history.ListQuery{Phase: "other"})} {
		if !errors.Is(err, problem.ValidationError) {
			t.Errorf("%v", err)
		}
	}
	if err := admit.NotNegative("MaxVisits", -1); !errors.Is(err, problem.UsageError) {
		t.Errorf("%v", err)
	}
}

// past is a history in which the activity a was performed twice, and a question answered.
func past(t *testing.T) history.Store {
	t.Helper()
	at := time.Unix(1000, 0)
	event := func(name history.Name, p history.Payload) history.Record {
		return history.Record{Kind: history.Event, Name: name, Payload: p, CreatedAt: at}
	}
	done := func(visit int, key string, result map[string]any) history.Record {
		return event(history.ActivityCompleted, history.Payload{NodeID: "a", Visit: visit, Attempt: 1, IdempotencyKey: key, Result: history.Optional{Value: result, Set: true}})
	}
	rs := []history.Record{
		event(history.ExecutionStarted, history.Payload{}),
		done(1, "r:a#1.1", map[string]any{"n": 1.0}),
		done(2, "r:a#2.1", map[string]any{"n": 2.0}),
	}
	for i := range rs {
		rs[i].Seq = int64(i + 1)
	}
	store := historymem.New()
	if err := store.Append(t.Context(), history.Batch{ExecutionID: "r", Records: rs, Execution: history.Project("r", rs)}); err != nil {
		t.Fatal(err)
	}
	return store
}

// TestARepeatedSubmitIsFoundByItsKey, or without a key by its content as the last one. The same key with another content is told what was
// recorded, and a submit that was never taken stays refused.
func TestARepeatedSubmitIsFoundByItsKey(t *testing.T) {
	t.Parallel()
	store := past(t)
	refusal := problem.New(problem.SubmitNotAwaiting, "the run awaits no activity")
	for name, c := range map[string]struct {
		key    string
		n      float64
		want   admit.Repeat
		reason problem.Code
	}{
		"the last one":                  {"r:a#2.1", 2, admit.Repeated, ""},
		"an earlier one":                {"r:a#1.1", 1, admit.Repeated, ""},
		"its key with another content":  {"r:a#1.1", 7, admit.KeyReused, problem.AnsweredDifferently},
		"without a key, the last one":   {"", 2, admit.Repeated, ""},
		"without a key, an earlier one": {"", 1, admit.NotRepeated, problem.SubmitNotAwaiting},
		"a key that was never used":     {"r:a#3.1", 1, admit.NotRepeated, problem.SubmitNotAwaiting},
	} {
		by := admit.Submitted{NodeID: "a", IdempotencyKey: c.key}
		search := admit.RepeatedSubmit{Submitted: by, Outcome: machine.Outcome{NodeID: "a", OK: true, Output: map[string]any{"n": c.n}, IdempotencyKey: c.key}}
		found, err := search.Search(t.Context(), store, "r", 4)
		if err != nil || found.Repeat != c.want {
			t.Errorf("%s: %v, want %v, %v", name, found.Repeat, c.want, err)
		}
		verdict := found.Verdict(refusal, problem.SubmitNotAwaiting, problem.Place{}, "the key")
		if (verdict == nil) != (c.reason == "") || c.reason != "" && !errors.Is(verdict, c.reason) {
			t.Errorf("%s: the verdict is %v", name, verdict)
		}
		if p, ok := problem.As(verdict); ok && c.want == admit.KeyReused {
			if recorded, _ := p.Details["recorded"].(map[string]any); recorded["seq"] != 2.0 {
				t.Errorf("%s: told %v", name, p.Details)
			}
		}
	}
}
