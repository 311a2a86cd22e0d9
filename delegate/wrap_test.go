package delegate_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/delegate"
)

func counting(calls *int) func(activities.ExecutorFunc) activities.ExecutorFunc {
	return func(next activities.ExecutorFunc) activities.ExecutorFunc {
		return func(ctx context.Context, req activities.Request) (activities.Result, error) {
			*calls++
			return next(ctx, req)
		}
	}
}

// A wrapped executor answers the engine's questions as the executor itself does.
func TestWrapKeepsWhatAnExecutorPerforms(t *testing.T) {
	t.Parallel()
	var sdk delegate.SDK
	if err := sdk.Register("go", func(context.Context, activities.Request) (any, error) { return "done", nil }); err != nil {
		t.Fatal(err)
	}
	remote, err := delegate.NewA2A(delegate.A2AConfig{BaseURL: "http://localhost", NoAuth: true})
	if err != nil {
		t.Fatal(err)
	}
	calls := 0
	wrapped := activities.Wrap(activities.Composite{SDK: &sdk, A2A: remote}, counting(&calls))
	for _, tt := range []struct {
		protocol, agent    string
		immediate, hasTask bool
		missing            activities.Missing
	}{
		{protocol: "sdk", agent: "go"},
		{protocol: "sdk", agent: "other", missing: activities.MissingTarget},
		{protocol: "a2a", agent: "far", hasTask: true},
		{protocol: "mcp", agent: "tool", immediate: true, missing: activities.MissingType},
	} {
		can := capabilities(wrapped, tt.protocol, tt.agent)
		if can.Immediate != tt.immediate || can.Missing != tt.missing || (can.Tasks != nil) != tt.hasTask {
			t.Errorf("%s %s: %+v", tt.protocol, tt.agent, can)
		}
	}
	result, err := wrapped.Execute(t.Context(), activities.Request{NodeType: "agent_delegate", Protocol: "sdk", AgentID: "go"})
	if err != nil || result.Output != "done" || calls != 1 {
		t.Errorf("%v, %v after %d calls", result.Output, err, calls)
	}
	_, err = wrapped.Execute(t.Context(), activities.Request{NodeType: "agent_delegate", Protocol: "mcp", AgentID: "tool"})
	wantFailure(t, err, "DELEGATE_PROTOCOL_UNSUPPORTED")
}

// A middleware that prints each delegation.
func ExampleWrap() {
	var agents delegate.SDK
	err := agents.Register("reviewer", func(context.Context, activities.Request) (any, error) { return "looks good", nil })
	if err != nil {
		fmt.Println(err)
		return
	}
	printed := activities.Wrap(&agents, func(next activities.ExecutorFunc) activities.ExecutorFunc {
		return func(ctx context.Context, req activities.Request) (activities.Result, error) {
			result, err := next(ctx, req)
			fmt.Println("agent", req.AgentID, "answered", result.Output)
			return result, err
		}
	})
	_, err = activities.Composite{SDK: printed}.Execute(context.Background(), activities.Request{NodeType: "agent_delegate", Protocol: "sdk", AgentID: "reviewer"})
	fmt.Println(err)
	// Output:
	// agent reviewer answered looks good
	// <nil>
}
