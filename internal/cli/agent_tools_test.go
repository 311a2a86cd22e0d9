package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/activities/chat/chattest"
	"github.com/workflows-engine/workflows-engine/internal/config"
)

const serviceKey = "key-of-the-widget-service"

// toolsFolder holds a list of agents with tools of all kinds, and a workflow whose node narrows them.
func toolsFolder(t *testing.T, model, service string) string {
	t.Helper()
	folder := t.TempDir()
	for name, text := range map[string]string{
		"agents.json": `{"models":{"m":{"model":"x","endpoint":{"baseUrl":"` + model + `","noAuth":true}}},
			"agents":{"clerk":{"instructions":"You are a clerk.","output":{"schema":{"type":"object"}},"tools":[
				{"knowledge":["hr","sales/q1"]},{"api":["widgets"]},{"skills":["memo-style","refunds"]},{"agent":"helper"},
				{"step":"urn:example:total","name":"total","description":"Adds.","inputSchema":{"type":"object"},"onCrash":"repeat"}],
				"gates":[{"tools":["totl"],"do":"ask"},{"tools":["api_*"],"when":".arguments.method != \"GET\"","do":"deny","reason":"only look"}]},
			"helper":{"instructions":"You help.","tools":[{"knowledge":["sales/q1"]}]}},
			"apis":{"widgets":{"baseUrl":"` + service + `/v1","auth":{"type":"bearer","tokenRef":"env:WIDGETS"},"allowedPaths":["^/widgets"],"allowedMethods":["GET","POST"]}},
			"knowledge":{"path":"texts"},"skills":{"path":"skills"}}`,
		"texts/hr/leave.md": "# Leave\n\nThirty days.\n", "texts/sales/q1/plan.md": "# Plan\n\nSell widgets.\n",
		"skills/memo-style/SKILL.md": "---\ndescription: How memos are written.\n---\nThree lines.\n", "skills/refunds/SKILL.md": "---\ndescription: When money is paid back.\n---\nNever.\n",
		"flow.yaml": `
document: {schema: "https://agent-workflow.dev/schemas/workflow-definition.json", name: narrow, version: 1.0.0}
state_schema: {type: object}
nodes:
  - {id: start, type: start}
  - {id: work, type: agent_delegate, metadata: {skills: [memo-style], knowledge: [hr]}, config: {agent_id: clerk, protocol: sdk, input_mapping: {task: "${ .task }"}}}
  - {id: end, type: end}
edges:
  - {source: __start__, target: start}
  - {source: start, target: work}
  - {source: work, target: end}
`,
	} {
		name = filepath.Join(folder, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

func toolsCommand(t *testing.T, folder string) func(want int, args ...string) (stdout, stderr string) {
	return func(want int, args ...string) (string, string) {
		t.Helper()
		var stdout, stderr bytes.Buffer
		a := &app{stdin: strings.NewReader(""), stdout: &stdout, stderr: &stderr, now: time.Now, env: config.Environment{
			GOOS: runtime.GOOS, Home: folder, Directory: folder, ReadFile: os.ReadFile,
			Variables: []string{"WORKFLOW_ENGINE_AGENTS=agents.json", "WIDGETS=" + serviceKey, `WORKFLOW_ENGINE_STEP_HANDLERS={"urn:example:total":{"total":4}}`},
		}}
		if got := a.execute(t.Context(), append(args, "--db", filepath.Join(folder, "runs.db"))); got != want {
			t.Fatalf("%q: status %d, want %d\n%s%s", args, got, want, stdout.String(), stderr.String())
		}
		return stdout.String(), stderr.String()
	}
}

// An agent of the list reads a skill, searches, adds and calls an API. The system text is the same in all turns, in its order; what the service
// sends back of its key is in no record, file or output.
func TestAgentTools(t *testing.T) {
	t.Parallel()
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = json.NewEncoder(w).Encode(map[string]any{"path": r.URL.Path, "sent": r.Header.Get("Authorization"), r.Header.Get("Authorization"): 1})
	}))
	t.Cleanup(service.Close)
	server := chattest.Serve(t,
		chattest.Calls(
			chattest.Call("read_skill", `{"skill":"refunds"}`), chattest.Call("search_knowledge", `{"query":"How many days of leave?"}`), chattest.Call("read_knowledge", `{"ref":"sales/q1/plan.md#plan"}`),
			chattest.Call("total", `{"items":[1,3]}`), chattest.Call("api_call", `{"service":"widgets","method":"GET","path":"/widgets/7","headers":{"authorization":"Bearer mine"}}`),
			chattest.Call("api_call", `{"service":"widgets","method":"POST","path":"/widgets"}`),
		),
		chattest.Text(`{"done":true}`),
	)
	folder := toolsFolder(t, server.URL, service.URL)
	command := toolsCommand(t, folder)
	answer, _ := command(exitOK, "agent", "run", "clerk", "Do it.", "--id", "r1")
	if !strings.Contains(answer, `"done": true`) {
		t.Error(answer)
	}
	transcript, _ := command(exitOK, "agent", "transcript", "r1")
	for _, want := range []string{
		`"text":"Never."`, `"ref":"hr/leave.md#leave"`, `Sell widgets.`, `{"total":4}`, `"path":"/v1/widgets/7"`, `"[REDACTED]":1`, `"headers_not_sent":["authorization"]`, "TOOL_DENIED", "only look",
	} {
		if !strings.Contains(transcript, want) {
			t.Errorf("%s is missing in\n%s", want, transcript)
		}
	}
	asked := server.Asked()
	system := asked[0].Messages[0].Text
	at := 0
	for _, want := range []string{"You are a clerk.", "read_skill:\n- memo-style: How memos are written.\n- refunds:", `Knowledge bases that you can search with search_knowledge and read with read_knowledge: "hr","sales/q1".`, "JSON Schema"} {
		i := strings.Index(system[at:], want)
		if i < 0 {
			t.Fatalf("%q is missing, or not there, in\n%s", want, system)
		}
		at += i
	}
	if len(asked) != 2 || asked[1].Messages[0].Text != system {
		t.Errorf("%d requests, and the last begins %q", len(asked), asked[1].Messages[0].Text)
	}
	history, _ := command(exitOK, "history", "r1", "--full")
	shown, _ := command(exitOK, "agent", "show", "clerk", "--tools")
	texts := map[string]string{"transcript": transcript, "history": history, "answer": answer, "show": shown, "request": string(asked[1].Body)}
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			text, _ := os.ReadFile(path)
			texts[path] = string(text)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for place, text := range texts {
		if strings.Contains(text, serviceKey) {
			t.Errorf("the key stands in %s", place)
		}
	}
}

// The node's metadata narrows skills and knowledge bases of its agent and of those that it calls.
func TestNodeNarrows(t *testing.T) {
	t.Parallel()
	server := chattest.Serve(t,
		chattest.Calls(
			chattest.Call("read_skill", `{"skill":"refunds"}`), chattest.Call("read_skill", `{"skill":"memo-style"}`), chattest.Call("read_knowledge", `{"ref":"sales/q1/plan.md"}`),
			chattest.Call("agent__helper", `{"task":"Look at the plan."}`),
		),
		chattest.Calls(chattest.Call("search_knowledge", `{"query":"plan"}`)),
		chattest.Text("There is no plan."),
		chattest.Text(`{"done":true}`),
	)
	folder := toolsFolder(t, server.URL, "http://localhost:1")
	command := toolsCommand(t, folder)
	command(exitOK, "run", "flow.yaml", "--id", "r1", "--input", `{"task":"Do it."}`)
	transcript, _ := command(exitOK, "agent", "transcript", "r1")
	for _, want := range []string{"TOOL_ARGUMENTS_INVALID", "Three lines.", "KNOWLEDGE_REF_INVALID", `there is no tool \"search_knowledge\"`} {
		if !strings.Contains(transcript, want) {
			t.Errorf("%s is missing in\n%s", want, transcript)
		}
	}
	if system := server.Asked()[0].Messages[0].Text; strings.Contains(system, "refunds") || strings.Contains(system, "sales") || !strings.Contains(system, "memo-style") || !strings.Contains(system, `"hr"`) {
		t.Error(system)
	}
	flow, err := os.ReadFile(filepath.Join(folder, "flow.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for metadata, want := range map[string]string{
		"{skills: [memo-stile]}":     `metadata.skills of node "work" names "memo-stile", which agent "clerk" does not have; did you mean "memo-style"?`,
		"{skills: memo-style}":       `metadata.skills of node "work" is not a list of names`,
		"{knowledge: [hr, finance]}": `metadata.knowledge of node "work" names "finance"`,
	} {
		changed := strings.Replace(string(flow), "{skills: [memo-style], knowledge: [hr]}", metadata, 1)
		if err := os.WriteFile(filepath.Join(folder, "changed.yaml"), []byte(changed), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, warned := command(exitOK, "validate", "changed.yaml"); strings.Contains(metadata, "[memo-stile]") != strings.Contains(warned, `does not have the skill "memo-stile"`) {
			t.Errorf("%s: validate says %s", metadata, warned)
		}
		if _, stderr := command(exitFailed, "run", "changed.yaml", "--input", `{"task":"Do it."}`); !strings.Contains(stderr, "AGENT_CONFIG_INVALID") || !strings.Contains(stderr, want) {
			t.Errorf("%s: %s", metadata, stderr)
		}
	}
}

// The tools of a list are checked on request: patterns that match nothing are named.
func TestCheckTools(t *testing.T) {
	t.Parallel()
	command := toolsCommand(t, toolsFolder(t, "http://localhost:1/v1", "http://localhost:1"))
	stdout, stderr := command(exitOK, "agent", "validate", "agents.json", "--check-tools")
	if want := "clerk: 6 tools\nhelper: 2 tools\nOK: agents.json: 1 model, 2 agents\n"; stdout != want {
		t.Errorf("%q", stdout)
	}
	if want := "warning: clerk: gates[0]: the pattern \"totl\" matches no tool, so the rule never applies; did you mean \"total\"?\n"; stderr != want {
		t.Errorf("%q", stderr)
	}
	shown, _ := command(exitOK, "agent", "show", "clerk", "--tools")
	var agent struct {
		Tools []struct{ Name, Source string }
	}
	if err := json.Unmarshal([]byte(shown), &agent); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, tool := range agent.Tools {
		names = append(names, tool.Name+" "+tool.Source)
	}
	if want := []string{"read_skill skills", "search_knowledge knowledge", "read_knowledge knowledge", "api_call api", "total step:urn:example:total", "agent__helper engine:agent"}; !slices.Equal(names, want) {
		t.Errorf("%q", names)
	}
	listed, _ := command(exitOK, "agent", "list", "--json")
	if !strings.Contains(listed, `"tools":["knowledge (hr and sales/q1)","api_call (widgets)","skills (memo-style and refunds)","agent helper","total"]`) {
		t.Error(listed)
	}
}
