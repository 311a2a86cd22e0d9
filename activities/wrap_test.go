package activities_test

import (
	"context"
	"testing"

	"github.com/workflows-engine/workflows-engine/activities"
)

// A wrapped executor answers the engine's questions as the executor itself does.
func TestWrapKeepsWhatAnExecutorPerforms(t *testing.T) {
	t.Parallel()
	steps := activities.NewStepRegistry()
	if err := steps.RegisterStatic(map[string]any{"known": 1.0}); err != nil {
		t.Fatal(err)
	}
	plain := activities.ExecutorFunc(func(context.Context, activities.Request) (activities.Result, error) { return activities.Result{}, nil })
	calls := 0
	counting := func(next activities.ExecutorFunc) activities.ExecutorFunc {
		return func(ctx context.Context, req activities.Request) (activities.Result, error) {
			calls++
			return next(ctx, req)
		}
	}
	for _, tt := range []struct {
		name              string
		executor          activities.Executor
		nodeType, handler string
		immediate         bool
		missing           activities.Missing
	}{
		{name: "a handler that is registered", executor: steps, nodeType: "step", handler: "known", immediate: true},
		{name: "one that is not", executor: steps, nodeType: "step", handler: "other", immediate: true, missing: activities.MissingTarget},
		{name: "a function performs everything", executor: plain, nodeType: "tool_call"},
		{name: "a composite", executor: activities.Composite{Step: steps}, nodeType: "step", handler: "known", immediate: true},
		{name: "a type that a composite lacks", executor: activities.Composite{Step: steps}, nodeType: "llm_call", immediate: true, missing: activities.MissingType},
		{name: "a wrapped composite in a composite", executor: activities.Composite{Step: activities.Wrap(activities.Composite{}, counting)}, nodeType: "step", immediate: true, missing: activities.MissingType},
	} {
		wrapped := activities.Wrap(tt.executor, counting)
		config := map[string]any{"handler": tt.handler}
		req := activities.Request{NodeID: "n", NodeType: tt.nodeType, Config: config, State: func() map[string]any { return nil }}
		can := activities.CapabilitiesOf(wrapped, req.Node())
		if can.Immediate != tt.immediate {
			t.Errorf("%s: immediate %v", tt.name, can.Immediate)
		}
		if can.Missing != tt.missing {
			t.Errorf("%s: missing %v", tt.name, can.Missing)
		}
		before := calls
		_, err := wrapped.Execute(t.Context(), req)
		if _, want := tt.executor.Execute(t.Context(), req); (err == nil) != (want == nil) || calls == before {
			t.Errorf("%s: %v, want %v after %d calls", tt.name, err, want, calls-before)
		}
	}
}
