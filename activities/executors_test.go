package activities_test

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/activities/activitiestest"
)

func wantFailure(t *testing.T, err error, code string) *activities.Failure {
	t.Helper()
	failure, ok := errors.AsType[*activities.Failure](err)
	if !ok {
		t.Fatalf("error is %v, want a failure with code %s", err, code)
	}
	if failure.Code != code {
		t.Fatalf("code %s (%v), want %s", failure.Code, failure, code)
	}
	return failure
}

func TestStub(t *testing.T) {
	t.Parallel()
	given := map[string]any{"list": []any{1.0}}
	demo := map[string]any{"demo_output": map[string]any{"d": 1.0}}
	stub := activities.Stub{Outputs: map[string]any{"a": given, "text": "plain"}}
	for _, c := range []struct {
		name string
		stub activities.Stub
		req  activities.Request
		want any
	}{
		{"by node id", stub, activities.Request{NodeID: "a", Metadata: demo}, given},
		{"an output that is no object", stub, activities.Request{NodeID: "text"}, "plain"},
		{"from the metadata", stub, activities.Request{NodeID: "b", Metadata: demo}, map[string]any{"d": 1.0}},
		{"metadata that is no object", stub, activities.Request{NodeID: "b", Metadata: map[string]any{"demo_output": "x"}}, map[string]any{}},
		{"nothing", activities.Stub{}, activities.Request{NodeID: "b"}, map[string]any{}},
	} {
		got, err := c.stub.Execute(t.Context(), c.req)
		if err != nil || !reflect.DeepEqual(got.Output, c.want) {
			t.Errorf("%s: %v, %v, want %v", c.name, got.Output, err, c.want)
		}
		if !c.stub.Capabilities(c.req.Node()).Immediate {
			t.Errorf("%s: not immediate", c.name)
		}
	}
	got, _ := stub.Execute(t.Context(), activities.Request{NodeID: "a"})
	got.Output.(map[string]any)["list"].([]any)[0] = 2.0
	if given["list"].([]any)[0] != 1.0 {
		t.Error("a change of the output reached the stub's own")
	}
}

func TestRejecting(t *testing.T) {
	t.Parallel()
	_, err := activities.Rejecting{}.Execute(t.Context(), activities.Request{NodeID: "n"})
	if failure := wantFailure(t, err, "CONFORMANCE_ACTIVITY_PORT_INVOKED"); failure.Retryable != activities.RetryPointless {
		t.Error("a rejected attempt would be repeated")
	}
}

func TestFlaky(t *testing.T) {
	t.Parallel()
	flaky := &activitiestest.Flaky{Failures: 2, Output: map[string]any{"a": 1.0}}
	for call := 1; call <= 4; call++ {
		got, err := flaky.Execute(t.Context(), activities.Request{NodeID: "n"})
		if call <= 2 {
			wantFailure(t, err, "TRANSIENT")
			continue
		}
		if err != nil || !reflect.DeepEqual(got.Output, map[string]any{"a": 1.0}) {
			t.Errorf("call %d: %v, %v", call, got.Output, err)
		}
	}
	if flaky.Calls() != 4 {
		t.Errorf("%d calls counted, want 4", flaky.Calls())
	}
}

func TestComposite(t *testing.T) {
	t.Parallel()
	named := func(name string) activities.Executor {
		return activities.ExecutorFunc(func(context.Context, activities.Request) (activities.Result, error) {
			return activities.Result{Output: name}, nil
		})
	}
	full := activities.Composite{Step: named("step"), LLMCall: named("llm"), ToolCall: named("tool"), Fallback: named("fallback")}
	for _, c := range []struct {
		name      string
		composite activities.Composite
		nodeType  string
		want      string // "" for a refusal
		immediate bool
	}{
		{"step", full, "step", "step", false},
		{"llm_call", full, "llm_call", "llm", false},
		{"tool_call", full, "tool_call", "tool", false},
		{"no activity, though there is a fallback", full, "wait", "", true},
		{"fallback", activities.Composite{Step: named("step"), Fallback: named("fallback")}, "tool_call", "fallback", false},
		{"nothing configured", activities.Composite{Step: named("step")}, "llm_call", "", true},
	} {
		req := activities.Request{NodeID: "n", NodeType: c.nodeType}
		if got := c.composite.Capabilities(req.Node()).Immediate; got != c.immediate {
			t.Errorf("%s: immediate %v, want %v", c.name, got, c.immediate)
		}
		got, err := c.composite.Execute(t.Context(), req)
		if c.want != "" {
			if err != nil || got.Output != c.want {
				t.Errorf("%s: %v, %v, want %s", c.name, got.Output, err, c.want)
			}
			continue
		}
		failure := wantFailure(t, err, "COMPOSITE_EXECUTOR_NOT_CONFIGURED")
		if failure.Retryable != activities.RetryPointless {
			t.Errorf("%s: would be repeated", c.name)
		}
		if c.nodeType == "llm_call" && !strings.Contains(failure.Message, "host_mediated") {
			t.Errorf("%s: %q does not say what to do", c.name, failure.Message)
		}
	}
	if !(activities.Composite{Fallback: activities.Stub{}}).Capabilities(activities.Node{Type: "step"}).Immediate {
		t.Error("a stub behind a composite is not immediate")
	}
}

func TestRetrySense(t *testing.T) {
	t.Parallel()
	for code, want := range map[string]activities.Retryable{
		"TIMEOUT": activities.RetrySensible, "HANDLER_NOT_FOUND": activities.RetryPointless,
		"HANDLER_ERROR": activities.RetryUnknown, "A_HOST_S_OWN": activities.RetryUnknown, "": activities.RetryUnknown,
	} {
		if got := activities.RetrySense(code); got != want {
			t.Errorf("%s: %d, want %d", code, got, want)
		}
	}
}

// TestNotConfiguredSaysWhatToDo: the refusal names what to set, in Go unless the operator's setting is known, and the other way out.
func TestNotConfiguredSaysWhatToDo(t *testing.T) {
	t.Parallel()
	for nodeType, setting := range map[string]string{
		"step": "Composite.Step", "llm_call": "Composite.LLMCall", "tool_call": "Composite.ToolCall", "": "the operator's setting",
	} {
		executor := activities.Composite{}
		if nodeType == "" {
			nodeType, executor.Setting = "step", func(string) string { return setting }
		}
		_, err := executor.Execute(t.Context(), activities.Request{NodeID: "n", NodeType: nodeType})
		failure, ok := errors.AsType[*activities.Failure](err)
		if !ok || failure.Code != "COMPOSITE_EXECUTOR_NOT_CONFIGURED" || failure.Retryable != activities.RetryPointless ||
			!strings.Contains(failure.Message, setting) || !strings.Contains(failure.Message, "host_mediated") {
			t.Errorf("%s: %v", nodeType, err)
		}
	}
}
