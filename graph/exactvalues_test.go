package graph_test

import (
	"context"
	"math"
	"strings"
	"testing"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/delegate"
	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historymem"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// What a typed handler returns reaches the next one as the same integer, or fails the attempt with a code and the member's name.
func TestIntegersBetweenTypedHandlersDoNotChange(t *testing.T) {
	t.Parallel()
	type record struct{ ID int64 }
	steps := func(id string) string {
		return `{"id":"` + id + `","type":"step","config":{"handler":"` + id + `"}}`
	}
	d := workflow(t, "typed", []string{startNode(), steps("give"), steps("take"), endNode()}, "s give", "give take", "take e")
	for _, id := range []int64{
		1234567890123456789, math.MaxInt64, math.MinInt64, 1<<53 + 1, 1 << 60, 1 << 53, -1 << 53, 1<<53 + 2, 1234567890123456800, 1e18, 0,
	} {
		registry := activities.NewStepRegistry()
		taken := int64(-1)
		err := activities.RegisterStep(registry, "give", func(context.Context, activities.Call[struct{}]) (record, error) { return record{id}, nil })
		if err == nil {
			err = activities.RegisterStep(registry, "take", func(_ context.Context, c activities.Call[record]) (record, error) {
				taken = c.Input.ID
				return c.Input, nil
			})
		}
		if err != nil {
			t.Fatal(err)
		}
		run := start(t, newRunner(t, historymem.New(), graph.Options{Activities: registry}), "r", d, nil)
		switch {
		case run.Status == machine.Completed && taken == id:
		case run.ErrorCode != string(problem.ActivityOutputInvalid) || !strings.Contains(run.Error, `"/ID"`) || taken != -1:
			t.Errorf("%d: %s %s %q, taken %d", id, run.Status, run.ErrorCode, run.Error, taken)
		}
	}
}

// nested is a value of so many levels.
func nested(levels int) (v any) {
	for range levels {
		v = []any{v}
	}
	return v
}

// Integers, texts and nesting that cannot be kept are refused in everything that callers give, and nothing is recorded.
func TestValuesOfCallersDoNotChange(t *testing.T) {
	t.Parallel()
	d := workflow(t, "asks", []string{startNode(), tool("a"), interrupt("i"), signalWait("w", "go"), endNode()}, "s a", "a i", "i w", "w e")
	for name, value := range map[string]any{"an integer": int64(math.MaxInt64), "a text": "\xff", "an element": []any{"a", uint64(math.MaxUint64)},
		"levels": nested(jsonvalue.MaxDepth)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bad := map[string]any{"ok": true, "v": value}
			store := historymem.New()
			r := newRunner(t, store, graph.Options{})
			refused := func(err error, code problem.Code) {
				t.Helper()
				if p := wantCode(t, err, code); !strings.HasPrefix(p.At.Pointer, "/v") && name != "levels" {
					t.Errorf("%v at %q", err, p.At.Pointer)
				}
			}
			begin := graph.StartRequest{ExecutionID: "r", Definition: d, Mode: machine.HostMediated, Input: bad}
			unchanged(t, store, func() { _, err := r.Start(t.Context(), begin); refused(err, problem.ValidationError) })
			begin.Input = nil
			if _, err := r.Start(t.Context(), begin); err != nil {
				t.Fatal(err)
			}
			unchanged(t, store, func() {
				_, err := r.SubmitActivity(t.Context(), graph.SubmitRequest{ExecutionID: "r", NodeID: "a", OK: true, Result: bad})
				refused(err, problem.SubmitValidationError)
			})
			submit(t, r, "r", "a", nil)
			unchanged(t, store, func() {
				_, err := r.Resume(t.Context(), graph.ResumeRequest{ExecutionID: "r", Payload: bad})
				refused(err, problem.ValidationError)
			})
			if _, err := r.Resume(t.Context(), graph.ResumeRequest{ExecutionID: "r", Payload: object{"ok": true}}); err != nil {
				t.Fatal(err)
			}
			unchanged(t, store, func() {
				_, err := r.Signal(t.Context(), graph.SignalRequest{ExecutionID: "r", Name: "go", Payload: bad})
				refused(err, problem.SignalValidationError)
			})
		})
	}
}

// A delegate's output is held to the same rule.
func TestIntegersOfDelegatesDoNotChange(t *testing.T) {
	t.Parallel()
	var sdk delegate.SDK
	if err := sdk.Register("coder", func(context.Context, activities.Request) (any, error) {
		return map[string]any{"ids": []int64{1, math.MaxInt64}}, nil
	}); err != nil {
		t.Fatal(err)
	}
	node := strings.Replace(delegateNode("d"), "a2a", "sdk", 1)
	store := historymem.New()
	r := newRunner(t, store, graph.Options{Delegates: &sdk})
	run := start(t, r, "r", workflow(t, "del", []string{startNode(), node, endNode()}, "s d", "d e"), nil)
	if run.ErrorCode != string(problem.ActivityOutputInvalid) || !strings.Contains(run.Error, `"/ids/1"`) {
		t.Errorf("%s %s %q", run.Status, run.ErrorCode, run.Error)
	}
	if n := count(records(t, store, "r"), history.ActivityCompleted); n != 0 {
		t.Errorf("%d results are recorded", n)
	}
}

// A program's result that no reader of the history could follow fails its node; the run can be read, and says why.
func TestResultsNestedTooDeeplyFailTheirNode(t *testing.T) {
	t.Parallel()
	for levels, code := range map[string]problem.Code{"511": "", "513": problem.ExpressionLimit, "9998": problem.ExpressionLimit} {
		set := `{"id":"n","type":"set_state","config":{"assignments":{"x":{"jq":"reduce range(` + levels + `) as $i (0;[.])"}}}}`
		d := workflow(t, "deep", []string{startNode(), set, endNode()}, "s n", "n e")
		store := historymem.New()
		run := start(t, newRunner(t, store, graph.Options{}), "r", d, nil)
		if run.ErrorCode != string(code) {
			t.Errorf("%s levels: %s %s", levels, run.ErrorCode, run.Error)
		}
		for _, r := range records(t, store, "r") {
			if _, err := history.DecodePayload(r.Name, r.AppendPayload(nil, "r")); err != nil {
				t.Error(err)
			}
		}
	}
}
