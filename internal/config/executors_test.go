package config_test

import (
	"slices"
	"testing"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/config"
)

const (
	handlers = `WORKFLOW_ENGINE_STEP_HANDLERS={"urn:x":{"a":1}}`
	models   = `WORKFLOW_ENGINE_LLM_CONFIG={"baseUrl":"http://localhost:11434/v1","noAuth":true}`
	agents   = `WORKFLOW_ENGINE_A2A_CONFIG={"baseUrl":"https://agents.example","apiKeyEnv":"KEY"}`
)

func TestRouting(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name      string
		variables []string
		want      []string
	}{
		{"nothing set", nil, []string{
			"activity routing: llm_call=missing, tool_call=missing, step=missing",
			"delegate routing: a2a=missing, mcp=missing, sdk=missing",
			"demo stub fallback: inactive",
		}},
		{"demo", []string{"WORKFLOW_ENGINE_PROFILE=demo"}, []string{
			"activity routing: llm_call=stub(demo), tool_call=stub(demo), step=stub(demo)",
			"delegate routing: a2a=mock(demo), mcp=mock(demo), sdk=mock(demo)",
			"demo stub fallback: active",
		}},
		{"steps only", []string{handlers}, []string{
			"activity routing: llm_call=missing, tool_call=missing, step=production",
			"delegate routing: a2a=missing, mcp=missing, sdk=missing",
			"demo stub fallback: inactive",
		}},
		{"step commands only", []string{`WORKFLOW_ENGINE_STEP_COMMANDS={"stepCommands":{"urn:x":{"command":"go"}}}`}, []string{
			"activity routing: llm_call=missing, tool_call=missing, step=production",
			"delegate routing: a2a=missing, mcp=missing, sdk=missing",
			"demo stub fallback: inactive",
		}},
		{"models only", []string{models}, []string{
			"activity routing: llm_call=production, tool_call=missing, step=missing",
			"delegate routing: a2a=missing, mcp=missing, sdk=missing",
			"demo stub fallback: inactive",
		}},
		{"tools", []string{"WORKFLOW_ENGINE_MCP_CONFIG=tools.json"}, []string{
			"activity routing: llm_call=missing, tool_call=production, step=missing",
			"delegate routing: a2a=missing, mcp=production, sdk=missing",
			"demo stub fallback: inactive",
		}},
		{"steps and agents with demo", []string{handlers, agents, "KEY=k", "WORKFLOW_ENGINE_PROFILE=demo"}, []string{
			"activity routing: llm_call=stub(demo), tool_call=stub(demo), step=production",
			"delegate routing: a2a=production, mcp=mock(demo), sdk=mock(demo)",
			"demo stub fallback: active",
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := executors(t, tt.variables...).Routing(); !slices.Equal(got, tt.want) {
				t.Errorf("got  %q\nwant %q", got, tt.want)
			}
		})
	}
}

func executors(t *testing.T, variables ...string) config.Executors {
	t.Helper()
	c, err := load(t, environment(variables...))
	if err != nil {
		t.Fatal(err)
	}
	e, err := c.Executors()
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// What is not configured must be refused, not pretended.
func TestExecutors(t *testing.T) {
	t.Parallel()
	if e := executors(t); e.Configured() || e.Performs("step") {
		t.Errorf("nothing set: %+v", e)
	}

	e := executors(t, handlers)
	if !e.Configured() || !e.Performs("step") || e.Performs("llm_call") {
		t.Errorf("steps only: %+v", e)
	}
	request := activities.Request{NodeID: "n", NodeType: "step", Config: map[string]any{"handler": "urn:x"}}
	result, err := e.Activities.Execute(t.Context(), request)
	if output, ok := result.Output.(map[string]any); err != nil || !ok || output["a"] != 1.0 {
		t.Errorf("step: %v, %v", result, err)
	}
	_, err = e.Activities.Execute(t.Context(), activities.Request{NodeID: "n", NodeType: "llm_call"})
	requireCode(t, err, problem.ExecutorNotConfigured)

	e = executors(t, "WORKFLOW_ENGINE_PROFILE=demo")
	request = activities.Request{NodeID: "n", NodeType: "tool_call", Metadata: map[string]any{"demo_output": map[string]any{"x": "y"}}}
	if result, err = e.Activities.Execute(t.Context(), request); err != nil || result.Output.(map[string]any)["x"] != "y" {
		t.Errorf("demo: %v, %v", result, err)
	}
	if _, err := e.Delegates.Execute(t.Context(), activities.Request{NodeType: "agent_delegate", Protocol: "sdk"}); err != nil {
		t.Errorf("demo delegate: %v", err)
	}

	e = executors(t, agents, "KEY=k")
	if e.Performs("step") || e.Performs("tool_call") {
		t.Error("agents only: activities are performed")
	}
	_, err = e.Delegates.Execute(t.Context(), activities.Request{NodeType: "agent_delegate", Protocol: "mcp"})
	requireCode(t, err, problem.DelegateProtocolUnsupported)
}

func requireCode(t *testing.T, err error, want problem.Code) {
	t.Helper()
	if f, ok := err.(*activities.Failure); !ok || f.Code != string(want) {
		t.Errorf("got %v, want a failure with code %s", err, want)
	}
}
