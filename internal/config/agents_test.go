package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/graph/problem"
)

const local = `"models":{"m":{"model":"x","endpoint":{"baseUrl":"http://localhost:1/v1","noAuth":true}}}`

// Agents are performed under protocol sdk, whether they come from a flag, a variable or the text of one.
func TestAgents(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	file := filepath.Join(folder, "agents.json")
	for name, text := range map[string]string{file: `{` + local + `,"agents":{"a":{"instructionsFile":"a.md"}}}`, filepath.Join(folder, "a.md"): "Find it."} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	env := environment("WORKFLOW_ENGINE_AGENTS=gone.json")
	env.ReadFile = os.ReadFile
	c, err := load(t, env, "--agents", file)
	if err != nil {
		t.Fatal(err)
	}
	if a := c.Agents.Agents["a"]; a.Instructions != "Find it." {
		t.Errorf("%+v", a)
	}
	e := executors(t, `WORKFLOW_ENGINE_AGENTS={`+local+`,"agents":{"a":{"instructions":"i"}}}`)
	if got := e.Routing()[1]; got != "delegate routing: a2a=missing, mcp=missing, sdk=production" {
		t.Error(got)
	}
	_, err = e.Delegates.Execute(t.Context(), activities.Request{NodeType: "agent_delegate", Protocol: "sdk", AgentID: "aa"})
	requireCode(t, err, problem.DelegateAgentNotFound)
	_, err = executors(t, models).Delegates.Execute(t.Context(), activities.Request{NodeType: "agent_delegate", Protocol: "sdk", AgentID: "aa"})
	if requireCode(t, err, problem.DelegateProtocolUnsupported); !strings.Contains(err.Error(), "set WORKFLOW_ENGINE_AGENTS") {
		t.Error(err)
	}
}

// A list of agents that is not valid ends the start with all its problems.
func TestAgentsRefused(t *testing.T) {
	t.Parallel()
	withTool := `{` + local + `,"agents":{"a":{"instructions":"i","tools":[{"server":"s"}]}}}`
	for _, tt := range []struct {
		variables []string
		findings  int
		want      string
	}{
		{[]string{"WORKFLOW_ENGINE_AGENTS=gone.json"}, 0, "cannot read WORKFLOW_ENGINE_AGENTS (gone.json)"},
		{[]string{"WORKFLOW_ENGINE_AGENTS={"}, 1, "the end of the text"},
		{[]string{`WORKFLOW_ENGINE_AGENTS={"models":{},"agents":{}}`}, 2, "must name at least one model"},
		{[]string{`WORKFLOW_ENGINE_AGENTS={"models":{"m":{"model":"x"}},"agents":{"a":{"instructions":"i"}}}`}, 1, "set WORKFLOW_ENGINE_LLM_CONFIG"},
		{[]string{models, `WORKFLOW_ENGINE_AGENTS={"models":{"m":{"model":"x"}},"agents":{"a":{"instructions":"i"}}}`}, 0, ""},
		{[]string{"WORKFLOW_ENGINE_AGENTS=" + withTool}, 1, "set --mcp-config or WORKFLOW_ENGINE_MCP_CONFIG"},
		{[]string{"WORKFLOW_ENGINE_AGENTS=" + withTool}, 1, "names models, servers or steps that are not configured"},
		{[]string{"WORKFLOW_ENGINE_MCP_CONFIG=tools.json", "WORKFLOW_ENGINE_AGENTS=" + withTool}, 0, ""},
		{[]string{"WORKFLOW_ENGINE_AGENTS=" + strings.Replace(local, `"noAuth":true`, `"apiKeyEnv":"KEY"`, 1)}, 0, "cannot read"},
		{[]string{`WORKFLOW_ENGINE_AGENTS={` + strings.Replace(local, `"noAuth":true`, `"apiKeyEnv":"KEY"`, 1) + `,"agents":{"a":{"instructions":"i"}}}`}, 1, "secret env:KEY"},
		{[]string{"KEY=k", `WORKFLOW_ENGINE_AGENTS={` + strings.Replace(local, `"noAuth":true`, `"apiKeyEnv":"KEY"`, 1) + `,"agents":{"a":{"instructions":"i"}}}`}, 0, ""},
	} {
		_, err := load(t, environment(tt.variables...))
		if tt.want == "" {
			if err != nil {
				t.Errorf("%q: %v", tt.variables, err)
			}
			continue
		}
		e, ok := problem.As(err)
		if !ok || e.Code != problem.UsageError || len(e.Findings) != tt.findings {
			t.Errorf("%q: %v, %d findings", tt.variables, err, len(e.Findings))
			continue
		}
		text := e.Error()
		for _, f := range e.Findings {
			text += f.Message
		}
		if !strings.Contains(text, tt.want) {
			t.Errorf("%q: %s", tt.variables, text)
		}
	}
}
