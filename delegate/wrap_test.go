package delegate_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/workflows-engine/workflows-engine/delegate"
)

func counting(calls *int) func(delegate.ExecutorFunc) delegate.ExecutorFunc {
	return func(next delegate.ExecutorFunc) delegate.ExecutorFunc {
		return func(ctx context.Context, req delegate.Request) (delegate.Result, error) {
			*calls++
			return next(ctx, req)
		}
	}
}

// A wrapped executor answers the engine's questions as the executor itself does.
func TestWrapKeepsWhatAnExecutorPerforms(t *testing.T) {
	t.Parallel()
	var sdk delegate.SDK
	if err := sdk.Register("go", func(context.Context, delegate.Request) (any, error) { return "done", nil }); err != nil {
		t.Fatal(err)
	}
	remote, err := delegate.NewA2A(delegate.A2AConfig{BaseURL: "http://localhost", NoAuth: true})
	if err != nil {
		t.Fatal(err)
	}
	calls := 0
	wrapped := delegate.Wrap(delegate.Composite{SDK: &sdk, A2A: remote}, counting(&calls))
	for _, tt := range []struct {
		protocol, agent                      string
		immediate, performs, serves, hasTask bool
	}{
		{"sdk", "go", false, true, true, false},
		{"sdk", "other", false, true, false, false},
		{"a2a", "far", false, true, true, true},
		{"mcp", "tool", true, false, false, false},
	} {
		req := delegate.Request{Protocol: tt.protocol, AgentID: tt.agent}
		got := [...]bool{
			wrapped.(delegate.Immediate).Immediate(req), wrapped.(delegate.Selective).Performs(tt.protocol),
			wrapped.(delegate.AgentSelective).PerformsAgent(tt.protocol, tt.agent), wrapped.(delegate.Tasks).HasTask(req),
		}
		if want := [...]bool{tt.immediate, tt.performs, tt.serves, tt.hasTask}; got != want {
			t.Errorf("%s %s: %v, want %v", tt.protocol, tt.agent, got, want)
		}
	}
	result, err := wrapped.Delegate(t.Context(), delegate.Request{Protocol: "sdk", AgentID: "go"})
	if err != nil || result.Output != "done" || calls != 1 {
		t.Errorf("%v, %v after %d calls", result.Output, err, calls)
	}
	tasks, mcp := wrapped.(delegate.Tasks), delegate.Request{Protocol: "mcp", AgentID: "tool"}
	_, sent := tasks.Send(t.Context(), mcp)
	_, polled := tasks.Poll(t.Context(), mcp, delegate.TaskRef{})
	_, answered := tasks.Answer(t.Context(), mcp, delegate.TaskRef{}, nil)
	for _, err := range []error{sent, polled, answered, tasks.Cancel(t.Context(), mcp, delegate.TaskRef{})} {
		wantFailure(t, err, "DELEGATE_PROTOCOL_UNSUPPORTED")
	}
}

// A middleware that prints each delegation.
func ExampleWrap() {
	var agents delegate.SDK
	err := agents.Register("reviewer", func(context.Context, delegate.Request) (any, error) { return "looks good", nil })
	if err != nil {
		fmt.Println(err)
		return
	}
	printed := delegate.Wrap(&agents, func(next delegate.ExecutorFunc) delegate.ExecutorFunc {
		return func(ctx context.Context, req delegate.Request) (delegate.Result, error) {
			result, err := next(ctx, req)
			fmt.Println("agent", req.AgentID, "answered", result.Output)
			return result, err
		}
	})
	_, err = delegate.Composite{SDK: printed}.Delegate(context.Background(), delegate.Request{Protocol: "sdk", AgentID: "reviewer"})
	fmt.Println(err)
	// Output:
	// agent reviewer answered looks good
	// <nil>
}
